import { type AuthContext, BetterAuthError, type BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { VERIFY_EMAIL } from "../constants";
import { type AfterHook, type BeforeHook, lazy } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";
import type { Place, RequireTenant } from "./seal";

/** Seals the token of every link that better-auth gives to a mail sender inside a tenant. */
export function sealLinks(ctx: AuthContext, options: BetterAuthOptions): void {
  const { emailAndPassword, emailVerification, user } = options;
  if (emailAndPassword) options.emailAndPassword = sealed(ctx, emailAndPassword);
  if (emailVerification) options.emailVerification = sealed(ctx, emailVerification);
  if (user) {
    const { changeEmail, deleteUser } = user;
    options.user = {
      ...user,
      ...(changeEmail && { changeEmail: sealed(ctx, changeEmail) }),
      ...(deleteUser && { deleteUser: sealed(ctx, deleteUser) }),
    };
  }
  // Plugins keep the options that they were given, so those are changed in place.
  for (const { id, options: own = {} } of options.plugins ?? []) {
    try {
      Object.assign(own, sendersIn(ctx, own));
    } catch {
      throw new BetterAuthError(
        `tenantAuth() cannot seal the links of ${id}, because its options are frozen. Give it a copy: { ...options }`,
      );
    }
  }
}

const sealed = <Options extends object>(ctx: AuthContext, options: Options): Options => ({
  ...options,
  ...sendersIn(ctx, options),
});

/** Functions called "send…", each with a version that seals. */
const sendersIn = (ctx: AuthContext, options: object) =>
  Object.fromEntries(
    Object.entries(options)
      .filter(([name, value]) => name.startsWith("send") && typeof value === "function")
      .map(([name, send]) => [name, sealingSender(ctx, send, options)]),
  );

type Sender = (this: unknown, data: unknown, ...rest: unknown[]) => unknown;
/** On a sealing sender. The isolation kit stands in for it with one that seals as well. */
export const SEALING = Symbol.for("better-auth-tenant:seals");

/** Called on whom it is of, where that is known. */
export function sealingSender(
  ctx: AuthContext,
  send: Sender & { [SEALING]?: true },
  owner?: object,
): Sender {
  if (send[SEALING]) return send;
  async function sealAndSend(this: unknown, data: unknown, ...rest: unknown[]) {
    const { withSealedToken } = await sealing();
    // Instances may share a plugin. The link is sealed with the secret of the one that sends.
    const sealed = await withSealedToken(currentEndpoint()?.context ?? ctx, data);
    return send.call(owner ?? this, sealed, ...rest);
  }
  return Object.assign(sealAndSend, { [SEALING]: true });
}

const sealing = lazy(() => import("./seal"));

/**
 * Opens a sealed token where it belongs, and puts the request into its tenant. In a request that
 * names another tenant, and at any other endpoint, it stays sealed, which is no token at all.
 */
export function openSealedToken(requireTenant: RequireTenant): BeforeHook {
  return {
    matcher: (ctx) =>
      ctx.path === VERIFY_EMAIL || PLACES.some((place) => looksSealed(ctx[place]?.token)),

    handler: createAuthMiddleware(async (ctx) => {
      const places = PLACES.filter((place) => looksSealed(ctx[place]?.token));
      return (await sealing()).openToken(ctx, places, requireTenant);
    }),
  };
}

/** Where better-auth's endpoints expect a token. */
const PLACES: Place[] = ["query", "body", "params"];

/** What a sealed token looks like; only its seal says whether it is one. */
export const looksSealed = (token: unknown) =>
  typeof token === "string" && /^tenant~[~0-9a-z]+$/.test(token);

/** A token that came in sealed goes on sealed: the reset link redirects to a page with its token. */
export const sealRedirectedToken: AfterHook = {
  matcher: () => notes().openedToken !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const { token, sealed } = notes().openedToken ?? {};
    const location = ctx.context.responseHeaders?.get("location");
    if (!location || !token || !sealed) return;
    const replaced = (await sealing()).replaceToken(location, token, sealed);
    if (replaced !== location) ctx.setHeader("location", replaced);
  }),
};
