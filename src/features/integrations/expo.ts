import type { AuthContext } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import { changeCall } from "../../core/endpoint";
import type { AfterHook, BeforeHook } from "../../core/hooks";
import { requestSlot, runInScope, scopeOf } from "../../core/request";
import { askForHosts } from "../../core/resolve/addresses";
import { readState } from "../oauth/state-prefix";

/*
 * An Expo app opens a provider's URL through an endpoint of @better-auth/expo, which sets a cookie
 * for the state in that URL. better-auth compares the cookie with its own state, without the tenant
 * prefix. So the endpoint gets the URL without the prefix, and the app is redirected to the URL
 * with it.
 */

const PATH = "/expo-authorization-proxy";

/** The provider's URL from the app, with the tenant prefix in its state. */
const openedAddress = requestSlot<string>();

/**
 * The form of states of better-auth and oAuthProxy(). The public endpoint signs any state as a
 * cookie. Without this check, an attacker could have it sign a token that proves an email.
 */
const STATE = /^(?:[\w-]{32}|(?:\$ba\$\d{1,9}\$)?[\da-f]{64,8192})$/;

export const removePrefixForCookie: BeforeHook = {
  matcher: ({ path }) => path === PATH,

  handler: createAuthMiddleware(async (ctx) => {
    const address: unknown = ctx.query?.authorizationURL;
    if (typeof address !== "string" || !URL.canParse(address)) return;
    const url = new URL(address);
    const sent = url.searchParams.get("state");
    // The endpoint itself refuses a URL without a state.
    if (!sent) return;
    const isPlain = STATE.test(sent);
    const state = isPlain ? sent : readState(sent)?.state;
    if (!state || !STATE.test(state) || (await isSessionToken(ctx.context, state))) {
      throw new APIError("BAD_REQUEST", { message: "Invalid authorizationURL" });
    }
    if (isPlain) return;
    openedAddress.set(address);
    url.searchParams.set("state", state);
    changeCall("query", { authorizationURL: url.href });
  }),
};

/**
 * Returns whether a state is a session token of the platform. The endpoint must not sign one,
 * because a signed session token is a session cookie.
 */
const isSessionToken = async ({ internalAdapter }: AuthContext, state: string) =>
  (await runInScope(scopeOf(null), () => internalAdapter.findSession(state))) !== null;

export const redirectWithPrefix: AfterHook = {
  matcher: ({ path }) => path === PATH && openedAddress.get() !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const address = openedAddress.get();
    if (address && ctx.context.responseHeaders?.has("location")) ctx.setHeader("location", address);
  }),
};

/**
 * R9: finds the tenant of the host that a sign-in redirects to. @better-auth/expo hands the session
 * to an app at a trusted host. That host is not in the request, so its tenant is not known before.
 */
export const resolveAppHost: AfterHook = {
  matcher: ({ path }) => /^\/(callback|magic-link\/verify|verify-email)/.test(path ?? ""),

  handler: createAuthMiddleware(async (ctx) => {
    const location = ctx.context.responseHeaders?.get("location");
    await askForHosts(ctx, location, "what is stored");
  }),
};
