import type { GenericEndpointContext } from "better-auth";
import type * as z from "zod";
import { tenantError } from "../errors";
import { requireTenant } from "../naming/request";
import type { ResolvedOptions } from "../options";
import { emit, type TenantActor } from "../tenants/events";
import { findTenantById, findTenantBySlug, type Tenant } from "../tenants/find";
import { endSessions, removeTenant } from "../tenants/status";
import { changeTenant, createTenant, listTenants } from "../tenants/store";
import type { createBody, deleteBody, listQuery, updateBody } from "./input";
import { assertTarget, notAllowed, ownTenantOf, requireManager } from "./management";
import { assertWayBack, parsePolicy } from "./policy-input";

/*
 * What managers do with tenants. Loaded by the first who comes: servers that only sign people in
 * start without it.
 */

type UpdateBody = z.infer<typeof updateBody>;

export async function addTenant(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  { metadata = null, policy: given = null, ...tenant }: z.infer<typeof createBody>,
): Promise<Tenant> {
  const actor = await requireManager(ctx, options, "tenant:create");
  const policy = given && (await parsePolicy(ctx.context, undefined, given));
  return createTenant(ctx.context, options, actor, { ...tenant, metadata, policy });
}

/** A tenant by its id or by its slug, if the caller may see it. */
export async function readTenant(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  { id, slug }: { id?: string | undefined; slug?: string | undefined },
): Promise<Tenant> {
  const tenant = id
    ? await findTenantById(ctx.context, id)
    : slug && (await findTenantBySlug(ctx.context, slug));
  // Who may not manage learns nothing, not even whether the tenant exists.
  const target = (tenant || undefined)?.id ?? id;
  const own = ownTenantOf(await requireManager(ctx, options, "tenant:get", target), options);
  if (own && !id && !slug) return requireTenant(ctx, own);
  // A tenant's administrator learns nothing of others, not even which slugs there are.
  if (own && target !== own) throw notAllowed();
  if (!id === !slug) throw tenantError("TENANT_ID_OR_SLUG_REQUIRED");
  await assertTarget(ctx, options, target);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  return tenant;
}

/** The tenants that the caller may see. */
export async function readTenants(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  query: z.infer<typeof listQuery> | undefined,
): Promise<Tenant[]> {
  const own = ownTenantOf(await requireManager(ctx, options, "tenant:list"), options);
  return own ? [await requireTenant(ctx, own)] : listTenants(ctx.context, query);
}

/** Changes what is given of a tenant, if the caller may. */
export async function updateTenant(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  body: UpdateBody,
): Promise<Tenant> {
  const { tenantId, endSessions: shouldEndSessions, policy: given, ...changes } = body;
  const actor = await requireUpdater(ctx, options, body);
  await assertTarget(ctx, options, tenantId || undefined);
  const target = tenantId ?? ownTenantOf(actor, options);
  const tenant = await requireTenant(ctx, target || undefined);
  const policy = given === undefined ? given : await parsePolicy(ctx.context, tenant.id, given);
  if (policy) await assertWayBack(ctx.context, actor, tenant.id, policy, options);
  const changed = await changeTenant(ctx.context, options, actor, tenant, { ...changes, policy });
  if (policy !== undefined) {
    const change = { type: "policy:changed", before: tenant.policy, after: policy } as const;
    await emit(ctx.context, options, actor, tenant.id, change);
  }
  if (shouldEndSessions) await endSessions(ctx.context, tenant.id);
  return changed;
}

/** The policy is a matter of its own. A tenant's administrator never changes how it is found. */
async function requireUpdater(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  { tenantId, policy, endSessions, ...changes }: UpdateBody,
): Promise<TenantActor> {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  const ofPolicy = policy !== undefined || endSessions;
  let actor: TenantActor = "server";
  if (ofPolicy) actor = await requireManager(ctx, options, "policy:update", tenantId);
  if (given.length || !ofPolicy) {
    actor = await requireManager(ctx, options, "tenant:update", tenantId);
  }
  const isBeyond = given.some(([name]) => name !== "name" && name !== "metadata");
  if (isBeyond && ownTenantOf(actor, options)) throw notAllowed();
  return actor;
}

export async function deleteTenant(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  body: z.infer<typeof deleteBody>,
) {
  const tenantId = body.tenantId || undefined;
  const actor = await requireManager(ctx, options, "tenant:delete", body.tenantId);
  await assertTarget(ctx, options, tenantId);
  const tenant = await requireTenant(ctx, tenantId);
  return removeTenant(ctx.context, options, actor, tenant, body);
}
