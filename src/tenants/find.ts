import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { boundedMap } from "../framework";
import type { TenantPolicy } from "../policy";
import type { SessionRow } from "../scope/scope";

/** Nobody signs in at a tenant that is not active. */
export type TenantStatus = "active" | "suspended" | "deleting";

/** A tenant, as managers see it. */
export interface Tenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  /** Whether people can sign in. */
  status: TenantStatus;
  /** When a tenant that is `"deleting"` may be deleted for good. */
  deleteAt: Date | null;
  /** What the tenant has decided; null where it has decided nothing. */
  policy: TenantPolicy | null;
  createdAt: Date;
  updatedAt: Date;
}

// The adapter answers 100 rows unless it is told how many. The largest number that every
// database takes as a limit stands for "all".
export const ALL = 2_147_483_647;

export async function findTenantById(ctx: AuthContext, id: string): Promise<Tenant | null> {
  const tenant = couldBeId(ctx, id) ? await findTenant(ctx, { field: "id", value: id }) : null;
  // MySQL compares without regard to case and trailing spaces, and whoever checked one id must
  // not act on another.
  return tenant?.id === id ? toTenant(tenant) : null;
}

/** For those who need nothing else of the tenant: reading the whole of it takes twice as long. */
export async function tenantExists(ctx: AuthContext, id: string): Promise<boolean> {
  return (await lookAt(ctx, id)) !== undefined;
}

/** A row of the table. */
type TenantRow = Tenant & {
  /** Sessions from before are over, wherever they are kept: some places cannot be emptied. */
  sessionsEndedAt?: Date | null;
};

/** What is remembered of a tenant. */
export interface RememberedTenant {
  /** When it was created: tells two tenants apart that were given the same number. */
  since: string;
  status: TenantStatus;
  policy: TenantPolicy | null;
  /** When its sessions were last ended, or 0. */
  endedAt: number;
}

async function lookAt(
  ctx: AuthContext,
  id: string,
  given?: DBTransactionAdapter,
): Promise<RememberedTenant | undefined> {
  if (!couldBeId(ctx, id)) return undefined;
  const adapter = given ?? (await getCurrentAdapter(ctx.adapter));
  const where = [{ field: "id", value: id }];
  const select = ["id", "createdAt", "status", "policy", "sessionsEndedAt"];
  const row = await adapter.findOne<TenantRow>({ model: "tenant", where, select });
  // MySQL may match an id that differs in case or trailing spaces, as in `findTenantById`.
  return row?.id === id ? toRemembered(row) : undefined;
}

/**
 * The same for every request of a tenant, remembered for ten seconds: a session is good only while
 * its tenant is there, in this process and in the others.
 */
export async function recentlySeen(
  ctx: AuthContext,
  id: string,
  adapter?: DBTransactionAdapter,
): Promise<RememberedTenant | undefined> {
  const seen = seenTenants(ctx);
  const known = seen.tenants.get(id);
  if (known && known.until > Date.now() && known.tenant) return known.tenant;
  const { changes } = seen;
  const tenant = await lookAt(ctx, id, adapter);
  if (tenant) noteSighting(ctx, id, tenant, changes);
  return tenant;
}

function noteSighting(
  ctx: AuthContext,
  id: string,
  tenant: RememberedTenant,
  changesBefore: number,
): void {
  const { tenants, changes } = seenTenants(ctx);
  // Somebody may have deleted or suspended it here while it was looked up.
  if (changes !== changesBefore || wasDeleted(ctx, id)) return;
  note(tenants, id, { tenant, until: Date.now() + KEPT_MS });
}

/** The policy of a tenant that this request has looked up, for those who cannot wait. */
export const rememberedPolicy = (ctx: AuthContext, id: string): TenantPolicy | null | undefined =>
  seenTenants(ctx).tenants.get(id)?.tenant?.policy;

const toRemembered = (row: TenantRow): RememberedTenant => ({
  since: sinceOf(row),
  status: row.status ?? "active",
  policy: row.policy ?? null,
  endedAt: row.sessionsEndedAt ? new Date(row.sessionsEndedAt).getTime() : 0,
});

/**
 * When the tenant of a session was created, if the session is good there (R10): the tenant is there
 * and active, and has not ended its sessions since this one was made.
 */
