import { getCurrentAdapter } from "@better-auth/core/context";
import { type AuthContext, BetterAuthError, type BetterAuthOptions } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import * as z from "zod";
import { VERIFY_EMAIL_PATH } from "../constants";
import { changeCall, currentEndpoint } from "../endpoint";
import type { AfterHook, BeforeHook } from "../hooks";
import { isolationOf } from "../isolation";
import { deriveKeys } from "../keys";
import {
  currentRequest,
  type Endpoint,
  enter,
  enteredScope,
  getTenantId,
  isScopeFinal,
  scopeOf,
} from "../request";
import { requireTenantId } from "../tenants/require";
import { claimsIn, decodeComponent } from "../utils";
import { findNewGeneration } from "./generations";
import { readUser } from "./users";

/*
 * R6: the plugin seals the one-time token in a mailed link: it encrypts the token together with its
 * tenant. The link enters this tenant even if the browser names none. Anywhere else, the sealed
 * token is worthless.
 */

const text = z.string().min(1);

/** A one-time token, the tenant it belongs to, and the endpoint that its link leads to. */
const sealedToken = z.strictObject({
  token: text,
  /** Empty on the platform, where only links that change an email are sealed. */
  tenantId: z.string(),
  path: text,
  /**
   * The user to whom a link to `/verify-email` or `/reset-password` was mailed. Up to 1.7.7,
   * better-auth's token for `/verify-email` contains only an email. In 1.7.24, it names the user.
   */
  userId: text.optional(),
  /**
   * The address to which a link to `/reset-password` was mailed. The link ends when `userId` loses
   * this address.
   */
  email: text.optional(),
  /**
   * The generation of `userId` when a session asked for a change of the email. The link is mailed
   * to the new address and signs in, so it must end together with the user's sessions.
   */
  generation: z.string().nullable().optional(),
});

type SealedToken = z.infer<typeof sealedToken>;

const PREFIX = "tenant~";
const RESET_PASSWORD = "/reset-password";

export async function seal(ctx: AuthContext, sealed: SealedToken): Promise<string> {
  const key = await deriveKeys("link", ctx.secretConfig);
  const cipher = await symmetricEncrypt({ key, data: JSON.stringify(sealed) });
  return PREFIX + cipher.replaceAll("$", "~"); // "$" marks the version of the secret, "~" is URL-safe.
}

