import type { GenericEndpointContext } from "better-auth";
import { createAuthMiddleware, getAuthoritativeSessionFromCtx, isAPIError } from "better-auth/api";
import { isOutermost } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import { serviceOf } from "../../core/extensions";
import type { AfterHook, BeforeHook } from "../../core/hooks";
import { isolationOf } from "../../core/isolation";
import { currentRequest, getTenantId, runInScope, scopeOf } from "../../core/request";
import { prefixesIn } from "../../core/session-tokens";
import { integrationsError } from "../integrations/errors";
import { notAllowed, ownTenantOf, requireManager } from "../management/management";
import type { TenantManagementAction } from "../management/options";
import { findPolicyRefusals } from "../policy/provider-findings";
import { enterpriseRequest } from "./request";
import { badRequest, isOneLabel } from "./sso-providers";

/** The action of each endpoint that better-auth lets every signed-in user call. */
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
 * Requires an administrator or an operator in a tenant, and an operator on the platform. A caller
 * who registers an identity provider can sign in as any user of that provider.
 */
export const requireSSOManager: BeforeHook = {
  matcher: ({ path }) => path !== undefined && Object.hasOwn(ACTIONS, path),

  handler: createAuthMiddleware(async (given) => {
    const ctx = given as GenericEndpointContext;
    const action = ACTIONS[ctx.path];
    if (!action) return;
    const tenantId = getTenantId();
    // Checks the caller in the scope of their session. The tenant is the target of the call (R7).
    const caller = withoutSession(ctx);
    const sent = currentRequest().sentHeaders ?? ctx.headers;
    if (sent) caller.headers = sent;
    // The prefix of the session token says which scope that is. The cookie is read outside the
    // tenant's scope, because it has the platform's name.
    const [home = null] = await runInScope(undefined, async () =>
      prefixesIn({ headers: sent, context: ctx.context }),
    );
    const { actor, guest } = await runInScope(scopeOf(home), async () => {
      const actor = await requireManager(caller, action, tenantId ?? undefined);
      // A call on the platform has no target, so `requireManager` lets every tenant's administrator
      // pass. They are refused here.
      if ((ownTenantOf(caller, actor) ?? tenantId) !== tenantId) throw notAllowed();
      const isGuest = actor !== "server" && actor.tenantId !== tenantId;
      return { actor, guest: isGuest ? await getAuthoritativeSessionFromCtx(caller) : null };
    }).catch(async (error: unknown) => {
      // R5: a session from another scope without rights here counts as no session.
      if (!isAPIError(error) || error.status !== "FORBIDDEN") throw error;
      if (await getAuthoritativeSessionFromCtx(withoutSession(ctx))) throw error;
      throw tenantError("UNAUTHORIZED");
    });
    if (action === "sso:verify") assertVerifiable(ctx, tenantId);
    if (actor === "server" || !actor.userId) return;
    if (isOutermost(ctx)) {
      enterpriseRequest.get().manager = { userId: actor.userId, isGuest: guest !== null };
    }
    // better-auth requires a session, and an operator has none in the tenant. So it gets the
    // operator's session of the platform.
    if (guest) ctx.context.session = guest;
  }),
};

/**
 * Returns a context in which better-auth reads the session again, without refreshing it: a refresh
 * would set the cookie of another scope.
 */
const withoutSession = (ctx: GenericEndpointContext): GenericEndpointContext => ({
  ...ctx,
  query: { ...ctx.query, disableRefresh: true },
  context: { ...ctx.context, session: null },
});

/**
 * Refuses better-auth's own domain verification in two cases. With tenantDomains(), a tenant must
 * use that instead, because better-auth never checks a record again. An id with dots could prove
 * another owner's domain (see `isOneLabel`).
 */
function assertVerifiable({ context, body }: GenericEndpointContext, tenantId: string | null) {
  if (tenantId !== null && serviceOf(isolationOf(context), "domains")) {
    const message = "In a tenant, tenantDomains() verifies domains: call /tenant/domain/add";
    throw integrationsError("PLATFORM_ONLY", message);
  }
  if (isOneLabel(body?.providerId)) return;
  const message = "[body.providerId] Register the provider again, with an id without dots";
  throw badRequest("INVALID_PROVIDER_ID", message);
}

/** Adds findings to a registration's response if the policy forbids the provider. */
export const addPolicyFindings: AfterHook = {
  matcher: ({ path }) => path === "/sso/register",

  handler: createAuthMiddleware(async ({ context }) => {
    const { returned } = context;
    if (typeof returned !== "object" || returned === null || isAPIError(returned)) return;
    const findings = await findPolicyRefusals(context, getTenantId(), "sso");
    if (findings.length > 0) context.returned = { ...returned, findings };
  }),
};

/** Fields that decide where and how the client secret is sent. */
const DESTINATIONS = ["discoveryEndpoint", "tokenEndpoint", "tokenEndpointAuthentication"];

/**
 * Requires the client secret to change its destination. Otherwise, a manager could have the stored
 * secret sent to their own address.
 */
export const requireSecretForNewAddress: BeforeHook = {
  matcher: ({ path }) => path === "/sso/update-provider",

  handler: createAuthMiddleware(async ({ body }) => {
    // Runs before better-auth validates the body, so the values may have any type.
    const { issuer, oidcConfig: given } = (body ?? {}) as Record<string, unknown>;
    // Without an `oidcConfig`, an update keeps the stored one, so the secret's destination stays.
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
