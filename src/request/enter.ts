import type { HookEndpointContext } from "better-auth";
import {
  CALLBACK_PATH,
  isManagement,
  isOwnPath,
  isTenantRoute,
  namesAddress,
  TENANT_ROUTES,
} from "../constants";
import { tenantError } from "../errors";
import { type BeforeHook, silentHook } from "../framework";
import { enterByState } from "../oauth/state";
import type { ResolvedOptions } from "../options";
import { isSignIn } from "../policy/methods";
import { cachedTenant, lookUpTenant } from "../tenants/cache";
import { isOutermost, noteEndpoint, type TenantRoute, tenantRouteOf } from "./endpoint";
import {
  isSignedIn,
  prefixesIn,
  removeForeignCredentials,
  sentPrefixes,
  TENANT_ID,
} from "./prefix";
import {
  claimedNames,
  claimedTenantId,
  claimsTenant,
  firstTenantId,
  requestedTenantId,
  requireTenantId,
  resolvedTenantId,
} from "./resolve";
import { currentScope, enter, enteredBy, enteredScope, type Scope, scopeOf } from "./scope";

/**
 * Enters the scope of the tenant that a request names (R1, R2), on every endpoint of better-auth and
 * on tenant routes, before anything is read. Management names a target instead (R7), and a provider's
 * callback goes by its state.
 */
export const enterNamedTenant = (options: ResolvedOptions): BeforeHook => ({
  matcher: () => true,

  handler: silentHook((ctx) => {
    noteEndpoint(ctx as never);
    if (!mayName(ctx, options) || enterCached(ctx, options)) return undefined;
    return enterByName(ctx, options);
  }),
});

/** Most requests that name a tenant name one that is cached, and need not wait either. */
function enterCached(ctx: HookEndpointContext, options: ResolvedOptions): boolean {
  const route = tenantRouteOf(ctx);
  if (options.resolveTenantId || !isOutermost(ctx) || enteredScope() || route?.callback)
    return false;
  if (isOwnPath(ctx.path) || ctx.path === CALLBACK_PATH) return false;
  const tenantId = firstTenantId(claimedNames(ctx, options, route !== undefined));
  if (!tenantId || cachedTenant(ctx.context, tenantId)?.status !== "active") return false;
  enter(scopeOf(tenantId));
  if (route) delete ctx.body?.tenantId;
  return true;
}

/**
 * R4: where nothing else has resolved the tenant, the prefix of the session token does. Credentials
 * of other scopes are removed (R5).
 */
export const enterByPrefix: BeforeHook = {
  matcher: () => true,

  handler: silentHook((ctx) => {
    if (!isOutermost(ctx) || enteredScope()) return removeForeignCredentials(ctx);
    const prefixes = prefixesIn(ctx);
    sentPrefixes.set(new Set(prefixes));
    const [tenantId = null] = prefixes;
    if (tenantId === null) {
      enter(scopeOf(null));
      return removeForeignCredentials(ctx);
    }
    const follow = (tenant?: { status: string }) => followPrefix(ctx, tenantId, tenant);
    const known = cachedTenant(ctx.context, tenantId);
    return known ? follow(known) : lookUpTenant(ctx.context, tenantId).then(follow);
  }),
};

function followPrefix(ctx: HookEndpointContext, tenantId: string, tenant?: { status: string }) {
  enter(scopeOf(tenant?.status === "active" ? tenantId : null));
  enteredBy.set("credential");
  removeForeignCredentials(ctx);
  return needsNoSession(ctx.path) ? leaveIfSignedOut(ctx) : undefined;
}

/** Endpoints that create users, sessions or mails for callers without a session. */
const needsNoSession = (path = "") =>
  namesAddress(path) || isSignIn(path) || /password|verification|otp/.test(path);

/**
 * A prefix without a valid session behind it (forged, ended, expired) must not put a sign-in or
 * sign-up into its tenant: better-auth does not look the session up there itself.
 */
async function leaveIfSignedOut(ctx: HookEndpointContext): Promise<void> {
  if (await isSignedIn(ctx)) return;
  enter(scopeOf(null));
  removeForeignCredentials(ctx);
}

/** Most requests name no tenant and need not wait here. */
function mayName(ctx: HookEndpointContext, options: ResolvedOptions): boolean {
  if (options.resolveTenantId) return true;
  if (isManagement(ctx.path)) return false;
  return (
    enteredScope() !== undefined ||
    claimsTenant(ctx, options) ||
    tenantRouteOf(ctx) !== undefined ||
    isTenantRoute(ctx.path) ||
    ctx.path === CALLBACK_PATH
  );
}

async function enterByName(ctx: HookEndpointContext, options: ResolvedOptions): Promise<void> {
  const route = tenantRouteOf(ctx);
  // A callback by POST becomes one by GET, which goes by its state.
  if (!isManagement(ctx.path) && TENANT_ROUTES[ctx.path ?? ""] !== CALLBACK_PATH) {
    const scope = enteredScope();
    if (isOutermost(ctx) && !scope) await resolveScope(ctx, options, route);
    // The tenant route of a call inside a request runs in a request of its own.
    else if (!isTenantRoute(ctx.path)) await stayInScope(ctx, options, scope, route);
  }
  // better-auth's own endpoint would take it for a field of the application's.
  if (route && ctx.body) delete ctx.body.tenantId;
}

async function resolveScope(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  route: TenantRoute | undefined,
): Promise<void> {
  if (route?.callback) return enterByState(ctx, options, route.callback);
  // better-auth's own callback belongs to the platform, whatever tenant the request names.
  if (ctx.path === CALLBACK_PATH) return void enter(scopeOf(null));
  const bodyCounts = route !== undefined || isOwnPath(ctx.path);
  const requested = await requestedTenantId(ctx, options, bodyCounts);
  const tenantId = requested ?? route?.tenantId ?? undefined;
  if (tenantId !== undefined || route) {
    // A tenant that does not exist has no sessions either, so get-session need not look it up.
    const skipsLookup = ctx.path === "/get-session" && TENANT_ID.test(tenantId ?? "");
    enter(scopeOf((skipsLookup && tenantId) || (await requireTenantId(ctx, tenantId))));
  } else if ((await resolvedTenantId(ctx, options)) === false) {
    enter(scopeOf(null));
    enteredBy.set("resolver without tenant");
  }
}

/**
 * A call from inside a request, or from `runInTenant`, is about that scope's tenant. It may say so,
 * and must not name another: two tenants in one scope would break isolation.
 */
async function stayInScope(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  scope: Scope = currentScope(),
  route: TenantRoute | undefined,
): Promise<void> {
  // `runInTenant` looks nothing up, and the policy is read from the cache.
  if (scope.tenantId) await lookUpTenant(ctx.context, scope.tenantId);
  const claimed = await claimedTenantId(ctx, options, route !== undefined);
  if (claimed !== undefined && claimed !== scope.tenantId) {
    throw tenantError("TENANT_SCOPE_CONFLICT");
  }
}
