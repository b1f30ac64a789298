import type { HookEndpointContext } from "better-auth";
import { CALLBACK_PATH, isTenantRoute, setsEmail, TENANT_ROUTES } from "../constants";
import { isOutermost, noteEndpoint, type TenantRoute, tenantRouteOf } from "../endpoint";
import { tenantError } from "../errors";
import type { Claim } from "../extension";
import { extensionsWith } from "../extensions";
import { type BeforeHook, plainHook } from "../hooks";
import { coreOptions, isolationOf } from "../isolation";
import { isManagement } from "../management-calls";
import { TENANT_ID } from "../prefix";
import {
  currentRequest,
  enter,
  enteredScope,
  getTenantId,
  isScopeFinal,
  scopeOf,
} from "../request";
import { prefixesIn } from "../session-tokens";
import { isSignIn } from "../sign-in-endpoints";
import { requireTenantId } from "../tenants/require";
import { cachedTenant, lookUpTenant } from "../tenants/tenants";
import { isSignedIn, removeForeignCredentials } from "./credentials";
import { namedTenantId, namesInRequest, requestedTenantId, resolvedTenantId } from "./resolve";

/**
 * Enters the scope of the tenant that a request names (R1, R2), on every endpoint except two kinds,
 * before other hooks and the endpoint read anything. Management names a target tenant instead (R7),
 * and the state of a provider's callback leads to its tenant.
 */
export const enterNamedTenant: BeforeHook = {
  matcher: () => true,

  handler: plainHook(async (ctx) => {
    noteEndpoint(ctx as never);
    const route = tenantRouteOf(ctx);
    await enterOrStay(ctx, route);
    // better-auth's own endpoint would take `tenantId` for a field of the application.
    if (route) delete ctx.body?.tenantId;
  }),
};

const findClaimants = ({ context }: HookEndpointContext) =>
  extensionsWith(isolationOf(context), "claim");

/**
 * R4: enters the tenant that an extension claims, by a credential that only the extension can read.
 */
export const enterClaimed: BeforeHook = {
  matcher: (ctx) => findClaimants(ctx).length > 0,

  handler: plainHook(async (ctx) => {
    for (const extension of findClaimants(ctx)) {
      const claim = await extension.claim(ctx, "credential");
      if (claim) await enterClaim(ctx, claim);
    }
  }),
};

/**
 * Enters the tenant of a claim, unless the scope is decided. Only here does the claim of an
 * extension change the scope.
 */
async function enterClaim(ctx: HookEndpointContext, claim: Claim): Promise<void> {
  const isDecided = claim.overridesEmptyResolver ? isScopeFinal() : enteredScope() !== undefined;
  if (!isDecided) {
    enter(scopeOf(await tenantToEnter(ctx, claim)));
    if (claim.countsAsUnnamed) currentRequest().enteredBy = "credential";
  }
  const isHere = getTenantId() === claim.tenantId;
  claim.onScopeKnown?.(isHere);
  if (isHere && claim.isTenantItself) currentRequest().isTenantItself = true;
}

async function tenantToEnter(ctx: HookEndpointContext, { tenantId, unavailable }: Claim) {
  if (tenantId === null) return null;
  if (unavailable !== "enter") return requireTenantId(ctx, tenantId);
  return (await lookUpTenant(ctx.context, tenantId)) ? tenantId : null;
}

/**
 * R4: enters the tenant in the prefix of the session token, if nothing else has resolved the
 * tenant. Removes credentials of other scopes (R5).
 */
export const enterByPrefix: BeforeHook = {
  matcher: () => true,

  handler: plainHook(async (ctx) => {
    if (!isOutermost(ctx) || enteredScope()) return removeForeignCredentials(ctx);
    const prefixes = prefixesIn(ctx);
    currentRequest().sentPrefixes = new Set(prefixes);
    const [tenantId = null] = prefixes;
    if (tenantId === null) {
      enter(scopeOf(null));
      return removeForeignCredentials(ctx);
    }
    const tenant = await lookUpTenant(ctx.context, tenantId);
    enter(scopeOf(tenant?.status === "active" ? tenantId : null));
    currentRequest().enteredBy = "credential";
    removeForeignCredentials(ctx);
    if (needsNoSession(ctx.path)) await leaveIfSignedOut(ctx);
    return undefined;
  }),
};

