import type { GenericEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { nameTenant } from "../scope/resolve";
import { getTenantId } from "../scope/scope";
import { findTenantById, type Tenant } from "./store";

/** R1 on this plugin's own endpoints, where the body may name the tenant as well. */
export async function namedTenantId(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
): Promise<string | undefined> {
  const named = nameTenant({
    resolved: await options.resolveTenantId?.(ctx),
    body: ctx.body,
    query: ctx.query,
    header: (ctx.headers ?? ctx.request?.headers)?.get(options.tenantHeader),
  });
  // A call from inside a tenant's request, or from `runInTenant`, need not say it again.
  return named ?? getTenantId() ?? undefined;
}

/** R2: the tenant has to be named, and has to exist. */
export async function requireTenant(
  ctx: GenericEndpointContext,
  tenantId: string | undefined,
): Promise<Tenant> {
  if (tenantId === undefined) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.TENANT_ID_REQUIRED);
  }
  const tenant = await findTenantById(ctx.context, tenantId);
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return tenant;
}
