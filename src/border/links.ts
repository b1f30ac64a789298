import type { AuthContext, BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { VERIFY_EMAIL } from "../constants";
import { type AfterHook, type BeforeHook, lazy, readThrough } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";
import type { Place, RequireTenant } from "./seal";

/** Seals the token of every link that better-auth hands to a mail sender inside a tenant. */
export function sealLinks(
  ctx: AuthContext,
  options: BetterAuthOptions,
): Partial<BetterAuthOptions> {
  const { emailVerification, emailAndPassword, user } = options;
  return {
    ...(emailVerification && { emailVerification: withSealedLinks(ctx, emailVerification) }),
    ...(emailAndPassword && { emailAndPassword: withSealedLinks(ctx, emailAndPassword) }),
    ...(user && {
      user: Object.assign(readThrough(user), {
        ...(user.changeEmail && { changeEmail: withSealedLinks(ctx, user.changeEmail) }),
        ...(user.deleteUser && { deleteUser: withSealedLinks(ctx, user.deleteUser) }),
      }),
    }),
  };
}

/** The same in the options of plugins, which keep the object that they were given. */
export function sealPluginLinks(ctx: AuthContext, { plugins = [] }: BetterAuthOptions): void {
  for (const { options } of plugins) {
    if (options) Object.assign(options, sealingSenders(ctx, options));
  }
}

type Sender = (this: unknown, data: unknown, ...rest: unknown[]) => unknown;
/** On a sealing sender: the application's own, which the isolation kit stands in for. */
export const SEALING = Symbol.for("better-auth-tenant:seals");

const withSealedLinks = <Options extends object>(ctx: AuthContext, options: Options): Options =>
  Object.assign(readThrough(options), sealingSenders(ctx, options));

function sealingSenders(ctx: AuthContext, options: object): Record<string, Sender> {
  const senders = namesIn(options)
    .map((name) => [name, (options as Record<string, unknown>)[name]] as const)
    .filter((entry): entry is [string, Sender] => typeof entry[1] === "function")
    .map(([name, send]) => [name, sealingSender(ctx, send)]);
  return Object.fromEntries(senders);
}

/** Senders may be methods of a class. */
function namesIn(options: object | null): string[] {
  if (!options || options === Object.prototype) return [];
  const own = Object.getOwnPropertyNames(options).filter((name) => name.startsWith("send"));
  return [...new Set([...own, ...namesIn(Object.getPrototypeOf(options))])];
}

function sealingSender(ctx: AuthContext, send: Sender & { [SEALING]?: Sender }): Sender {
  if (send[SEALING]) return send;
  async function sealAndSend(this: unknown, data: unknown, ...rest: unknown[]) {
    const { withSealedToken } = await sealing();
    // Instances may share a plugin. The link is sealed with the secret of the one that sends.
    const sealed = await withSealedToken(currentEndpoint()?.context ?? ctx, data);
    return sender[SEALING].call(this, sealed, ...rest);
  }
  const sender = Object.assign(sealAndSend, { [SEALING]: send });
  return sender;
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
