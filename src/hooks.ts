import type { HookEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { ResolvedOptions } from "./options";
import { type BeforeHook, silentHook } from "./scope/hook";
import { SCOPED } from "./scope/run";
import { createScope, currentScope, isOutermost, noteEndpoint, type Scope } from "./scope/scope";
import { type EnterScope, isAdminEndpoint, settleScope } from "./scope/settle";
import { isNobodys, namedTenantId, requireTenantId, saidTenantId } from "./tenants/naming";

/**
 * Enters the scope of the tenant that a request names, before anything else runs (R2): on every
 * endpoint of better-auth, and on this plugin's sign-in. Management names a target instead (R7),
 * and the OAuth callbacks go by their state.
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

  /** Where the resolver says that there is no tenant, a session of one is no session (R5). */
  async function enterPlatform(endpoint: HookEndpointContext): Promise<void> {
    // Who may see the people of all tenants is known by the session.
    const settled = isAdminEndpoint(endpoint) ? await settleScope(enter) : undefined;
    if (settled?.tenantId === null) return;
    const scope = createScope(null);
    scope.byHost = true;
    enter(scope, endpoint);
  }

  return {
    // Says no at once where nothing names a tenant: the hook would cost every request otherwise.
    matcher: (ctx) => {
      noteEndpoint(ctx);
      if (!entersByName(ctx)) return false;
      return Boolean(
        currentScope() ||
          options.resolveTenantId ||
          saidTenantId(ctx, options) ||
          choosesProviderFirst(ctx),
      );
    },

    handler: silentHook(async (ctx) => {
      const outer = currentScope() ?? (isOutermost(ctx) ? undefined : await settleScope(enter));
      if (outer) return stayIn(outer, saidTenantId(ctx, options), ctx);
      const named = await namedTenantId(ctx, options);
      if (named === undefined) {
        if (await isNobodys(ctx, options)) await enterPlatform(ctx);
        else if (choosesProviderFirst(ctx)) await settleScope(enter);
        return;
      }
      // In a tenant that does not exist there simply is no session; that look-up stays one query.
      const scope = createScope(
        ctx.path === "/get-session" ? named : await requireTenantId(ctx, named),
      );
      if (isAdminEndpoint(ctx)) scope.admin = "visits";
      enter(scope, ctx);
    }),
  };
}

/**
 * Where somebody who is signed in signs in with a provider, better-auth chooses the provider before
 * it looks at the database, which is when the session would have said whose provider it is (R4).
 */
function choosesProviderFirst({ path, body, headers }: HookEndpointContext): boolean {
  const chooses = path?.startsWith("/sign-in/") && (body?.provider ?? body?.providerId);
  return Boolean(chooses && headers?.has("cookie"));
}

/** Sign-in and sign-up under a tenant. */
export const isOwnSignIn = (path = "") => /^\/tenant\/sign-(in|up)\//.test(path);

function entersByName({ path = "", context }: HookEndpointContext): boolean {
  if (SCOPED in context || path === "/callback/:id") return false;
  // A call of our sign-in from inside a request has a scope of its own, and enters it itself.
  if (isOwnSignIn(path)) return isOutermost({ context }) && !currentScope();
  return !path.startsWith("/tenant/");
}
