import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Where } from "better-auth/types";
import type * as z from "zod";
import { clauses } from "../../core/database";
import { tenantError } from "../../core/errors";
import { isolationOf } from "../../core/isolation";
import { runInScope, scopeOf } from "../../core/request";
import { ALL, forgetTenant } from "../../core/tenants/tenants";
import { deleteAllOf, despiteDeadlocks } from "./delete";
import { managementError } from "./errors";
import { emit, type TenantActor } from "./events";
import type { listQuery } from "./input";
import { managementOptions } from "./options";
import { findTenant, type Tenant, toTenant } from "./tenant";

type TenantFields = Pick<Tenant, "name" | "slug" | "metadata" | "policy">;

export async function createTenant(
  ctx: AuthContext,
  actor: TenantActor,
  { metadata, policy, ...fields }: TenantFields,
): Promise<Tenant> {
  assertSlug(ctx, fields.slug);
  // Leaves out null: better-auth stores it as the text "null", which some adapters return as text.
  const now = new Date();
  const times = { createdAt: now, updatedAt: now };
  const data = { ...fields, ...times, ...(metadata && { metadata }), ...(policy && { policy }) };
  const row = await unlessSlugTaken(ctx, fields, async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    return adapter.create<typeof data, Tenant>({ model: "tenant", data });
  });
  await forgetTenant(ctx, row.id, row.slug);
  const tenant = toTenant(row);
  await emit(ctx, actor, tenant.id, { type: "tenant:created", tenant });
  return tenant;
}

/** Changes the given fields of a tenant. The status goes last: a taken slug must change nothing. */
export async function changeTenant(
  ctx: AuthContext,
  actor: TenantActor,
  tenant: Tenant,
  { status, ...input }: Partial<TenantFields> & { status?: "active" | "suspended" | undefined },
): Promise<Tenant> {
  if (status) assertNotDue(tenant);
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  let changed = tenant;
  if (given.length) {
    changed = await updateTenant(ctx, tenant, Object.fromEntries(given));
    const names = (["name", "slug", "metadata"] as const).filter(
      (name) => input[name] !== undefined,
    );
    const change = { type: "tenant:updated", tenant: changed, changed: names } as const;
    if (names.length) await emit(ctx, actor, tenant.id, change);
  }
  if (!status || status === changed.status) return changed;
  const next = await setStatus(ctx, changed, { status, deleteAt: null });
  const resumed = status === "active" ? "tenant:resumed" : "tenant:suspended";
  const type = tenant.status === "deleting" ? "tenant:restored" : resumed;
  await emit(ctx, actor, tenant.id, { type, tenant: next });
  return next;
}

async function updateTenant(
  ctx: AuthContext,
  { id, slug }: Tenant,
  changes: Partial<TenantFields>,
): Promise<Tenant> {
  if (changes.slug !== undefined && changes.slug !== slug) assertSlug(ctx, changes.slug);
  const row = await unlessSlugTaken(ctx, { id, slug: changes.slug }, async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const update = { ...changes, updatedAt: new Date() };
    return adapter.update<Tenant>({ model: "tenant", where: clauses({ id }), update });
  });
  if (!row) throw tenantError("TENANT_NOT_FOUND");
  await forgetTenant(ctx, row.id, row.slug);
  return toTenant(row);
}

/** Refuses a taken slug. Looks again after a failed write: adapters have no common error for it. */
async function unlessSlugTaken<T>(
  ctx: AuthContext,
  { id, slug }: { id?: string; slug?: string | undefined },
  write: () => Promise<T>,
): Promise<T> {
  const assertFree = async () => {
    const holder = slug === undefined ? null : await findTenant(ctx, "slug", slug);
    if (holder && holder.id !== id) throw managementError("TENANT_ALREADY_EXISTS");
  };
  await assertFree();
  try {
    return await write();
  } catch (error) {
    await assertFree();
    throw error;
  }
}

/** A DNS label, so that every slug can be a subdomain. */
const SLUG = /^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/;

/**
 * Slugs that are always reserved. Browsers and mail programs ask these hosts of a domain for their
 * configuration, so a tenant with such a subdomain could configure them.
 */
const CONFIGURES_CLIENTS = ["autoconfig", "autodiscover", "mta-sts", "wpad"];

