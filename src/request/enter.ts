import type { HookEndpointContext } from "better-auth";
import {
  CALLBACK_PATH,
  isManagement,
  isTenantRoute,
  namesAddress,
  TENANT_ROUTES,
} from "../constants";
import { tenantError } from "../errors";
import { after, type BeforeHook, silentHook } from "../framework";
import { tenantAuthOptions } from "../isolation/isolation";
import { enterByState } from "../oauth/state";
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
  requestedTenantId,
  requireTenantId,
  resolvedTenantId,
} from "./resolve";
import { enter, enteredBy, enteredScope, getTenantId, scopeOf } from "./scope";

/**
 * Enters the scope of the tenant that a request names (R1, R2), on every endpoint of better-auth and
 * on tenant routes, before anything is read. Management names a target instead (R7), and a provider's
 * callback goes by its state.
 */
export const enterNamedTenant: BeforeHook = {
  matcher: () => true,

  handler: silentHook((ctx) => {
    noteEndpoint(ctx as never);
    const route = tenantRouteOf(ctx);
    // better-auth's own endpoint would take it for a field of the application's.
    return after(enterOrStay(ctx, route), () => void (route && delete ctx.body?.tenantId));
  }),
};

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
    return after(lookUpTenant(ctx.context, tenantId), (tenant) =>
      followPrefix(ctx, tenantId, tenant),
    );
  }),
};

function followPrefix(ctx: HookEndpointContext, tenantId: string, tenant?: { status: string }) {
  enter(scopeOf(tenant?.status === "active" ? tenantId : null));
  enteredBy.set("credential");
  removeForeignCredentials(ctx);
  return needsNoSession(ctx.path) ? leaveIfSignedOut(ctx) : undefined;
}

/**
 * Endpoints that create users, sessions or mails for callers without a session. Both steps of a flow
 * have to be among them, or a cookie that is no longer valid leads one of them elsewhere.
 */
const needsNoSession = (path = "") =>
  namesAddress(path) ||
  isSignIn(path) ||
  /password|verification|otp|two-factor|passkey|siwe/.test(path);

/**
 * A prefix without a valid session behind it (forged, ended, expired) must not put a sign-in or
 * sign-up into its tenant: better-auth does not look the session up there itself.
 */
async function leaveIfSignedOut(ctx: HookEndpointContext): Promise<void> {
  if (await isSignedIn(ctx)) return;
  enter(scopeOf(null));
  removeForeignCredentials(ctx);
}

/** Most requests name no tenant, or one that is cached, and need not wait here. */
function enterOrStay(ctx: HookEndpointContext, route?: TenantRoute): Promise<void> | void {
  // A callback by POST becomes one by GET, which goes by its state.
  if (isManagement(ctx.path) || TENANT_ROUTES[ctx.path ?? ""] === CALLBACK_PATH) return;
  if (!isOutermost(ctx) || enteredScope()) {
    // The tenant route of a call inside a request runs in a request of its own.
    return isTenantRoute(ctx.path) ? undefined : stayInScope(ctx);
  }
  if (route?.callback) return enterByState(ctx, route.callback);
  // better-auth's own callback belongs to the platform, whatever tenant the request names.
  if (ctx.path === CALLBACK_PATH) return void enter(scopeOf(null));
  const { resolveTenantId, bySlug } = tenantAuthOptions(ctx.context);
  if (!resolveTenantId) {
    const { body, query, header } = claimedNames(ctx);
    const tenantId = body ?? query ?? header;
    if (!tenantId && !route && !bySlug?.(ctx)) return;
    const isActive = tenantId && cachedTenant(ctx.context, tenantId)?.status === "active";
    if (isActive) return void enter(scopeOf(tenantId));
  }
  return resolveScope(ctx, route);
}

async function resolveScope(ctx: HookEndpointContext, route?: TenantRoute): Promise<void> {
  const requested = await requestedTenantId(ctx);
  const tenantId = requested ?? route?.tenantId ?? undefined;
  if (tenantId !== undefined || route) {
    // A tenant that does not exist has no sessions either, so get-session need not look it up.
    const skipsLookup = ctx.path === "/get-session" && TENANT_ID.test(tenantId ?? "");
    enter(scopeOf((skipsLookup && tenantId) || (await requireTenantId(ctx, tenantId))));
  } else if ((await resolvedTenantId(ctx)) === false) {
    enter(scopeOf(null));
    enteredBy.set("resolver without tenant");
  }
}

/**
 * A call from inside a request, or from `runInTenant`, is about that scope's tenant. It may say so,
 * and must not name another: two tenants in one scope would break isolation.
 */
async function stayInScope(ctx: HookEndpointContext): Promise<void> {
  const tenantId = getTenantId();
  // `runInTenant` looks nothing up, and the policy is read from the cache.
  if (tenantId) await lookUpTenant(ctx.context, tenantId);
  const claimed = await claimedTenantId(ctx);
  if (claimed !== undefined && claimed !== tenantId) throw tenantError("TENANT_SCOPE_CONFLICT");
}
