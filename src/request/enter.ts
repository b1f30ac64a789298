import type { HookEndpointContext } from "better-auth";
import {
  CALLBACK_PATH,
  isManagement,
  isOwnPath,
  isSignIn,
  isTenantRoute,
  namesAddress,
  resetsPassword,
  TENANT_ROUTES,
} from "../constants";
import { tenantError } from "../errors";
import { type BeforeHook, silentHook } from "../framework";
import { isolationOf } from "../isolation/isolation";
import { enterByState } from "../oauth/state";
import type { ResolvedOptions } from "../options";
import { cachedTenant, lookUpTenant } from "../tenants/cache";
import { refuseForeignAddresses } from "./addresses";
import {
  type Endpoint,
  isOutermost,
  noteEndpoint,
  type TenantRoute,
  tenantRouteOf,
} from "./endpoint";
import { isSignedIn, prefixesIn, removeForeignCredentials } from "./prefix";
import {
  claimedTenantId,
  claimsTenant,
  requestedTenantId,
  requireTenantId,
  resolvedTenantId,
} from "./resolve";
import { currentScope, enter, enteredScope, notes, type Scope, scopeOf } from "./scope";

/**
 * Enters the scope of the tenant that a request names, before anything else runs (R2): on every
 * endpoint of better-auth, and on this plugin's sign-in. Management names a target instead (R7),
 * and a provider's callback goes by its state.
 */
export function enterNamedTenant(options: ResolvedOptions): BeforeHook {
  return {
    matcher: () => true,

    handler: silentHook((ctx) => {
      noteEndpoint(ctx);
      return mayName(ctx, options) ? enterAndGuard(ctx, options) : undefined;
    }),
  };
}

/**
 * R4: where nothing has named a tenant, the prefix of the session's token does, before anything is
 * read. Credentials of other scopes are removed (R5).
 */
export const enterByPrefix: BeforeHook = {
  matcher: () => true,

  handler: silentHook((ctx) => {
    if (!isOutermost(ctx) || enteredScope()) return removeForeignCredentials(ctx);
    const prefixes = prefixesIn(ctx);
    notes().prefixes = new Set(prefixes);
    return followPrefix(ctx, prefixes[0] ?? null);
  }),
};

function followPrefix(ctx: HookEndpointContext, tenantId: string | null) {
  if (tenantId === null) {
    enter(scopeOf(null));
    return removeForeignCredentials(ctx);
  }
  const go = (tenant: { status: string } | undefined) => {
    enter(scopeOf(tenant?.status === "active" ? tenantId : null));
    notes().enteredByPrefix = true;
    return needsNoSession(ctx.path) ? stayIfSignedIn(ctx) : removeForeignCredentials(ctx);
  };
  const known = cachedTenant(ctx.context, tenantId);
  return known ? go(known) : lookUpTenant(ctx.context, tenantId).then(go);
}

/** Endpoints that create users, sessions or mails for callers without a session. */
const needsNoSession = (path = "") =>
  namesAddress(path) || isSignIn(path) || /password|verification|otp/.test(path);

/**
 * A prefix without a valid session behind it (forged, ended, expired) must not put a sign-in or
 * sign-up into its tenant: better-auth would not look the session up there by itself.
 */
async function stayIfSignedIn(ctx: HookEndpointContext): Promise<undefined> {
  removeForeignCredentials(ctx);
  if (await isSignedIn(ctx)) return;
  enter(scopeOf(null));
  removeForeignCredentials(ctx);
}

async function enterAndGuard(ctx: HookEndpointContext, options: ResolvedOptions) {
  const standIn = tenantRouteOf(ctx);
  // A callback by POST becomes one by GET, which goes by its state.
  if (!isManagement(ctx.path) && TENANT_ROUTES[ctx.path ?? ""] !== CALLBACK_PATH) {
    if (isOutermost(ctx)) await enterByName(ctx, options, standIn);
    else await stayInScope(ctx, options, standIn);
  }
  // better-auth's own endpoint takes it for a field of the application's.
  if (standIn && ctx.body) delete ctx.body.tenantId;
}

/** Whether there is anything to do: most requests go by their session, and lose no time here. */
function mayName(ctx: HookEndpointContext, options: ResolvedOptions): boolean {
  if (options.resolveTenantId) return true;
  // Management enters no tenant.
  if (isManagement(ctx.path)) return false;
  return (
    enteredScope() !== undefined ||
    claimsTenant(ctx, options) ||
    tenantRouteOf(ctx) !== undefined ||
    isTenantRoute(ctx.path) ||
    ctx.path === CALLBACK_PATH
  );
}

/**
 * What the policy refuses is refused before better-auth looks at anything. The tenant may be that of
 * the session that the request carries; where it carries none, a hook may still bring one.
 */
export const askPolicy: BeforeHook = {
  matcher: ({ path }) => namesAddress(path) || isSignIn(path) || resetsPassword(path),

  handler: silentHook(async (ctx) => isolationOf(ctx.context)?.policy.refuseEarly(ctx as Endpoint)),
};

/** R9, once it is known where the request runs. */
export const refuseAddresses = (options: ResolvedOptions): BeforeHook => ({
  matcher: () => options.resolveTenantId !== undefined,

  handler: silentHook(async (ctx) => refuseForeignAddresses(ctx, options)),
});

async function enterByName(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  standIn: TenantRoute | undefined,
): Promise<void> {
  const scope = enteredScope();
  if (scope) {
    // Our sign-in runs in a request of its own.
    if (isTenantRoute(ctx.path)) return;
    return assertSame(scope, await claimedTenantId(ctx, options, standIn !== undefined));
  }
  if (standIn?.callback) {
    return enterByState(ctx, options, standIn.callback);
  }
  // better-auth's own callback is the platform's, whatever tenant the request names.
  if (ctx.path === CALLBACK_PATH) return void enter(scopeOf(null));
  const bodyCounts = standIn !== undefined || isOwnPath(ctx.path);
  const named =
    (await requestedTenantId(ctx, options, bodyCounts)) ?? standIn?.tenantId ?? undefined;
  if (named !== undefined || standIn) {
    // A tenant that does not exist has no sessions either, so get-session need not look for it.
    const skipsLookup = ctx.path === "/get-session" && named !== undefined;
    enter(scopeOf(skipsLookup ? named : await requireTenantId(ctx, named)));
  } else if ((await resolvedTenantId(ctx, options)) === false) {
    // A session of a tenant is no session here (R5).
    enter(scopeOf(null));
    notes().decidedByResolver = true;
  }
}

/**
 * A call of `auth.api.*` from inside a request is about that request's tenant. It may say so, and
 * may not say otherwise: two tenants in one scope would be a hole in the isolation. Our own sign-in
 * is the exception: it runs in a request of its own.
 */
async function stayInScope(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  standIn: TenantRoute | undefined,
): Promise<void> {
  if (isTenantRoute(ctx.path)) return;
  assertSame(currentScope(), await claimedTenantId(ctx, options, standIn !== undefined));
}

function assertSame({ tenantId }: Scope, claimed: string | undefined): void {
  if (claimed === undefined || claimed === tenantId) return;
  throw tenantError("TENANT_SCOPE_CONFLICT");
}