export const isReservedSlug = (ctx: AuthContext, slug: string): boolean =>
  [...managementOptions(ctx).reservedSlugs, ...CONFIGURES_CLIENTS].includes(slug);

function assertSlug(ctx: AuthContext, slug: string): void {
  if (!SLUG.test(slug)) throw managementError("INVALID_SLUG");
  if (isReservedSlug(ctx, slug)) throw managementError("SLUG_RESERVED");
}

/** Suspends the tenant until `purgeTenants` deletes it. Returns the time when it may. */
export async function scheduleDeletion(
  ctx: AuthContext,
  actor: TenantActor,
  tenant: Tenant,
  seconds: number,
): Promise<Date> {
  const deleteAt = new Date(Date.now() + seconds * 1000);
  const changed = await setStatus(ctx, tenant, { status: "deleting", deleteAt });
  const change = { type: "tenant:deletion-scheduled", tenant: changed, deleteAt } as const;
  await emit(ctx, actor, tenant.id, change);
  return deleteAt;
}

async function setStatus(
  ctx: AuthContext,
  tenant: Tenant,
  status: Pick<Tenant, "status" | "deleteAt">,
): Promise<Tenant> {
  assertNotDue(tenant);
  const changes = { ...status, updatedAt: new Date() };
  await endSessions(ctx, tenant.id, changes);
  return { ...tenant, ...changes };
}

/** Refuses to cancel a deletion that is due: a purge may already be deleting rows. */
function assertNotDue({ status, deleteAt }: Tenant): void {
  if (status !== "deleting" || (deleteAt && deleteAt > new Date())) return;
  throw managementError("TENANT_DELETING");
}

/**
 * Ends every session of a tenant by `sessionsEndedAt`. Deleting rows is not enough: secondary
 * storage and cookies cannot be searched, and other processes may create sessions while they have
 * the tenant in their cache, for ten seconds.
 */
export async function endSessions(
  ctx: AuthContext,
  tenantId: string,
  changes: Partial<Tenant> = {},
): Promise<void> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = clauses({ id: tenantId });
  const update = { ...changes, sessionsEndedAt: new Date() };
  if (!(await adapter.updateMany({ model: "tenant", where, update }))) {
    throw tenantError("TENANT_NOT_FOUND");
  }
  await forgetTenant(ctx, tenantId);
  if (!ctx.tables.session) return;
  // After the commit: until then, requests outside of the transaction may create sessions.
  await queueAfterTransactionHook(() =>
    runInScope(scopeOf(tenantId), async () => {
      const adapter = await getCurrentAdapter(ctx.adapter);
      await despiteDeadlocks(ctx, () => deleteAllOf(ctx, adapter, "session", []));
      // Approved device codes are deleted as well, because a device could still exchange one for a
      // session.
      if (!isolationOf(ctx)?.isolatedModel("deviceCode")) return;
      const where = clauses({ status: "approved" });
      await despiteDeadlocks(ctx, () => adapter.deleteMany({ model: "deviceCode", where }));
    }),
  );
}

/** Characters that no adapter escapes in `contains`: `listTenants` then compares in memory. */
const WILDCARD = /[%_\\]/;

/** Lists all tenants, oldest first, or the part that the caller asks for. */
export async function listTenants(
  ctx: AuthContext,
  { limit = ALL, offset = 0, search = "", sort = "createdAt" }: z.infer<typeof listQuery> = {},
): Promise<Tenant[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const field = sort.replace("-", "");
  const sortBy = { field, direction: sort === field ? "asc" : "desc" } as const;
  const find = async (part: { where?: Where[]; offset?: number; limit: number }) =>
    (await adapter.findMany<Tenant>({ model: "tenant", sortBy, ...part })).map(toTenant);
  if (WILDCARD.test(search)) {
    const text = search.toLowerCase();
    const isMatch = ({ name, slug }: Tenant) => `${name}\0${slug}`.toLowerCase().includes(text);
    return (await find({ limit: ALL })).filter(isMatch).slice(offset, offset + limit);
  }
  const contains = { operator: "contains", value: search, mode: "insensitive" } as const;
  const where = ["name", "slug"].map((field) => ({ field, connector: "OR" as const, ...contains }));
  return find({ ...(search && { where }), offset, limit });
}
