import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { after, expiringMap, oncePerObject } from "../framework";
import { nullIfInvalidId } from "../isolation/database-errors";
import { instanceKey, isOfTransaction, isolationOf } from "../isolation/isolation";
import { EVERY_ADDRESS } from "../policy/email-domains";
import { parseStoredPolicy, type TenantPolicy, VERIFIED } from "../policy/schema";
import { TENANT_ID } from "../request/prefix";
import type { SessionRow } from "../request/scope";
import { domainsIn } from "./plugins";

/** Users can sign in to active tenants only. */
export type TenantStatus = "active" | "suspended" | "deleting";

/** A tenant, as managers see it. */
export interface Tenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  /** Whether users can sign in. */
  status: TenantStatus;
  /** When a tenant that is `"deleting"` may be deleted for good. */
  deleteAt: Date | null;
  /** What the tenant has decided; null if nothing. */
  policy: TenantPolicy | null;
  createdAt: Date;
  updatedAt: Date;
}

type TenantRow = Tenant & {
  /** Older sessions are over, even where they cannot be deleted: in cookies and in storages. */
  sessionsEndedAt?: Date | null;
};

/** The part of a tenant that requests need. Verified domains are in its policy one by one. */
export interface CachedTenant extends Pick<Tenant, "id" | "slug" | "status" | "policy"> {
  /** When its sessions were last ended, or 0. */
  endedAt: number;
}

/** Without a limit, adapters return 100 rows. Every database accepts this one. */
export const ALL = 2_147_483_647;

/** What the columns of ids and slugs hold on every database. */
const MAX_LENGTH = 255;
const CLOCKS_DIFFER_MS = 60_000;

export async function findTenant(ctx: AuthContext, field: "id" | "slug", value: string) {
  const row = await findRow(ctx, field, value);
  return row && toTenant(row);
}

async function findRow(
  ctx: AuthContext,
  field: "id" | "slug",
  value: string,
  adapter?: DBTransactionAdapter,
): Promise<TenantRow | null> {
  const isPossible =
    field === "id"
      ? TENANT_ID.test(value) && couldBeId(ctx, value)
      : value.length <= MAX_LENGTH && isText(value);
  if (!isPossible) return null;
  const reader = adapter ?? (await getCurrentAdapter(ctx.adapter));
  const where = [{ field, value }];
  const row = await reader.findOne<TenantRow>({ model: "tenant", where }).catch(nullIfInvalidId);
  // MySQL ignores case and trailing spaces, and reads "1x" as a number: a caller that checked one id
  // must not act on another.
  return row?.[field] === value ? row : null;
}

/** Cached for ten seconds: in every process, a session is valid only while its tenant exists. */
export const lookUpTenant = (ctx: AuthContext, id: string, adapter?: DBTransactionAdapter) =>
  cachedTenant(ctx, id) ?? readTenant(ctx, "id", id, adapter);

export const cachedTenant = (ctx: AuthContext, id: string): CachedTenant | undefined =>
  cacheOf(ctx).tenants.get(id);

type Policy = TenantPolicy | null | undefined;

/** The policy of a tenant, or of the platform (null); undefined if the tenant does not exist. */
export function policyOf(
  ctx: AuthContext,
  tenantId: string | null,
  adapter?: DBTransactionAdapter,
): Policy | Promise<Policy> {
  if (tenantId === null) return isolationOf(ctx)?.options.platformPolicy ?? null;
  return after(lookUpTenant(ctx, tenantId, adapter), (tenant) => tenant?.policy);
}

/** A slug can change hands: the cached id counts only while its tenant is cached with this slug. */
export async function tenantIdOfSlug(ctx: AuthContext, slug: string): Promise<string | undefined> {
  const id = cacheOf(ctx).slugs.get(slug);
  if (id !== undefined && cachedTenant(ctx, id)?.slug === slug) return id;
  return (await readTenant(ctx, "slug", slug))?.id;
}

