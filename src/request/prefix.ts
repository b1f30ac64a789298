import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { decodeComponent } from "../framework";
import { adminTarget, currentEndpoint, type Endpoint } from "./endpoint";
import { currentScope, requestSlot } from "./scope";

/*
 * R4: a session's token begins with its tenant, `<tenantId>~`. The prefix is followed, never
 * trusted: everything is looked up inside the tenant that it leads to, where the rest of a forged
 * token does not exist.
 */

const SEPARATOR = "~";

/**
 * What a tenant's id may consist of. A prefix has to survive cookies, names of cookies, bearer
 * tokens (which are split at ".") and MySQL's columns of 255 characters.
 */
export const TENANT_ID = /^[\w-]{1,128}$/;

export const withPrefix = (tenantId: string, value: string) => tenantId + SEPARATOR + value;

/** The tenant in the prefix of a token; null for a token of the platform. */
export function tenantInPrefix(token: string): string | null {
  const at = token.indexOf(SEPARATOR);
  return at < 0 ? null : token.slice(0, at);
}

/** Cookies of sessions that were removed from the request: they stay in the browser (R5). */
export const removedCookies = requestSlot(() => new Set<string>());

/** The tenants in the prefixes of the credentials that the request carries. */
export const sentPrefixes = requestSlot<Set<string | null>>();

/** The headers of the request before anything was removed. */
export const sentHeaders = requestSlot<Headers>();

type Call = Pick<HookEndpointContext, "headers" | "context"> & { request?: Request | undefined };

/** Server code that gives `auth.api` headers and a request gives both the same credentials. */
const headersOf = ({ headers, request }: Call) => headers ?? request?.headers ?? new Headers();

/**
 * The session token that the bearer plugin puts in the place of the session cookie. A JWT, or any
 * other token, is none.
 */
function bearerTokenIn(call: Call): string | undefined {
  const sent = headersOf(call).get("authorization");
  const bearer = sent && call.context.options.plugins?.find(({ id }) => id === "bearer");
  if (!bearer || sent.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  const [token, signature, ...more] = decodeComponent(sent.slice(7).trim()).split(".");
  const { requireSignature } = (bearer.options ?? {}) as { requireSignature?: boolean };
  if (!token || more.length || (requireSignature && !signature)) return undefined;
  return signature === undefined || /^[\w+/-]{43}=?$/.test(signature) ? token : undefined;
}

/** One cookie of a `cookie` header, as it was sent. */
interface Piece {
  text: string;
  name: string;
  /** The part of the value in front of its signature. */
  token: string;
}

/** The cookies of a call; none if no session is among them. */
function piecesOf(call: Call): Piece[] {
  const sent = headersOf(call).get("cookie");
  if (!sent?.includes(sessionCookie(call.context))) return [];
  return sent.split(";").map((text) => {
    const at = text.indexOf("=");
    const value = text.slice(at + 1).trim();
    const unquoted = value.startsWith('"') ? value.slice(1, -1) : value;
    const [token = ""] = decodeComponent(unquoted).split(".");
    // better-auth skips a cookie without a name.
    return { text, name: text.slice(0, Math.max(at, 0)).trim(), token };
  });
}

const sessionCookie = ({ authCookies }: AuthContext) => authCookies.sessionToken.name;

/** The tokens in a call's session cookie, which may be sent twice. */
const sessionTokens = (call: Call) =>
  piecesOf(call)
    .filter(({ name }) => name === sessionCookie(call.context))
    .map(({ token }) => token);

/** The tenants of the sessions that a call carries. better-auth uses the first. */
export function prefixesIn(call: Call): (string | null)[] {
  const bearer = bearerTokenIn(call);
  return [...(bearer === undefined ? [] : [bearer]), ...sessionTokens(call)].map(tenantInPrefix);
}

/** Whether this is the session token that the endpoint reads its session by. */
export const carries = ({ headers, context }: Endpoint, token: string | undefined) =>
  token !== undefined && sessionTokens({ headers, context }).includes(token);

/** True while `isSignedIn` asks: a setup session leads to its tenant as well. */
export const isFollowing = requestSlot<boolean>();

/** Whether a valid session stands behind the prefix that the request follows. */
export async function isSignedIn(call: Call): Promise<boolean> {
  const { context, headers = call.request?.headers } = call;
  const input = { context, headers } as Parameters<typeof readSessionToken>[0];
  const token = bearerTokenIn(call) ?? (await readSessionToken(input));
  if (!token) return false;
  isFollowing.set(true);
  try {
    const found = await context.internalAdapter.findSession(token);
    return found !== null && found.session.expiresAt > new Date();
  } finally {
    isFollowing.set(false);
  }
}

const readSessionToken = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(sessionCookie(ctx.context), ctx.context.secret),
);

