import { createAuthMiddleware } from "better-auth/api";
import type { AfterHook, BeforeHook } from "../framework";
import { askForHosts } from "../naming/addresses";
import { readState } from "../naming/oauth-state";
import type { ResolvedOptions } from "../options";
import { notes } from "../scope/scope";

/*
 * An Expo app opens the address of a provider through an endpoint of the package, which gives the
 * browser the cookie that belongs to the state in that address. better-auth compares that cookie
 * with the state that it has made, and a tenant has put its label in front of that one. So the
 * cookie is made for the state alone, and the provider gets the address as it was.
 */

const PATH = "/expo-authorization-proxy";

export const takeLabelForCookie: BeforeHook = {
  matcher: ({ path }) => path === PATH,

  handler: createAuthMiddleware(async (ctx) => {
    const address: unknown = ctx.query?.authorizationURL;
    if (typeof address !== "string" || !URL.canParse(address)) return;
    const url = new URL(address);
    const labelled = readState(url.searchParams.get("state"));
    if (!labelled) return;
    notes().openedAddress = address;
    url.searchParams.set("state", labelled.state);
    return { context: { query: { authorizationURL: url.href } } };
  }),
};

export const redirectWithLabel: AfterHook = {
  matcher: ({ path }) => path === PATH && notes().openedAddress !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const { openedAddress } = notes();
    const isRedirect = ctx.context.responseHeaders?.has("location");
    if (openedAddress && isRedirect) ctx.setHeader("location", openedAddress);
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
