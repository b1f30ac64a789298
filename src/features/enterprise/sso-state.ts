import type { HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import { type Guard, WRITES } from "../../core/database";
import { changeCall, currentEndpoint } from "../../core/endpoint";
import type { AfterHook, BeforeHook } from "../../core/hooks";
import { getTenantId } from "../../core/request";
import { holdState, keepBinding, starterOf, stateMismatch } from "../oauth/state";
import { isSignedFor, prefixState, readState, sign } from "../oauth/state-prefix";
import { refuseEarly } from "../policy/admission";
import { SSO_PROVIDER } from "./sso-providers";

/*
 * The state of an OpenID Connect flow has the prefix of its tenant, as in social sign-in. The
 * provider in the path is not enough to find the tenant: the application's own providers have no
 * row, and all tenants share them. better-auth binds each state to its provider, which is in the
 * path of the callback.
 */

const SIGN_IN = "/sign-in/sso";
const CALLBACK = "/sso/callback/:providerId";
export const ACS = "/sso/saml2/sp/acs/:providerId";

const bindingOf = (tenantId: string) => ({ tenantId, providerId: "sso", credentials: "sso" });

/** Returns the state of a callback if a tenant started it. */
export async function openReturnedState({ query, context }: HookEndpointContext) {
  const returned = readState(query?.state);
  if (!returned) return undefined;
  const isSigned = await isSignedFor(context, returned, bindingOf(returned.tenantId));
  return isSigned ? returned : undefined;
}

/** Removes the prefix once the request runs in the tenant, so that better-auth finds its state. */
export function removeStatePrefix(ctx: HookEndpointContext, state: string): void {
  holdState(ctx, state);
  changeCall("query", { state });
}

/**
 * Refuses the callback that all providers share, which better-auth has even without `redirectURI`.
 * That callback would give the code of one provider to the provider of the state, which may be
 * another tenant's.
 */
export const refuseSharedCallback: BeforeHook = {
  matcher: ({ path }) => path === "/sso/callback",

  handler: createAuthMiddleware(async () => {
    throw new APIError("NOT_FOUND", {
      message: `Each identity provider has a callback of its own: ${CALLBACK}`,
    });
  }),
};

/**
 * Binds the state of a flow to its tenant, because better-auth may keep the state in a cookie,
 * where isolation does not apply.
 */
export const bindStartedFlow: BeforeHook = {
  matcher: ({ path }) => path === SIGN_IN || path === CALLBACK,

  handler: createAuthMiddleware(async () => {
    const tenantId = getTenantId();
    if (tenantId) await keepBinding(bindingOf(tenantId));
  }),
};

/** Returns whether the running endpoint completes a sign-in with a provider. */
export const isEndOfFlow = () => [CALLBACK, ACS].includes(currentEndpoint()?.path ?? "");

/**
 * Refuses to look up users at the end of a flow that another tenant started. Refuses to write if
 * the policy no longer allows the sign-in method: the session would be refused too, but only after
 * the account is linked.
 *
 * Guarded by "%s that the policy has come to forbid leaves nothing behind: %s".
 */
export const guardEndOfFlow: Guard = {
  models: ["user", "account", SSO_PROVIDER],
  async run({ method, call, model }, next) {
    const endpoint = currentEndpoint();
    if (!endpoint || !isEndOfFlow()) return next(call);
    if (model !== SSO_PROVIDER && endpoint.path === CALLBACK) {
      const starter = await starterOf();
      if (starter !== undefined && starter !== getTenantId()) throw stateMismatch();
    }
    if (WRITES.includes(method)) await refuseEarly(endpoint);
    return next(call);
  },
};

export const prefixStartedFlow: AfterHook = {
  matcher: ({ path }) => getTenantId() !== null && (path === SIGN_IN || path === CALLBACK),

  handler: createAuthMiddleware(async (ctx) => {
    const { returned, responseHeaders } = ctx.context;
    if (ctx.path === SIGN_IN) {
      if (isAPIError(returned)) return;
      const url = await withStatePrefix(ctx, (returned as { url?: unknown } | null)?.url);
      if (url) ctx.context.returned = { ...(returned as object), url };
      return;
    }
    // If a provider sends a user without a state, better-auth starts a flow and redirects to the
    // provider. The state in that redirect needs the prefix as well.
    if (ctx.query?.state !== undefined) return;
    const location = await withStatePrefix(ctx, responseHeaders?.get("location"));
    if (location) ctx.setHeader("location", location);
  }),
};

/**
 * Adds the tenant's prefix to the state in a URL. Returns undefined for SAML, which has no state
 * but a relay state. That one stays as it is, because it may be signed.
 */
async function withStatePrefix({ context }: HookEndpointContext, address: unknown) {
  const tenantId = getTenantId();
  const url = typeof address === "string" && URL.canParse(address) ? new URL(address) : undefined;
  const state = url?.searchParams.get("state");
  if (!url || !state || !tenantId) return undefined;
  const signature = await sign(context, state, bindingOf(tenantId));
  url.searchParams.set("state", prefixState(state, tenantId, signature));
  return url.href;
}
