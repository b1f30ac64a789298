import type { HookEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { nameTenant } from "../scope/resolve";
import { getTenantId } from "../scope/scope";
import { findTenantById, type Tenant } from "./store";

/** R1 for a request: what the resolver says, else what the request says. */
export async function namedTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
): Promise<string | undefined> {
  const named = nameTenant({ resolved: await resolved(ctx, options), ...saidNames(ctx, options) });
  // A call from inside a tenant's request, or from `runInTenant`, need not say it again.
  return named ?? getTenantId() ?? undefined;
}

/** R1 without the resolver: what the request itself says. */
export function saidTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
): string | undefined {
  return nameTenant(saidNames(ctx, options));
}

/** The body names a tenant on this plugin's endpoints only: elsewhere `tenantId` is not ours. */
function saidNames(ctx: HookEndpointContext, options: ResolvedOptions) {
  return {
    body: ctx.path?.startsWith("/tenant/") ? ctx.body : undefined,
    query: ctx.query,
    header: (ctx.headers ?? ctx.request?.headers)?.get(options.tenantHeader),
  };
}

// The application's resolver may be slow. The hook and the endpoint of one call share its answer.
const answers = new WeakMap<object, ReturnType<typeof ask>>();

function resolved(ctx: HookEndpointContext, options: ResolvedOptions) {
  const known = answers.get(ctx.context);
  if (known) return known;
  const answer = ask(ctx, options);
  answers.set(ctx.context, answer);
  return answer;
}

const ask = async (ctx: HookEndpointContext, options: ResolvedOptions) =>
  options.resolveTenantId?.(ctx);

/** R2: the tenant has to be named, and has to exist. */
export async function requireTenant(
  ctx: HookEndpointContext,
  tenantId: string | undefined,
): Promise<Tenant> {
  if (tenantId === undefined) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.TENANT_ID_REQUIRED);
  }
  const tenant = await findTenantById(ctx.context, tenantId);
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return tenant;
}
