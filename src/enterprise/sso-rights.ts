import type { GenericEndpointContext } from "better-auth";
import { createAuthMiddleware, getAuthoritativeSessionFromCtx, isAPIError } from "better-auth/api";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import type { TenantManagementAction } from "../options";
import { effectiveScope, isOutermost } from "../request/endpoint";
import { prefixesIn, sentHeaders } from "../request/prefix";
import { runInScope, scopeOf } from "../request/scope";
import { notAllowed, ownTenantOf, requireManager } from "../tenants/management";
import { domainsIn } from "../tenants/plugins";
import { badRequest, isOneLabel, ssoManager } from "./sso-providers";

/** Endpoints that better-auth lets every signed-in user call. */
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
 * A caller who registers an identity provider can become every user that it signs in. In a tenant
 * this takes one of its administrators or an operator; on the platform, an operator.
 */
export const requireSSOManager: BeforeHook = {
  matcher: ({ path }) => path !== undefined && Object.hasOwn(ACTIONS, path),

  handler: createAuthMiddleware(async (given) => {
    const ctx = given as GenericEndpointContext;
    const action = ACTIONS[ctx.path];
    if (!action) return;
    const { tenantId } = effectiveScope();
    // The caller stays in their own scope, and the tenant is the target of the call (R7).
    const caller = withoutSession(ctx);
    const sent = sentHeaders.get() ?? ctx.headers;
    if (sent) caller.headers = sent;
    // Outside the tenant, where the session cookie has the platform's name.
    const [home = null] = await runInScope(undefined, async () =>
      prefixesIn({ headers: sent, context: ctx.context }),
    );
    const { actor, guest } = await runInScope(scopeOf(home), async () => {
      const actor = await requireManager(caller, action, tenantId ?? undefined);
      // Without a target, on the platform, any tenant's administrator would pass.
      if ((ownTenantOf(caller, actor) ?? tenantId) !== tenantId) throw notAllowed();
      const isGuest = actor !== "server" && actor.tenantId !== tenantId;
      return { actor, guest: isGuest ? await getAuthoritativeSessionFromCtx(caller) : null };
    }).catch(async (error: unknown) => {
      // R5: a session from another scope that may manage nothing here is no session here.
      if (!isAPIError(error) || error.status !== "FORBIDDEN") throw error;
      if (await getAuthoritativeSessionFromCtx(withoutSession(ctx))) throw error;
      throw tenantError("UNAUTHORIZED");
    });
    if (action === "sso:verify") assertVerifiable(ctx, tenantId);
    if (actor === "server" || !actor.userId) return;
    if (isOutermost(ctx)) ssoManager.set({ userId: actor.userId, isGuest: guest !== null });
    // An operator has no session in the tenant, and better-auth requires one.
    if (guest) ctx.context.session = guest;
  }),
};

/** For reading a session again, without a refresh: the cookie of another scope is not sent. */
const withoutSession = (ctx: GenericEndpointContext): GenericEndpointContext => ({
  ...ctx,
  query: { ...ctx.query, disableRefresh: true },
  context: { ...ctx.context, session: null },
});

/** A record of better-auth's own proves a domain for one provider, and is never checked again. */
function assertVerifiable({ context, body }: GenericEndpointContext, tenantId: string | null) {
  if (tenantId !== null && domainsIn(context)) {
    const message = "In a tenant, tenantDomains() verifies domains: call /tenant/domain/add";
    throw tenantError("PLATFORM_ONLY", message);
  }
  if (isOneLabel(body?.providerId)) return;
  const message = "[body.providerId] Register the provider again, with an id without dots";
  throw badRequest("INVALID_PROVIDER_ID", message);
}

/** Decide where the client secret is sent, and whether it is. */
const DESTINATIONS = ["discoveryEndpoint", "tokenEndpoint", "tokenEndpointAuthentication"];

/** Without the secret, a manager could have the stored one sent to an address of their own. */
export const requireSecretForNewAddress: BeforeHook = {
  matcher: ({ path }) => path === "/sso/update-provider",

  handler: createAuthMiddleware(async ({ body }) => {
    // Runs before better-auth validates the body.
    const { issuer, oidcConfig: given } = (body ?? {}) as Record<string, unknown>;
    // Without an `oidcConfig`, an update keeps the stored one.
    if (typeof given !== "object" || given === null) return;
    const oidcConfig = given as Record<string, unknown>;
    const moves = issuer || DESTINATIONS.some((name) => oidcConfig[name]);
    const needsNone = oidcConfig.tokenEndpointAuthentication === "private_key_jwt";
    if (!moves || needsNone || oidcConfig.clientSecret) return;
    throw badRequest(
      "VALIDATION_ERROR",
      "[body.oidcConfig.clientSecret] Required to change where the provider lives",
    );
  }),
};