export async function openSince(
  ctx: AuthContext,
  { tenantId, createdAt }: SessionRow,
  adapter?: DBTransactionAdapter,
): Promise<string | undefined> {
  const tenant = tenantId ? await recentlySeen(ctx, tenantId, adapter) : undefined;
  if (tenant?.status !== "active") return undefined;
  // A session that does not say when it was made may be from before.
  const isOver = tenant.endedAt && !(new Date(createdAt ?? "").getTime() >= tenant.endedAt);
  return isOver ? undefined : tenant.since;
}

/** Whether nobody may sign in at a tenant that is there. */
export async function isSuspended(
  ctx: AuthContext,
  tenantId: string | null | undefined,
  adapter?: DBTransactionAdapter,
): Promise<boolean> {
  const tenant = tenantId ? await recentlySeen(ctx, tenantId, adapter) : undefined;
  return tenant !== undefined && tenant.status !== "active";
}

/** What tells two tenants apart that were given the same number. */
export const sinceOf = ({ createdAt }: Pick<Tenant, "createdAt">) =>
  String(new Date(createdAt).getTime());

/**
 * Whether this process has deleted the tenant a moment ago. Whoever found a user of it before that
 * must not get a session after it; not every database would refuse.
 */
export function wasDeleted(ctx: AuthContext, id: string): boolean {
  const known = seenTenants(ctx).tenants.get(id);
  return known !== undefined && !known.tenant && known.until > Date.now();
}

export function noteDeletion(ctx: AuthContext, id: string): void {
  noteChange(ctx, id);
  note(seenTenants(ctx).tenants, id, { until: Date.now() + KEPT_MS });
}

/** Forgets what was known of a tenant: the next request looks again. Numbers may be given again. */
export function noteChange(ctx: AuthContext, id: string): void {
  const seen = seenTenants(ctx);
  seen.changes++;
  seen.tenants.delete(id);
}

interface Sighting {
  until: number;
  /** Missing where this process has deleted it. */
  tenant?: RememberedTenant;
}

interface Seen {
  tenants: Map<string, Sighting>;
  /** How often a tenant was changed here. Whoever was reading meanwhile may have read what was before. */
  changes: number;
}

const KEPT_MS = 10_000;
const note = boundedMap<Sighting>(10_000);
const seenBy = new WeakMap<AuthContext["adapter"], Seen>();

function seenTenants({ adapter }: AuthContext): Seen {
  const seen = seenBy.get(adapter) ?? { tenants: new Map(), changes: 0 };
  seenBy.set(adapter, seen);
  return seen;
}

export async function findTenantBySlug(ctx: AuthContext, slug: string): Promise<Tenant | null> {
  const { changes } = seenTenants(ctx);
  const row = isText(slug) ? await findTenant(ctx, { field: "slug", value: slug }) : null;
  if (row?.slug !== slug) return null;
  noteSighting(ctx, row.id, toRemembered(row), changes);
  return toTenant(row);
}

async function findTenant(ctx: AuthContext, clause: Where): Promise<TenantRow | null> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  return adapter.findOne<TenantRow>({ model: "tenant", where: [clause] });
}

/** An id of the wrong form is the id of nobody; typed columns would answer it with an error. */
function couldBeId(ctx: AuthContext, id: string): boolean {
  const generated = ctx.options.advanced?.database?.generateId;
  if (generated === "serial") return /^[1-9]\d{0,9}$/.test(id) && Number(id) <= ALL;
  if (generated === "uuid") return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
  return isText(id);
}

/** PostgreSQL has no NUL in its texts. */
function isText(value: string): boolean {
  return !value.includes("\0");
}

/** The fields that go out, one by one: a column that is added later does not leak by itself. */
export function toTenant(row: Tenant): Tenant {
  const { id, name, slug, metadata = null, createdAt, updatedAt } = row;
  // A database without columns has tenants from before there were these.
  const { status, deleteAt, policy } = row;
  return {
    id,
    name,
    slug,
    metadata,
    status: status ?? "active",
    deleteAt: deleteAt ?? null,
    policy: policy ?? null,
    createdAt,
    updatedAt,
  };
}
