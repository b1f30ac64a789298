import type { AuthContext } from "better-auth";
import { APIError, createAuthMiddleware } from "better-auth/api";
import type { AfterHook, BeforeHook } from "../framework";
import { readState } from "../oauth/state";
import type { ResolvedOptions } from "../options";
import { askForHosts } from "../request/addresses";
import { changeCall } from "../request/endpoint";
import { requestSlot, runInScope, scopeOf } from "../request/scope";

/*
 * An Expo app opens the address of a provider through an endpoint of the package, which gives the
 * browser the cookie that belongs to the state in that address. better-auth compares that cookie
 * with the state that it has made, and a tenant has put its label in front of that one. So the
 * cookie is made for the state alone, and the provider gets the address as it was.
 */

const PATH = "/expo-authorization-proxy";

/** The address of a provider that an app opens, with the tenant prefix in its state. */
const openedAddress = requestSlot<string>();

/**
 * The form of better-auth's states, and of what oAuthProxy() makes of them. The endpoint is public
 * and signs the state as every cookie is signed: it would sign a token that proves an email too.
 */
const STATE = /^(?:[\w-]{32}|(?:\$ba\$\d{1,9}\$)?[\da-f]{64,8192})$/;

export const removePrefixForCookie: BeforeHook = {
  matcher: ({ path }) => path === PATH,

  handler: createAuthMiddleware(async (ctx) => {
    const address: unknown = ctx.query?.authorizationURL;
    if (typeof address !== "string" || !URL.canParse(address)) return;
    const url = new URL(address);
    const sent = url.searchParams.get("state");
    // The endpoint itself refuses an address without a state.
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

/** A session token of the platform has the form of a state, and signed it is the session's cookie. */
const isSessionToken = async ({ internalAdapter }: AuthContext, state: string) =>
  (await runInScope(scopeOf(null), () => internalAdapter.findSession(state))) !== null;

export const redirectWithPrefix: AfterHook = {
  matcher: ({ path }) => path === PATH && openedAddress.get() !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const address = openedAddress.get();
    const isRedirect = ctx.context.responseHeaders?.has("location");
    if (address && isRedirect) ctx.setHeader("location", address);
  }),
};

/**
 * R9: the package hands the session to the app that a sign-in leads to, if its address is trusted.
 * That address is not in the request, so nobody has asked yet whose its host is.
 */
export const askForApp = (options: ResolvedOptions): AfterHook => ({
  matcher: ({ path }) => /^\/(callback|magic-link\/verify|verify-email)/.test(path ?? ""),

  handler: createAuthMiddleware(async (ctx) => {
    if (!options.resolveTenantId) return;
    const location = ctx.context.responseHeaders?.get("location");
    await askForHosts(ctx, options, location, "what is stored");
  }),
});
