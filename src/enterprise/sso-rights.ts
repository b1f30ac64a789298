import type { GenericEndpointContext } from "better-auth";
import {
  APIError,
  createAuthMiddleware,
  getAuthoritativeSessionFromCtx,
  isAPIError,
} from "better-auth/api";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import type { ResolvedOptions, TenantManagementAction } from "../options";
import { effectiveScope, isOutermost } from "../request/endpoint";
import { prefixesIn, sentHeaders } from "../request/prefix";
import { runInScope, scopeOf } from "../request/scope";
import { notAllowed, ownTenantOf, requireManager } from "../tenants/management";
import { ssoManager } from "./sso-rows";

/** What better-auth lets everybody do who is signed in. */
const ACTIONS: Readonly<Record<string, TenantManagementAction>> = {
  "/sso/register": "sso:register",
  "/sso/providers": "sso:list",
  "/sso/get-provider": "sso:list",
  "/sso/update-provider": "sso:update",
  "/sso/delete-provider": "sso:delete",
  "/sso/request-domain-verification": "sso:verify",
  "/sso/verify-domain": "sso:verify",
};

/**
 * An identity provider says who people are, so whoever registers one can become everybody whom it
 * may sign in. In a tenant that is up to its administrators and to managers; on the platform, where
 * it would be the operators themselves, up to managers alone.
 */
export function requireSSOManager(options: ResolvedOptions): BeforeHook {
  return {
    matcher: ({ path }) => path !== undefined && Object.hasOwn(ACTIONS, path),

    handler: createAuthMiddleware(async (given) => {
      const ctx = given as GenericEndpointContext;
      const action = ACTIONS[ctx.path];
      if (!action) return;
      const { tenantId } = effectiveScope();
      // The caller stays in their own scope, and the tenant is what the call is about (R7).
      const caller = withoutSession(ctx);
      const sent = sentHeaders.get() ?? ctx.headers;
      if (sent) caller.headers = sent;
      const [home = null] = prefixesIn({ headers: sent, context: ctx.context });
      const manager = await runInScope(scopeOf(home), async () => {
        const actor = await requireManager(caller, options, action, tenantId ?? undefined);
        // On the platform there is no target that a tenant's administrator could be held to.
        if ((ownTenantOf(actor, options) ?? tenantId) !== tenantId) throw notAllowed();
        const isGuest = actor !== "server" && actor.tenantId !== tenantId;
        return { actor, guest: isGuest ? await getAuthoritativeSessionFromCtx(caller) : null };
      }).catch(async (error: unknown) => {
        // R5: the session of somebody who is not from here, and may manage nothing here, is none.
        if (!isAPIError(error) || error.status !== "FORBIDDEN") throw error;
        if (await getAuthoritativeSessionFromCtx(withoutSession(ctx))) throw error;
        throw tenantError("UNAUTHORIZED");
      });
      if (manager.actor === "server" || !manager.actor.userId) return;
      const { userId } = manager.actor;
      if (isOutermost(ctx)) ssoManager.set({ userId, isGuest: manager.guest !== null });
      // A manager of the platform has no session in the tenant, and better-auth asks for one.
      if (manager.guest) ctx.context.session = manager.guest;
    }),
  };
}

/**
 * For a session that is read anew. It is not refreshed: here it may be another tenant's, and the
 * cookie would not go out.
 */
const withoutSession = (ctx: GenericEndpointContext): GenericEndpointContext => ({
  ...ctx,
  query: { ...ctx.query, disableRefresh: true },
  context: { ...ctx.context, session: null },
});

/** What says where a client secret is sent, and whether it is. */
const DESTINATIONS = ["discoveryEndpoint", "tokenEndpoint", "tokenEndpointAuthentication"];

/**
 * Whoever changes where a provider lives has to know its secret: the stored one would be sent to
 * the new address, which may be anybody's.
 */
export const requireSecretForNewAddress: BeforeHook = {
  matcher: ({ path }) => path === "/sso/update-provider",

  handler: createAuthMiddleware(async ({ body }) => {
    // Not looked at by anybody yet: better-auth refuses what is no object.
    const { issuer, oidcConfig: given } = (body ?? {}) as {
      issuer?: unknown;
      oidcConfig?: unknown;
    };
    // Without an `oidcConfig` of its own, an update leaves the stored one as it is.
    if (typeof given !== "object" || given === null) return;
    const oidcConfig = given as Record<string, unknown>;
    const moves = issuer || DESTINATIONS.some((name) => oidcConfig[name]);
    const needsNone = oidcConfig.tokenEndpointAuthentication === "private_key_jwt";
    if (!moves || needsNone || oidcConfig.clientSecret) return;
    throw new APIError("BAD_REQUEST", {
      code: "VALIDATION_ERROR",
      message: "[body.oidcConfig.clientSecret] Required to change where the provider lives",
    });
  }),
};
