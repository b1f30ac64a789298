import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../database";
import { nullIfInvalidId } from "../database-errors";
import { instanceKey, isolationOf, seesUncommittedRows } from "../isolation";
import { TENANT_ID } from "../prefix";
import type { SessionRow } from "../session";
import { expiringMap, isText, oncePerObject } from "../utils";

/** Users can sign in to active tenants only. */
export type TenantStatus = "active" | "suspended" | "deleting";

/** The columns of a tenant that the core reads. */
export type TenantRow = Row & {
  id: string;
  slug: string;
  /** Missing in older tenants on MongoDB, which has no migrations. */
  status?: TenantStatus | null;
  /** Sessions from before this date are invalid, even in cookies and secondary storage. */
  sessionsEndedAt?: Date | null;
};

/** The part of a tenant that requests need. */
export interface CachedTenant {
  id: string;
  slug: string;
  status: TenantStatus;
  /** When its sessions were last ended, or 0. */
  endedAt: number;
  /** What each extension's `cacheWithTenant` returned, by the name of the extension. */
  ofExtensions: Readonly<Record<string, unknown>>;
}

/**
 * A limit for all rows, which databases accept. Without a limit, adapters return 100 rows by
 * default.
 */
export const ALL = 2_147_483_647;

/** The length of ids and slugs that the columns of every database hold. */
const MAX_LENGTH = 255;
const CLOCKS_DIFFER_MS = 60_000;

export async function findTenantRow(
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
  // MySQL ignores case and trailing spaces, and reads "1x" as a number, so it may return another
  // tenant.
  return row?.[field] === value ? row : null;
}

/**
 * Returns a tenant, cached for ten seconds in each process. During this time, another process may
 * still accept sessions of a deleted tenant that are in cookies or a storage.
 */
export const lookUpTenant = async (ctx: AuthContext, id: string, adapter?: DBTransactionAdapter) =>
  cachedTenant(ctx, id) ?? (await readTenant(ctx, "id", id, adapter));

export const cachedTenant = (ctx: AuthContext, id: string): CachedTenant | undefined =>
  cacheOf(ctx).tenants.get(id);

/**
 * Returns the id of the tenant with a slug. A slug can move to another tenant: the cached id counts
 * only while its tenant is cached with this slug.
 */
export async function tenantIdOfSlug(ctx: AuthContext, slug: string): Promise<string | undefined> {
  const id = cacheOf(ctx).slugs.get(slug);
  if (id !== undefined && cachedTenant(ctx, id)?.slug === slug) return id;
  return (await readTenant(ctx, "slug", slug))?.id;
}

/** Reads a tenant and caches it, unless the read may have seen uncommitted rows. */
async function readTenant(
  ctx: AuthContext,
  field: "id" | "slug",
  value: string,
  adapter?: DBTransactionAdapter,
): Promise<CachedTenant | undefined> {
  const { tenants, slugs } = cacheOf(ctx);
  const keepTenant = tenants.startRead();
  const keepSlug = slugs.startRead();
  const row = await findTenantRow(ctx, field, value, adapter);
  if (!row) return undefined;
  const { id, slug } = row;
  const status = row.status ?? "active";
  const endedAt = row.sessionsEndedAt ? new Date(row.sessionsEndedAt).getTime() : 0;
  const isolation = isolationOf(ctx);
  const ofExtensions: Record<string, unknown> = {};
  for (const { name, cacheWithTenant } of isolation?.extensions ?? []) {
    if (cacheWithTenant) ofExtensions[name] = await cacheWithTenant(ctx, row, adapter);
  }
  const tenant = { id, slug, status, endedAt, ofExtensions };
  if (!seesUncommittedRows(isolation, adapter)) {
    keepTenant(id, tenant);
    keepSlug(slug, id);
  }
  return tenant;
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

/** R10: returns whether the tenant of a session is active, and has not ended its sessions since. */
export async function acceptsSession(
  ctx: AuthContext,
  { tenantId, createdAt }: SessionRow,
  adapter?: DBTransactionAdapter,
): Promise<boolean> {
  if (!tenantId) return false;
  const tenant = await lookUpTenant(ctx, tenantId, adapter);
  if (tenant?.status !== "active") return false;
  if (!tenant.endedAt) return true;
  const created = new Date(createdAt ?? "").getTime();
  // A session without a creation time, or with one in the future, may be older.
  return created >= tenant.endedAt && created < Date.now() + CLOCKS_DIFFER_MS;
}

/**
 * Returns whether a text may be an id. The lookup of an impossible id would fail on a typed column.
 */
export function couldBeId(ctx: AuthContext, id: string): boolean {
  if (id.length > MAX_LENGTH) return false;
  if (hasNumericIds(ctx)) return /^[1-9]\d{0,9}$/.test(id) && Number(id) <= ALL;
  if (ctx.options.advanced?.database?.generateId === "uuid") return UUID.test(id);
  return isText(id);
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const hasNumericIds = ({ options }: AuthContext) =>
  options.advanced?.database?.generateId === "serial";