/**
 * Returns, by its path, whether an endpoint may create users, sessions or mails without a session.
 * Both steps of a flow must match, or the cookie of an ended session would lead one step into
 * another tenant.
 */
const needsNoSession = (path = "") =>
  setsEmail(path) ||
  isSignIn(path) ||
  /password|verification|otp|two-factor|passkey|siwe/.test(path);

/**
 * Leaves the tenant of a token's prefix if the token has no valid session (forged, ended, expired).
 * The token must not lead a sign-in or sign-up into this tenant, because better-auth does not check
 * its session there.
 */
async function leaveIfSignedOut(ctx: HookEndpointContext): Promise<void> {
  if (await isSignedIn(ctx)) return;
  enter(scopeOf(null));
  removeForeignCredentials(ctx);
}

/**
 * Enters the tenant that a request names. Keeps the scope for a call inside of a request, except of
 * a tenant route.
 */
async function enterOrStay(ctx: HookEndpointContext, route?: TenantRoute): Promise<void> {
  if (isManagement(ctx)) return;
  // A POST to `/tenant/callback/:id` only redirects to a GET, whose state leads to the tenant.
  if (TENANT_ROUTES[ctx.path ?? ""] === CALLBACK_PATH) return;
  const isInside = !isOutermost(ctx) || enteredScope() !== undefined;
  // A tenant route that a request calls finds its own scope, in a separate request.
  if (isInside) return isTenantRoute(ctx.path) ? undefined : stayInScope(ctx);
  for (const extension of findClaimants(ctx)) {
    const claim = await extension.claim(ctx, "path");
    if (claim) return enterClaim(ctx, claim);
  }
  return enterCached(ctx) ? undefined : resolveScope(ctx, route);
}

/**
 * Enters a tenant that the request names by id, if it is known to be active. `resolveScope` would
 * enter the same tenant, after more steps. Returns false if it has to decide.
 */
function enterCached(ctx: HookEndpointContext): boolean {
  if (coreOptions(ctx.context).resolveTenantId) return false;
  const { body, query, header } = namesInRequest(ctx);
  const tenantId = body ?? query ?? header;
  if (!tenantId || cachedTenant(ctx.context, tenantId)?.status !== "active") return false;
  enter(scopeOf(tenantId));
  return true;
}

async function resolveScope(ctx: HookEndpointContext, route?: TenantRoute): Promise<void> {
  const requested = await requestedTenantId(ctx);
  const tenantId = requested ?? route?.tenantId ?? undefined;
  if (tenantId !== undefined || route) {
    // No lookup for `/get-session`: a tenant that does not exist has no sessions, and those of a
    // suspended one are invalid (`openSession`). So the response is null, not 404 or 403.
    const skipsLookup = ctx.path === "/get-session" && TENANT_ID.test(tenantId ?? "");
    enter(scopeOf((skipsLookup && tenantId) || (await requireTenantId(ctx, tenantId))));
  } else if ((await resolvedTenantId(ctx)) === false) {
    enter(scopeOf(null));
    currentRequest().enteredBy = "resolver without tenant";
  }
}

/**
 * Keeps the scope for a call from inside a request or `runInTenant`. The call may name the tenant
 * of this scope, but no other tenant: two tenants in one scope would break isolation.
 */
async function stayInScope(ctx: HookEndpointContext): Promise<void> {
  const tenantId = getTenantId();
  // Puts the tenant into the cache, from which features read (`cacheWithTenant`). `runInTenant`
  // reads nothing.
  if (tenantId) await lookUpTenant(ctx.context, tenantId);
  const claimed = await namedTenantId(ctx);
  if (claimed !== undefined && claimed !== tenantId) throw tenantError("TENANT_SCOPE_CONFLICT");
}