/**
 * R5: in another tenant a session is no session, and its cookie stays in the browser. better-auth
 * does not see a credential of another scope, so it finds nothing and deletes nothing.
 */
export function removeForeignCredentials(ctx: HookEndpointContext): undefined {
  const headers = headersOf(ctx);
  if (!headers.has("cookie") && !headers.has("authorization")) return;
  const isForeign = foreignIn(ctx);
  const bearer = bearerTokenIn(ctx);
  // A token without a prefix may be another plugin's: in a tenant, no session is found for it.
  const isSession = bearer?.includes(SEPARATOR) || adminTarget(ctx as Endpoint);
  const removesBearer = bearer !== undefined && isSession && isForeign(tenantInPrefix(bearer));
  const cookie = ownCookies(ctx, isForeign, removesBearer ? undefined : bearer);
  if (!removesBearer && cookie === undefined) return;
  if (!sentHeaders.get()) sentHeaders.set(new Headers(headers));
  const change = (sent: Headers) => {
    if (cookie !== undefined) sent.set("cookie", cookie);
    if (removesBearer) sent.delete("authorization");
    return sent;
  };
  if (ctx.headers) change(ctx.headers);
  // The bearer plugin reads the headers of the request, and returns all of them.
  const endpoint = currentEndpoint() as { request?: Request } | undefined;
  if (!endpoint?.request) return;
  const own = change(new Headers(endpoint.request.headers));
  endpoint.request = withHeaders(endpoint.request, own);
}

type IsForeign = (tenantId: string | null) => boolean;

/**
 * Which credentials do not belong here. On admin endpoints, one of the platform may be an
 * operator's, who visits; and two credentials of different scopes are both removed, because they
 * must never add up to the rights of both.
 */
function foreignIn(ctx: HookEndpointContext): IsForeign {
  const { tenantId: here } = currentScope();
  if (!adminTarget(ctx as Endpoint)) return (tenantId) => tenantId !== here;
  const areMixed = new Set(prefixesIn(ctx)).size > 1;
  return (tenantId) => areMixed || (tenantId !== here && tenantId !== null);
}

/** The cookies without foreign sessions, if there are any. Notes which ones the browser keeps. */
function ownCookies(ctx: HookEndpointContext, isForeign: IsForeign, bearer: string | undefined) {
  const { context } = ctx;
  const name = sessionCookie(context);
  const pieces = piecesOf(ctx);
  // A bearer token replaces the cookie, so nothing is found out about the cookie.
  const own = pieces.filter((piece) => piece.name === name);
  if (bearer !== undefined && own.length > 0 && own.every(({ token }) => token !== bearer)) {
    removedCookies.get().add(name);
  }
  const isSession = (piece: Piece) => piece.name === name || piece.name.includes("_multi-");
  const removed = pieces.filter(
    (piece) => isSession(piece) && isForeign(tenantInPrefix(piece.token)),
  );
  if (!removed.length) return undefined;
  const rest = pieces.filter((piece) => !removed.includes(piece));
  // A name that is sent twice goes with the session that is left.
  for (const { name: gone } of removed) {
    if (!rest.some((piece) => piece.name === gone)) removedCookies.get().add(gone);
  }
  const hasSession = rest.some((piece) => piece.name === name);
  const left = hasSession ? rest : rest.filter((piece) => !isCompanion(piece.name, context));
  return left.map(({ text }) => text).join(";");
}

/** Cookies that say something about the session of the session cookie: its cached data, say. */
export function isCompanion(name: string, { authCookies }: AuthContext): boolean {
  const { sessionToken: _, ...companions } = authCookies;
  return Object.values(companions).some(
    (own) => name === own.name || name.startsWith(`${own.name}.`),
  );
}

/** The request as later hooks and the endpoint see it. The caller's own stays as it is. */
const withHeaders = (request: Request, headers: Headers) =>
  new Proxy(request, {
    get: (target, key) => {
      if (key === "headers") return headers;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
