import { type AuthContext, BetterAuthError, type BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import * as z from "zod";
import { VERIFY_EMAIL } from "../constants";
import { type AfterHook, type BeforeHook, claimsIn, decodeComponent } from "../framework";
import { deriveKeys } from "../keys";
import { changeCall, currentEndpoint } from "../request/endpoint";
import { requireTenantId } from "../request/resolve";
import { enter, enteredScope, getTenantId, namedScope, scopeOf } from "../request/scope";
import { openedToken } from "./users";

/*
 * R6: the one-time token in a mailed link is encrypted together with its tenant. The link leads back
 * into its tenant from a browser that names none, and the token is worth nothing outside of it.
 */

const text = z.string().min(1);

/** A one-time token, the tenant it belongs to, and the endpoint that its link leads to. */
const sealedToken = z.strictObject({
  token: text,
  tenantId: text,
  path: text,
  /**
   * The user that a link to `/verify-email` was mailed for: up to 1.7.7 its token names an email alone.
   * With 1.7.24 alone this would be unnecessary, because better-auth's own token names the user.
   */
  userId: text.optional(),
});

type SealedToken = z.infer<typeof sealedToken>;

const PREFIX = "tenant~";

export async function seal(ctx: AuthContext, sealed: SealedToken): Promise<string> {
  const key = await deriveKeys("link", ctx.secretConfig);
  const cipher = await symmetricEncrypt({ key, data: JSON.stringify(sealed) });
  return PREFIX + cipher.replaceAll("$", "~"); // "$" marks the version of the secret, "~" is URL-safe.
}

/** What was sealed; undefined for anything that this server did not seal. */
export async function unseal(ctx: AuthContext, sealed: string): Promise<SealedToken | undefined> {
  const data = sealed.slice(PREFIX.length).replaceAll("~", "$");
  try {
    const text = await symmetricDecrypt({ key: await deriveKeys("link", ctx.secretConfig), data });
    return sealedToken.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** What a sealed token looks like; only its seal says whether it is one. */
export const looksSealed = (token: unknown) =>
  typeof token === "string" && /^tenant~[~0-9a-z]+$/.test(token);

/** Seals the token of every link that better-auth gives to a mail sender inside a tenant. */
export function sealLinks(ctx: AuthContext, options: BetterAuthOptions): void {
  const { emailAndPassword, emailVerification, user } = options;
  if (emailAndPassword) options.emailAndPassword = withSealing(ctx, emailAndPassword);
  if (emailVerification) options.emailVerification = withSealing(ctx, emailVerification);
  if (user) {
    const { changeEmail, deleteUser } = user;
    options.user = {
      ...user,
      ...(changeEmail && { changeEmail: withSealing(ctx, changeEmail) }),
      ...(deleteUser && { deleteUser: withSealing(ctx, deleteUser) }),
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

const withSealing = <Options extends object>(ctx: AuthContext, options: Options): Options => ({
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
/** On a sealing sender. The isolation kit puts its own sealing sender in its place. */
export const SEALING = Symbol.for("better-auth-tenant:seals");

export function sealingSender(
  ctx: AuthContext,
  send: Sender & { [SEALING]?: true },
  owner?: object,
): Sender {
  if (send[SEALING]) return send;
  async function sealAndSend(this: unknown, data: unknown, ...rest: unknown[]) {
    // Instances may share a plugin. The link is sealed with the secret of the one that sends.
    const sealed = await withSealedToken(currentEndpoint()?.context ?? ctx, data);
    return send.call(owner ?? this, sealed, ...rest);
  }
  return Object.assign(sealAndSend, { [SEALING]: true });
}

/** What a mail sender gets, with the token of its link sealed. */
async function withSealedToken(ctx: AuthContext, data: unknown): Promise<unknown> {
  const tenantId = getTenantId();
  const { url, token, user } = (data ?? {}) as Record<"url" | "token" | "user", unknown>;
  if (tenantId === null || typeof url !== "string" || typeof token !== "string") return data;
  const path = endpointIn(ctx, replaceToken(url, token, ":token"));
  if (path === undefined) return data;
  const { id } = (path === VERIFY_EMAIL && (user as { id?: unknown } | null)) || {};
  const userId = id === undefined ? undefined : String(id);
  const sealed = await seal(ctx, { token, tenantId, path, userId });
  return { ...(data as object), url: replaceToken(url, token, sealed), token: sealed };
}

/** The path of better-auth's endpoint that a URL leads to. */
function endpointIn({ baseURL }: AuthContext, address: string): string | undefined {
  // Without a base URL, better-auth's links begin with the path of the endpoint.
  const here = "http://base.invalid";
  const base = URL.canParse(baseURL) ? new URL(baseURL).pathname : "";
  if (!URL.canParse(address, here)) return undefined;
  const { pathname } = new URL(address, here);
  const prefix = base.replace(/\/$/, "");
  return pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : undefined;
}

/** Replaces the token in a URL: in its query or fragment, else the last segment of its path. */
function replaceToken(address: string, token: string, replacement: string): string {
  const replace = (_: string, before: string, value: string) =>
    before + (decodeComponent(value.replaceAll("+", " ")) === token ? replacement : value);
  const replaced = address.replace(/([?&#][^?&#=]*=)([^&#]*)/g, replace);
  return replaced === address ? address.replace(/^([^?#]*\/)([^?#]*)/, replace) : replaced;
}

/** Where better-auth's endpoints expect a token. */
const PLACES = ["query", "body", "params"] as const;

/**
 * Opens a sealed token where it belongs, and puts the request into its tenant. In a request that
 * names another tenant, and at any other endpoint, it stays sealed, and is no token at all.
 */
export const openSealedToken: BeforeHook = {
  matcher: (ctx) =>
    ctx.path === VERIFY_EMAIL || PLACES.some((place) => looksSealed(ctx[place]?.token)),

  handler: createAuthMiddleware(async (ctx) => {
    const places = PLACES.filter((place) => looksSealed(ctx[place]?.token));
    const [sealed, ...others] = new Set(places.map((place) => String(ctx[place]?.token)));
    const opened = sealed && !others.length ? await unseal(ctx.context, sealed) : undefined;
    const named = namedScope();
    const isHere = !named || named.tenantId === opened?.tenantId;
    if (sealed && opened && leadsTo(opened.path, ctx.path) && isHere) {
      enter(scopeOf(await requireTenantId(ctx, opened.tenantId)));
      const { token, userId } = opened;
      openedToken.set({ sealed, token, ...(userId && { userId, email: claimsIn(token).email }) });
      for (const place of places) changeCall(place, { token });
      return;
    }
    if (ctx.path !== VERIFY_EMAIL) return;
    // The token of this endpoint is better-auth's only credential without a row: a signed email,
    // valid for the user of that email in any tenant. Only the seal binds it to its tenant, and
    // without one it belongs to the platform.
    if (!enteredScope()) enter(scopeOf(null));
    else if (getTenantId() !== null && typeof ctx.query?.token === "string") {
      changeCall("query", { token: "" });
    }
  }),
};

/** A link leads to its endpoint, which may redirect to a page that sends the token to its parent. */
const leadsTo = (path: string, endpoint = "") =>
  path === endpoint || (endpoint !== "" && path.startsWith(`${endpoint}/`));

/** A token that came in sealed goes on sealed: the reset link redirects to a page with its token. */
export const sealRedirectedToken: AfterHook = {
  matcher: () => openedToken.get() !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const { token, sealed } = openedToken.get() ?? {};
    const location = ctx.context.responseHeaders?.get("location");
    if (!location || !token || !sealed) return;
    const replaced = replaceToken(location, token, sealed);
    if (replaced !== location) ctx.setHeader("location", replaced);
  }),
};
