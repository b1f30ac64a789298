import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { boundedMap } from "../framework";
import { nullIfInvalidId } from "../isolation/database-errors";
import { instanceKey, isOfTransaction, isolationOf } from "../isolation/isolation";
import type { TenantPolicy } from "../policy/schema";
import { parseStoredPolicy } from "../policy/schema";
import { TENANT_ID } from "../request/prefix";
import { requestSlot, type SessionRow } from "../request/scope";

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

/** The whole tenant, as it is now. */
export const findTenantById = (ctx: AuthContext, id: string) => findTenant(ctx, byId(ctx, id));

export const findTenantBySlug = (ctx: AuthContext, slug: string) => findTenant(ctx, bySlug(slug));

async function findTenant(ctx: AuthContext, key: Key): Promise<Tenant | null> {
  const row = await lookAt(await getCurrentAdapter(ctx.adapter), key, []);
  return row ? toTenant(row) : null;
}

/** A row of the table. */
type TenantRow = Tenant & {
  /** Sessions from before are over, wherever they are kept: some places cannot be emptied. */
  sessionsEndedAt?: Date | null;
};

/** What is remembered of a tenant. */
export interface CachedTenant {
  slug: string;
  status: TenantStatus;
  policy: TenantPolicy | null;
  /** When its sessions were last ended, or 0. */
  endedAt: number;
}

/** Undefined for a value that no tenant can have. */
type Key = { field: "id" | "slug"; value: string } | undefined;

const byId = (ctx: AuthContext, value: string): Key =>
  TENANT_ID.test(value) && couldBeId(ctx, value) ? { field: "id", value } : undefined;

const bySlug = (value: string): Key =>
  value.length <= MAX_LENGTH && isText(value) ? { field: "slug", value } : undefined;

const REMEMBERED = ["id", "slug", "status", "policy", "sessionsEndedAt"];

/** Nothing selected is all of it. */
async function lookAt(
  adapter: DBTransactionAdapter,
  key: Key,
  select: string[] = REMEMBERED,
): Promise<TenantRow | undefined> {
  if (!key) return undefined;
  const call = { model: "tenant", where: [key], ...(select[0] && { select }) };
  const row = await adapter.findOne<TenantRow>(call).catch(nullIfInvalidId);
  // MySQL compares without regard to case and trailing spaces, and takes "1x" for a number: whoever
  // checked one id must not act on another.
  if (row?.[key.field] !== key.value) return undefined;
  return { ...row, policy: parseStoredPolicy(row.policy) };
}

/** Remembered for ten seconds: a session is good only while its tenant is there, in all processes. */
export async function lookUpTenant(
  ctx: AuthContext,
  id: string,
  adapter?: DBTransactionAdapter,
): Promise<CachedTenant | undefined> {
  const known = cachedTenant(ctx, id);
  if (known) return known;
  const row = await see(ctx, byId(ctx, id), adapter);
  return row && keepPolicy(id, toRemembered(row));
}

const policies = requestSlot(() => new Map<string, TenantPolicy | null>());

/** What a request has seen once it goes on with, though another one makes this process forget it. */
function keepPolicy(id: string, tenant: CachedTenant): CachedTenant {
  policies.get().set(id, tenant.policy);
  return tenant;
}

export function cachedTenant(ctx: AuthContext, id: string): CachedTenant | undefined {
  const { tenant, until = 0 } = seenTenants(ctx).tenants.get(id) ?? {};
  return tenant && until > Date.now() ? keepPolicy(id, tenant) : undefined;
}

/**
 * The id of the tenant with this slug. A slug may be given to another tenant, so it is remembered
 * with its tenant and for as long: whatever makes that forgotten makes this forgotten.
 */
export async function tenantIdOfSlug(ctx: AuthContext, slug: string): Promise<string | undefined> {
  const id = seenTenants(ctx).slugs.get(slug);
  if (id !== undefined && cachedTenant(ctx, id)?.slug === slug) return id;
  return (await see(ctx, bySlug(slug)))?.id;
}

/** Looks at a tenant, and remembers it, unless it is what a transaction sees. */
async function see(
  ctx: AuthContext,
  key: Key,
  given?: DBTransactionAdapter,
): Promise<TenantRow | undefined> {
  const seen = seenTenants(ctx);
  const { changes } = seen;
  // From before the look: what is changed during a slow one is not remembered for longer.
  const until = Date.now() + KEPT_MS;
  const row = await lookAt(given ?? (await getCurrentAdapter(ctx.adapter)), key);
  if (!row || isOfTransaction(isolationOf(ctx), given)) return row;
  // A tenant that was changed here during the look-up is not remembered.
  if (seen.changes === changes) {
    note(seen.tenants, row.id, { tenant: toRemembered(row), until });
    if (key?.field === "slug") noteSlug(seen.slugs, key.value, row.id);
  }
  return row;
}

