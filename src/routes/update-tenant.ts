import type { GenericEndpointContext } from "better-auth";
import type * as z from "zod";
import { requireTenant } from "../naming/request";
import type { ResolvedOptions } from "../options";
import { emit, type TenantActor } from "../tenants/events";
import type { Tenant } from "../tenants/find";
import { endAllSessions } from "../tenants/status";
import { changeTenant } from "../tenants/store";
import type { updateBody } from "./input";
import { assertTarget, notAllowed, ownTenantOf, requireManager } from "./management";
import { readPolicy } from "./policy-input";

type Body = z.infer<typeof updateBody>;

/** Changes what is given of a tenant, if the caller may. */
export async function updateTenant(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  body: Body,
): Promise<Tenant> {
  const { tenantId, endSessions: endsSessions, policy: given, ...changes } = body;
  const actor = await requireUpdater(ctx, options, body);
  await assertTarget(ctx, options, tenantId || undefined);
  const target = tenantId ?? ownTenantOf(actor, options);
  const tenant = await requireTenant(ctx, target || undefined);
  const policy = await readPolicy(ctx.context, actor, tenant.id, given, options);
  const changed = await changeTenant(ctx.context, options, actor, tenant, { ...changes, policy });
  if (policy !== undefined) {
    const change = { type: "policy:changed", before: tenant.policy, after: policy } as const;
    await emit(ctx.context, options, actor, tenant.id, change);
  }
  if (endsSessions) await endAllSessions(ctx.context, tenant);
  return changed;
}

/** The policy is a matter of its own. A tenant's administrator never changes how it is found. */
async function requireUpdater(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  { tenantId, policy, endSessions, ...changes }: Body,
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