/** Opens a sealed token. Returns undefined for anything that was not sealed with our secrets. */
export async function unseal(ctx: AuthContext, sealed: string): Promise<SealedToken | undefined> {
  const data = sealed.slice(PREFIX.length).replaceAll("~", "$");
  try {
    const text = await symmetricDecrypt({ key: await deriveKeys("link", ctx.secretConfig), data });
    return sealedToken.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Returns whether a token has the form of a sealed token. Only `unseal` verifies the seal. */
export const looksSealed = (token: unknown) =>
  typeof token === "string" && /^tenant~[~0-9a-z]+$/.test(token);

/**
 * Seals the tokens of links inside a tenant, and of links that change an email on the platform, by
 * wrapping the functions named `send…` at the top level of these options: `emailAndPassword`,
 * `emailVerification`, `user.changeEmail`, `user.deleteUser`, and those of each plugin.
 */
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
  // Plugins keep a reference to their options, so these are changed in place.
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

/** Returns a sealing version of each function in the options whose name begins with "send". */
const sendersIn = (ctx: AuthContext, options: object) =>
  Object.fromEntries(
    Object.entries(options)
      .filter(([name, value]) => name.startsWith("send") && typeof value === "function")
      .map(([name, send]) => [name, sealingSender(ctx, send, options)]),
  );

type Sender = (this: unknown, data: unknown, ...rest: unknown[]) => unknown;
/** Marks a sender that seals. The isolation kit replaces a marked sender by a sealing one, too. */
export const SEALING = Symbol.for("better-auth-tenant:seals");

export function sealingSender(
  ctx: AuthContext,
  send: Sender & { [SEALING]?: true },
  owner?: object,
): Sender {
  if (send[SEALING]) return send;
  async function sealAndSend(this: unknown, data: unknown, ...rest: unknown[]) {
    // Instances may share a plugin. The secret of the sending instance seals the link.
    const sealed = await withSealedToken(currentEndpoint()?.context ?? ctx, data);
    return send.call(owner ?? this, sealed, ...rest);
  }
  return Object.assign(sealAndSend, { [SEALING]: true });
}

/** Returns the data for a mail sender, with the token of its link sealed. */
async function withSealedToken(ctx: AuthContext, data: unknown): Promise<unknown> {
  const tenantId = getTenantId();
  const { url, token, user } = (data ?? {}) as Record<"url" | "token" | "user", unknown>;
  if (typeof url !== "string" || typeof token !== "string") return data;
  const path = endpointIn(ctx, replaceToken(url, token, ":token"));
  const isChange = path === VERIFY_EMAIL_PATH && claimsIn(token).updateTo !== undefined;
  if (path === undefined || (tenantId === null && !isChange)) return data;
  const { id, email } = Object(user) as { id?: unknown; email?: unknown };
  const isReset = path.startsWith(RESET_PASSWORD);
  const userId =
    id !== undefined && (isReset || path === VERIFY_EMAIL_PATH) ? String(id) : undefined;
  const isolation = isolationOf(ctx);
  const bound = {
    ...(userId && isReset && { email: String(email) }),
    ...(userId &&
      isChange &&
      isolation && { generation: await findNewGeneration(isolation, userId) }),
  };
  const sealed = await seal(ctx, { token, tenantId: tenantId ?? "", path, userId, ...bound });
  return { ...(data as object), url: replaceToken(url, token, sealed), token: sealed };
}

/** Returns the path of better-auth's endpoint to which a URL leads. */
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
 * Opens a sealed token at the endpoint of its link (see `leadsTo`), and enters its tenant. At other
 * endpoints, and in a request that names another tenant, the token stays sealed, and better-auth
 * rejects it.
 */
export const openSealedToken: BeforeHook = {
  matcher: (ctx) =>
    ctx.path === VERIFY_EMAIL_PATH || PLACES.some((place) => looksSealed(ctx[place]?.token)),

  handler: createAuthMiddleware(async (ctx) => {
    const places = PLACES.filter((place) => looksSealed(ctx[place]?.token));
    const [sealed, ...others] = new Set(places.map((place) => String(ctx[place]?.token)));
    const opened = sealed && !others.length ? await unseal(ctx.context, sealed) : undefined;
    const isHere = !isScopeFinal() || getTenantId() === (opened?.tenantId || null);
    if (!sealed || !opened || !leadsTo(opened.path, ctx.path) || !isHere) {
      return refuseUnsealedEmail(ctx);
    }
    const { token, userId, email, tenantId } = opened;
    enter(scopeOf(tenantId === "" ? null : await requireTenantId(ctx, tenantId)));
    // The link is outdated. Its token stays sealed, so better-auth rejects it.
    if (userId && !(await isStillFor(ctx.context, userId, opened))) return;
    currentRequest().openedToken = {
      sealed,
      token,
      ...(userId && !email && { userId, email: claimsIn(token).email }),
    };
    for (const place of places) changeCall(place, { token });
  }),
};

/**
 * Lets a token without a seal verify an email of the platform only. This token is a signed email,
 * and better-auth has no row for it. It would be valid in every tenant that has a user with this
 * email: only the seal binds it to a tenant.
 */
function refuseUnsealedEmail({ path, query }: Pick<Endpoint, "path" | "query">): void {
  if (path !== VERIFY_EMAIL_PATH) return;
  if (!enteredScope()) enter(scopeOf(null));
  else if (getTenantId() !== null && typeof query?.token === "string") {
    changeCall("query", { token: "" });
  }
}

/** Returns whether a user still has the address and the generation to which a link is bound. */
async function isStillFor(
  ctx: AuthContext,
  userId: string,
  { email, generation }: SealedToken,
): Promise<boolean> {
  if (email !== undefined) {
    const user = await readUser(await getCurrentAdapter(ctx.adapter), userId);
    if (user?.email !== email) return false;
  }
  const isolation = isolationOf(ctx);
  if (generation === undefined || !isolation) return true;
  return (await findNewGeneration(isolation, userId)) === generation;
}

/**
 * Returns whether a link leads to an endpoint. The link may redirect to a page that sends the token
 * to the parent path: from `/reset-password/:token` to `/reset-password`.
 */
const leadsTo = (path: string, endpoint = "") =>
  path === endpoint || (endpoint !== "" && path.startsWith(`${endpoint}/`));

/** Seals an opened token again in a redirect: the reset link redirects to a page with its token. */
export const sealRedirectedToken: AfterHook = {
  matcher: () => currentRequest().openedToken !== undefined,

  handler: createAuthMiddleware(async (ctx) => {
    const { token, sealed } = currentRequest().openedToken ?? {};
    const location = ctx.context.responseHeaders?.get("location");
    if (!location || !token || !sealed) return;
    const replaced = replaceToken(location, token, sealed);
    if (replaced !== location) ctx.setHeader("location", replaced);
  }),
};
