import { type AuthContext, BetterAuthError, type BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { VERIFY_EMAIL } from "../constants";
import {
  type AfterHook,
  type BeforeHook,
  descriptorOf,
  givenOf,
  isShown,
  lazy,
  oncePerObject,
  showAs,
  viewOf,
  withChanges,
} from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";
import type { Place, RequireTenant } from "./seal";

/** Seals the token of every link that better-auth hands to a mail sender inside a tenant. */
export function sealLinks(ctx: AuthContext) {
  const sealed = oncePerObject(<Options extends object>(given: Options): Options => {
    const sealing = oncePerObject((send: Sender) => sealingSender(ctx, send, given));
    return reading(given, (name, value) => (isSender(name, value) ? sealing(value) : value));
  });
  const ofUser = (name: string, value: unknown) =>
    GROUPS.includes(name) && value ? sealed(givenOf(value) ?? value) : value;
  return { sealed, sealedUser: <User extends object>(user: User) => reading(user, ofUser) };
}

/** Where `user` has senders. */
const GROUPS = ["changeEmail", "deleteUser"];

/** Options of which some are shown as something else, whenever they are asked for: they may come late. */
const reading = <Options extends object>(
  options: Options,
  show: (name: string, value: unknown) => unknown,
): Options =>
  viewOf(
    options,
    new Proxy(withChanges(options, {}), {
      get: (view, name) => {
        const value: unknown = Reflect.get(options, name);
        const shown = show(String(name), value);
        return shown === value ? Reflect.get(view, name) : shown;
      },
      set: (_, name, value) => Reflect.set(options, name, value),
    }),
  );

/** The same in the options of plugins, which keep the object that they were given. */
export function sealPluginLinks(ctx: AuthContext, { plugins = [] }: BetterAuthOptions): void {
  const sealing = oncePerObject((send: Sender) => sealingSender(ctx, send));
  for (const { id, options = {} } of plugins) {
    for (const name of namesIn(options)) {
      // One with a getter may be there later.
      const { get, value } = descriptorOf(options, name) ?? {};
      const isOne = get ? isNameOfSender(name) : isSender(name, value);
      const show = (given: unknown) => (isSender(name, given) ? sealing(given) : given);
      if (!isOne || isShown(options, name) || showAs(options, name, show)) continue;
      throw new BetterAuthError(
        `tenantAuth() cannot seal the links of ${id}, because its options are frozen. Give it a copy: { ...options }`,
      );
    }
  }
}

type Sender = (this: unknown, data: unknown, ...rest: unknown[]) => unknown;
/** On a sealing sender. The isolation kit stands in for it with one that seals as well. */
export const SEALING = Symbol.for("better-auth-tenant:seals");

const isNameOfSender = (name: string) => name.startsWith("send");

const isSender = (name: string, value: unknown): value is Sender =>
  isNameOfSender(name) && typeof value === "function";

/** Senders may be methods of a class. */
function namesIn(options: object | null): string[] {
  if (!options || options === Object.prototype) return [];
  const names = Object.getOwnPropertyNames(options);
  return [...new Set([...names, ...namesIn(Object.getPrototypeOf(options))])];
}

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
