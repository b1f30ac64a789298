import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { boundedMap } from "../framework";
import type { TenantPolicy } from "./policy";

/** Whether a tenant is open, closed for now, or about to be deleted. */
export type TenantStatus = "active" | "suspended" | "deleting";

/** A tenant, as managers see it. */
export interface Tenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  /** Nobody signs in at a tenant that is not active. */
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
  return tenant?.id === id ? tenant : null;
}

/** For those who need nothing else of the tenant: reading the whole of it takes twice as long. */
export async function tenantExists(ctx: AuthContext, id: string): Promise<boolean> {
  return (await lookAt(ctx, id)) !== undefined;
}

/** What is remembered of a tenant. */
export interface RememberedTenant {
  /** When it was created: tells two tenants apart that were given the same number. */
  since: string;
  status: TenantStatus;
  policy: TenantPolicy | null;
}

async function lookAt(
  ctx: AuthContext,
  id: string,
  given?: DBTransactionAdapter,
): Promise<RememberedTenant | undefined> {
  if (!couldBeId(ctx, id)) return undefined;
  const adapter = given ?? (await getCurrentAdapter(ctx.adapter));
  const where = [{ field: "id", value: id }];
  const select = ["id", "createdAt", "status", "policy"];
  const row = await adapter.findOne<Tenant>({ model: "tenant", where, select });
  // Not so on MySQL, see above.
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
  const known = seenTenants(ctx).get(id);
  if (known && known.until > Date.now() && known.tenant) return known.tenant;
  const tenant = await lookAt(ctx, id, adapter);
  if (tenant) noteSighting(ctx, id, tenant);
  return tenant;
}

/** The policy of a tenant that this request has looked up, for those who cannot wait. */
export const rememberedPolicy = (ctx: AuthContext, id: string): TenantPolicy | null | undefined =>
  seenTenants(ctx).get(id)?.tenant?.policy;

/** Forgets what was known of a tenant: the next request looks again. Numbers may be given again. */
export function noteChange(ctx: AuthContext, id: string): void {
  seenTenants(ctx).delete(id);
}

function noteSighting(ctx: AuthContext, id: string, tenant: RememberedTenant): void {
  // Somebody may have deleted it here while it was looked up.
  if (wasDeleted(ctx, id)) return;
  note(seenTenants(ctx), id, { tenant, until: Date.now() + KEPT_MS });
}

const toRemembered = (tenant: Tenant): RememberedTenant => ({
  since: sinceOf(tenant),
  status: tenant.status,
  policy: tenant.policy,
});

/** What tells two tenants apart that were given the same number. */
export const sinceOf = ({ createdAt }: Pick<Tenant, "createdAt">) =>
  String(new Date(createdAt).getTime());

/**
 * Whether this process has deleted the tenant a moment ago. Whoever found a user of it before that
 * must not get a session after it; not every database would refuse.
 */
export function wasDeleted(ctx: AuthContext, id: string): boolean {
  const known = seenTenants(ctx).get(id);
  return known !== undefined && !known.tenant && known.until > Date.now();
}

export function noteDeletion(ctx: AuthContext, id: string): void {
  note(seenTenants(ctx), id, { until: Date.now() + KEPT_MS });
}

interface Sighting {
  until: number;
  /** Missing where this process has deleted it. */
  tenant?: RememberedTenant;
}

type Seen = Map<string, Sighting>;
const KEPT_MS = 10_000;
const note = boundedMap<Sighting>(10_000);
const seenBy = new WeakMap<AuthContext["adapter"], Seen>();

function seenTenants({ adapter }: AuthContext): Seen {
  const seen = seenBy.get(adapter) ?? new Map();
  seenBy.set(adapter, seen);
  return seen;
}

export async function findTenantBySlug(ctx: AuthContext, slug: string): Promise<Tenant | null> {
  const tenant = isText(slug) ? await findTenant(ctx, { field: "slug", value: slug }) : null;
  if (tenant?.slug !== slug) return null;
  noteSighting(ctx, tenant.id, toRemembered(tenant));
  return tenant;
}

async function findTenant(ctx: AuthContext, clause: Where): Promise<Tenant | null> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const row = await adapter.findOne<Tenant>({ model: "tenant", where: [clause] });
  return row && toTenant(row);
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
  const { id, name, slug, metadata = null, status, deleteAt, policy, createdAt, updatedAt } = row;
  return { id, name, slug, metadata, status, deleteAt, policy, createdAt, updatedAt };
}
