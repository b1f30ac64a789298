import type { HookEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { nameTenant } from "../scope/resolve";
import { getTenantId } from "../scope/scope";
import { findTenantById, findTenantBySlug, type Tenant, tenantWasThere } from "./find";

/** R1 for a request: what the resolver says, else what the request says. */
export async function namedTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
): Promise<string | undefined> {
  const resolved = await resolvedTenantId(ctx, options);
  const named =
    resolved === false ? undefined : nameTenant({ resolved, ...saidNames(ctx, options) });
  // A call from inside a tenant's request, or from `runInTenant`, need not say it again.
  return named ?? getTenantId() ?? undefined;
}

/** Whether the resolver says that there is no tenant, whatever the request says. */
export async function isNobodys(ctx: HookEndpointContext, options: ResolvedOptions) {
  return (await resolvedTenantId(ctx, options)) === false;
}

/** The same for the target of a management call, which may be managed from a host of no tenant. */
export async function targetTenantId(ctx: HookEndpointContext, options: ResolvedOptions) {
  const named = await namedTenantId(ctx, options);
  return named ?? saidTenantId(ctx, options);
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

// The application's resolver may be slow. The hook and the endpoint of one call share its answer,
// and the tenant that was looked up for it.
const answers = new WeakMap<object, ReturnType<typeof ask>>();
const found = new WeakMap<object, Tenant>();

function resolvedTenantId(ctx: HookEndpointContext, options: ResolvedOptions) {
  const known = answers.get(ctx.context);
  if (known) return known;
  const answer = ask(ctx, options);
  answers.set(ctx.context, answer);
  return answer;
}

async function ask(ctx: HookEndpointContext, options: ResolvedOptions) {
  const answer = await options.resolveTenantId?.(ctx);
  if (typeof answer !== "object" || answer === null) return answer;
  const tenant = await findTenantBySlug(ctx.context, answer.slug);
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  found.set(ctx.context, tenant);
  return tenant.id;
}

/** R2: the tenant has to be named, and has to exist. */
export async function requireTenant(
  ctx: HookEndpointContext,
  tenantId: string | undefined,
): Promise<Tenant> {
  const id = assertNamed(tenantId);
  const tenant = foundBefore(ctx, id) ?? (await findTenantById(ctx.context, id));
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return tenant;
}

/** The same for sign-in, which needs only its id. */
export async function requireTenantId(
  ctx: HookEndpointContext,
  tenantId: string | undefined,
): Promise<string> {
  const id = assertNamed(tenantId);
  const exists = foundBefore(ctx, id) ?? (await tenantWasThere(ctx.context, id));
  if (!exists) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return id;
}

function assertNamed(tenantId: string | undefined): string {
  if (tenantId !== undefined) return tenantId;
  throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.TENANT_ID_REQUIRED);
}

function foundBefore({ context }: HookEndpointContext, id: string): Tenant | undefined {
  const tenant = found.get(context);
  return tenant?.id === id ? tenant : undefined;
}
