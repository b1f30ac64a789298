import type { HookEndpointContext } from "better-auth";
import { adminTarget } from "../admin-endpoints";
import { asErrorRedirect, hasNoRequest } from "../endpoint";
import { tenantError } from "../errors";
import type { Endpoint } from "../request";
import { prefixesIn } from "../session-tokens";
import { lookUpTenant } from "./tenants";

/**
 * R2: returns the id of the tenant in which a request is about to run. Refuses a tenant that does
 * not exist or is not active.
 */
export async function requireTenantId(ctx: HookEndpointContext, tenantId: string | undefined) {
  if (tenantId === undefined) throw tenantError("TENANT_ID_REQUIRED");
  const tenant = await lookUpTenant(ctx.context, tenantId);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  if (tenant.status !== "active") requireVisitor(ctx as Endpoint);
  return tenantId;
}

/**
 * Refuses to enter a suspended tenant. On admin endpoints, lets server code and callers with a token
 * of the platform through; `openSession` decides later whether they are operators.
 */
function requireVisitor(endpoint: Endpoint): void {
  const { request, headers, context } = endpoint;
  const call = { request, headers, context } as HookEndpointContext;
  const mayVisit = hasNoRequest(endpoint) || prefixesIn(call)[0] === null;
  if (adminTarget(endpoint) && mayVisit) return;
  throw asErrorRedirect(tenantError("TENANT_SUSPENDED"));
}