/** The policy of a tenant that this request has looked up, for those who cannot wait. */
export function cachedPolicy(ctx: AuthContext, id: string): TenantPolicy | null | undefined {
  const { tenant, until = 0 } = seenTenants(ctx).tenants.get(id) ?? {};
  const known = policies.get();
  return tenant && (until > Date.now() || !known.has(id)) ? tenant.policy : known.get(id);
}

const toRemembered = (row: TenantRow): CachedTenant => ({
  slug: row.slug,
  status: row.status ?? "active",
  policy: row.policy ?? null,
  endedAt: row.sessionsEndedAt ? new Date(row.sessionsEndedAt).getTime() : 0,
});

/**
 * Whether the tenant of a session accepts it (R10): the tenant exists and is active, and has not
 * ended its sessions after this one was created.
 */
export function acceptsSession(
  ctx: AuthContext,
  session: SessionRow,
  adapter?: DBTransactionAdapter,
): boolean | Promise<boolean> {
  const { tenantId } = session;
  if (!tenantId) return false;
  const cached = cachedTenant(ctx, tenantId);
  if (cached) return accepts(cached, session);
  return lookUpTenant(ctx, tenantId, adapter).then((tenant) => accepts(tenant, session));
}

function accepts(tenant: CachedTenant | undefined, { createdAt }: SessionRow): boolean {
  if (tenant?.status !== "active") return false;
  if (!tenant.endedAt) return true;
  const made = new Date(createdAt ?? "").getTime();
  // A session without a creation time, or with one in the future, may be from before.
  return made >= tenant.endedAt && made < Date.now() + CLOCKS_DIFFER_MS;
}

/** Whether nobody may sign in at a tenant that is there. */
export async function isSuspended(
  ctx: AuthContext,
  tenantId: string | null | undefined,
): Promise<boolean> {
  const tenant = tenantId ? await lookUpTenant(ctx, tenantId) : undefined;
  return tenant !== undefined && tenant.status !== "active";
}

/**
 * Forgets a tenant after a change or deletion, and which tenant its slug belonged to: at once, for
 * the rest of a transaction around the change, and again after its commit, because other requests
 * may have read the old state in between.
 */
export async function forgetTenant(ctx: AuthContext, id: string, slug = ""): Promise<void> {
  const forget = async () => {
    const seen = seenTenants(ctx);
    seen.changes++;
    seen.tenants.delete(id);
    seen.slugs.delete(slug);
  };
  await forget();
  await queueAfterTransactionHook(forget);
}

interface Sighting {
  until: number;
  tenant: CachedTenant;
}

interface Seen {
  tenants: Map<string, Sighting>;
  /** Tenant ids by slug. An entry is valid while the tenant is remembered with that slug. */
  slugs: Map<string, string>;
  /** Counts changes in this process: a look-up that began before the last one may be outdated. */
  changes: number;
}

const KEPT_MS = 10_000;
const CLOCKS_DIFFER_MS = 60_000;
const note = boundedMap<Sighting>(10_000);
const noteSlug = boundedMap<string>(10_000);
const seenBy = new WeakMap<object, Seen>();

function seenTenants(ctx: AuthContext): Seen {
  const instance = instanceKey(ctx);
  const known = seenBy.get(instance);
  if (known) return known;
  const seen = { tenants: new Map(), slugs: new Map(), changes: 0 };
  seenBy.set(instance, seen);
  return seen;
}

/** What the columns of ids and slugs hold on every database. */
const MAX_LENGTH = 255;

/** Treats an impossible id as not found; typed columns would answer it with an error. */
export function couldBeId(ctx: AuthContext, id: string): boolean {
  if (id.length > MAX_LENGTH) return false;
  if (hasNumericIds(ctx)) return /^[1-9]\d{0,9}$/.test(id) && Number(id) <= ALL;
  if (generatorOf(ctx) === "uuid") return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
  return isText(id);
}

const generatorOf = ({ options }: AuthContext) => options.advanced?.database?.generateId;

export const hasNumericIds = (ctx: AuthContext) => generatorOf(ctx) === "serial";

/**
 * PostgreSQL stores neither NUL nor half of a surrogate pair, as text or inside jsonb. The half of one
 * cannot be in an address or the name of a cookie either.
 */
export function isText(value: string): boolean {
  return !value.includes("\0") && !/\p{Surrogate}/u.test(value);
}

/** The fields that go out, one by one: a column that is added later does not leak by itself. */
export function toTenant(row: Tenant): Tenant {
  const { id, name, slug, metadata = null, createdAt, updatedAt } = row;
  return {
    id,
    name,
    slug,
    metadata,
    // A database without columns has tenants from before there were these.
    status: row.status ?? "active",
    deleteAt: row.deleteAt ?? null,
    policy: row.policy ?? null,
    createdAt,
    updatedAt,
  };
}
