import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { findTenantById } from "../tenants/store";
import { nameTenant } from "./resolve";
import { SCOPED } from "./run";
import { createScope, currentScope, type Scope } from "./scope";
import { type EnterScope, isAdminPath } from "./settle";

type Hooks = NonNullable<BetterAuthPlugin["hooks"]>;
export type BeforeHook = NonNullable<Hooks["before"]>[number];
export type AfterHook = NonNullable<Hooks["after"]>[number];

/**
 * Enters the scope on better-auth's own endpoints: a request to any of them that names a tenant
 * runs inside it (R2). This plugin's endpoints do it themselves, each in its own way.
 */
export function enterNamedTenant(options: ResolvedOptions, enter: EnterScope): BeforeHook {
  /**
   * A call of `auth.api.*` from inside a request is about that request's tenant. It may say so,
   * and may not say otherwise: two tenants in one scope would be a hole in the border.
   */
  function stayIn(scope: Scope, named: string | undefined, endpoint: HookEndpointContext): void {
    if (named !== undefined && named !== scope.tenantId) {
      throw APIError.from("CONFLICT", TENANT_AUTH_ERROR_CODES.TENANT_SCOPE_CONFLICT);
    }
    enter(scope, endpoint);
  }

  return {
    // Says no at once where nothing names a tenant: the hook would cost every request otherwise.
    matcher: (ctx) =>
      !(SCOPED in ctx.context) &&
      !ctx.path?.startsWith("/tenant/") &&
      Boolean(currentScope() || options.resolveTenantId || nameTenant(namesOf(ctx, options))),

    handler: createAuthMiddleware(async (ctx) => {
      const outer = currentScope();
      if (outer) return stayIn(outer, nameTenant(namesOf(ctx, options)), ctx);
      const resolved = await options.resolveTenantId?.(ctx);
      const tenantId = nameTenant({ resolved, ...namesOf(ctx, options) });
      if (tenantId === undefined) return;
      // In a tenant that does not exist there simply is no session; that look-up stays one query.
      if (ctx.path === "/get-session") return void enter(createScope(tenantId), ctx);
      const tenant = await findTenantById(ctx.context, tenantId);
      if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
      const scope = createScope(tenant.id);
      if (isAdminPath(ctx.path)) scope.admin = "visits";
      enter(scope, ctx);
    }),
  };
}

/** The body names a tenant on this plugin's endpoints only: elsewhere `tenantId` is not ours. */
function namesOf(ctx: HookEndpointContext, options: ResolvedOptions) {
  return {
    query: ctx.query,
    header: (ctx.headers ?? ctx.request?.headers)?.get(options.tenantHeader),
  };
}