/** Reads a tenant and caches it, except for what a transaction sees. */
async function readTenant(
  ctx: AuthContext,
  field: "id" | "slug",
  value: string,
  adapter?: DBTransactionAdapter,
): Promise<CachedTenant | undefined> {
  const { tenants, slugs } = cacheOf(ctx);
  const keepTenant = tenants.startRead();
  const keepSlug = slugs.startRead();
  const row = await findRow(ctx, field, value, adapter);
  if (!row) return undefined;
  const { id, slug, status, policy: given } = toTenant(row);
  const isVerified = given?.emailDomains === VERIFIED;
  const policy = isVerified ? await withVerifiedDomains(ctx, id, given, adapter) : given;
  const endedAt = row.sessionsEndedAt ? new Date(row.sessionsEndedAt).getTime() : 0;
  const tenant = { id, slug, status, policy, endedAt };
  if (!isOfTransaction(isolationOf(ctx), adapter)) {
    keepTenant(id, tenant);
    keepSlug(slug, id);
  }
  return tenant;
}

/** The policy with the tenant's verified domains, if it asks for them. */
export async function withVerifiedDomains(
  ctx: AuthContext,
  tenantId: string,
  policy: TenantPolicy,
  adapter?: DBTransactionAdapter,
): Promise<TenantPolicy> {
  if (policy.emailDomains !== VERIFIED) return policy;
  const verified = await domainsIn(ctx)?.verifiedBy(ctx, tenantId, adapter);
  return { ...policy, emailDomains: [EVERY_ADDRESS, ...(verified ?? [])] };
}

const caches = oncePerObject((_instance: object) => ({
  tenants: expiringMap<CachedTenant>(10_000, 10_000),
  slugs: expiringMap<string>(10_000, 10_000),
}));

const cacheOf = (ctx: AuthContext) => caches(instanceKey(ctx));

/**
 * Forgets a changed or deleted tenant and its slug: at once, and again after the commit, because
 * other requests may have read the old state in between.
 */
export async function forgetTenant(ctx: AuthContext, id: string, slug = ""): Promise<void> {
  const forget = async () => {
    const { tenants, slugs } = cacheOf(ctx);
    tenants.delete(id);
    slugs.delete(slug);
  };
  await forget();
  await queueAfterTransactionHook(forget);
}

/** R10: the tenant of a session is active, and has not ended its sessions since. */
export function acceptsSession(
  ctx: AuthContext,
  session: SessionRow,
  adapter?: DBTransactionAdapter,
): boolean | Promise<boolean> {
  const { tenantId } = session;
  if (!tenantId) return false;
  return after(lookUpTenant(ctx, tenantId, adapter), (tenant) => accepts(tenant, session));
}

function accepts(tenant: CachedTenant | undefined, { createdAt }: SessionRow): boolean {
  if (tenant?.status !== "active") return false;
  if (!tenant.endedAt) return true;
  const created = new Date(createdAt ?? "").getTime();
  // A session without a creation time, or with one in the future, may be older.
  return created >= tenant.endedAt && created < Date.now() + CLOCKS_DIFFER_MS;
}

/** Treats an impossible id as not found: a typed column would fail. */
export function couldBeId(ctx: AuthContext, id: string): boolean {
  if (id.length > MAX_LENGTH) return false;
  if (hasNumericIds(ctx)) return /^[1-9]\d{0,9}$/.test(id) && Number(id) <= ALL;
  if (ctx.options.advanced?.database?.generateId === "uuid") return UUID.test(id);
  return isText(id);
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const hasNumericIds = ({ options }: AuthContext) =>
  options.advanced?.database?.generateId === "serial";

/** PostgreSQL stores neither NUL nor half of a surrogate pair, and URLs and cookies have no such half. */
export const isText = (value: string) => !value.includes("\0") && !/\p{Surrogate}/u.test(value);

/** The public fields, one by one: a new column cannot leak by itself. */
export function toTenant(row: Tenant): Tenant {
  const { id, name, slug, metadata = null, createdAt, updatedAt } = row;
  // MongoDB has no migrations: older tenants lack these.
  const status = row.status ?? "active";
  const deleteAt = row.deleteAt ?? null;
  const policy = parseStoredPolicy(row.policy);
  return { id, name, slug, metadata, status, deleteAt, policy, createdAt, updatedAt };
}
