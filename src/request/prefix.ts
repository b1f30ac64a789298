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

type Call = Pick<HookEndpointContext, "headers" | "request" | "context">;

/** A call of `auth.api` may have headers besides those of its request; over HTTP they are equal. */
function headersOf({ headers, request }: Pick<Call, "headers" | "request">): Headers[] {
  const given = request?.headers;
  if (!given || !headers) return [headers ?? given].filter((one) => one !== undefined);
  const isSame = (name: string) => headers.get(name) === given.get(name);
  return isSame("cookie") && isSame("authorization") ? [headers] : [given, headers];
}

/** A session token as the bearer plugin would read it. A JWT, or any other token, is none. */
function bearerTokenIn(headers: Headers, { options }: AuthContext): string | undefined {
  const sent = headers.get("authorization");
  const bearer = sent && options.plugins?.find(({ id }) => id === "bearer");
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

function piecesOf(headers: Headers): Piece[] {
  return (headers.get("cookie")?.split(";") ?? []).map((text) => {
    const at = text.indexOf("=");
    const value = text.slice(at + 1).trim();
    const unquoted = value.startsWith('"') ? value.slice(1, -1) : value;
    const [token = ""] = decodeComponent(unquoted).split(".");
    return { text, name: text.slice(0, at).trim(), token };
  });
}

const sessionCookie = ({ authCookies }: AuthContext) => authCookies.sessionToken.name;

/** The token that the bearer plugin puts in the place of the session cookie. */
const bearerTokensIn = (call: Call) =>
  headersOf(call)
    .map((headers) => bearerTokenIn(headers, call.context))
    .filter((token) => token !== undefined);

/** The tenants of the sessions that a call carries. better-auth uses the first. */
export function prefixesIn(call: Call): (string | null)[] {
  const name = sessionCookie(call.context);
  const cookies = headersOf(call)
    .filter((headers) => headers.get("cookie")?.includes(name))
    .flatMap((headers) => piecesOf(headers).filter((piece) => piece.name === name));
  return [...bearerTokensIn(call), ...cookies.map(({ token }) => token)].map(tenantInPrefix);
}

/** Whether this is the session token that the endpoint reads its session by. */
export const carries = ({ headers, context }: Endpoint, token: string | undefined) =>
  headers !== undefined &&
  piecesOf(headers).some((piece) => piece.name === sessionCookie(context) && piece.token === token);

/** Whether a valid session stands behind the prefix that the request follows. */
export async function isSignedIn(call: Call): Promise<boolean> {
  const [bearer] = bearerTokensIn(call);
  const { context, headers = call.request?.headers } = call;
  const input = { context, headers } as Parameters<typeof readSessionToken>[0];
  const token = bearer ?? (await readSessionToken(input));
  const found = token ? await call.context.internalAdapter.findSession(token) : null;
  return found !== null && found.session.expiresAt > new Date();
}

const readSessionToken = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(sessionCookie(ctx.context), ctx.context.secret),
);

/**
 * R5: in another tenant a session is no session, and its cookie stays in the browser. better-auth
 * does not see a credential of another scope, so it finds nothing and deletes nothing.
 */
export function removeForeignCredentials(ctx: HookEndpointContext): undefined {
  const all = headersOf(ctx);
  if (!all.some((headers) => headers.has("cookie") || headers.has("authorization"))) return;
  const isForeign = foreignIn(ctx);
  const changes = all.map((headers) => changeFor(headers, ctx.context, isForeign));
  if (!changes.some(({ cookie, removesBearer }) => cookie !== undefined || removesBearer)) return;
  if (!sentHeaders.get()) sentHeaders.set(new Headers(ctx.headers ?? ctx.request?.headers));
  if (ctx.headers) applyChange(ctx.headers, changes.at(-1));
  // The bearer plugin reads the headers of the request, and returns all of them.
  const endpoint = currentEndpoint() as { request?: Request } | undefined;
  if (endpoint?.request) endpoint.request = withChange(endpoint.request, changes[0]);
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

/** What has to change in a set of headers, and which cookies the browser keeps. */
function changeFor(headers: Headers, context: AuthContext, isForeign: IsForeign) {
  const name = sessionCookie(context);
  const bearer = bearerTokenIn(headers, context);
  const isAdmin = adminTarget(currentEndpoint()) !== undefined;
  const tenantId = bearer === undefined ? undefined : tenantInPrefix(bearer);
  // A token without a prefix may be another plugin's: in a tenant, no session is found for it.
  const removesBearer =
    tenantId !== undefined && isForeign(tenantId) && (tenantId !== null || isAdmin);
  const pieces = headers.get("cookie")?.includes(name) ? piecesOf(headers) : [];
  // A bearer token replaces the cookie, so nothing is found out about the cookie.
  const own = pieces.filter((piece) => piece.name === name);
  if (bearer !== undefined && own.length > 0 && own.every(({ token }) => token !== bearer)) {
    removedCookies.get().add(name);
  }
  const isSession = (piece: Piece) => piece.name === name || piece.name.includes("_multi-");
  const removed = pieces.filter(
    (piece) => isSession(piece) && isForeign(tenantInPrefix(piece.token)),
  );
  if (!removed.length) return { removesBearer };
  const rest = pieces.filter((piece) => !removed.includes(piece));
  // A name that is sent twice goes with the session that is left.
  for (const { name: gone } of removed) {
    if (!rest.some((piece) => piece.name === gone)) removedCookies.get().add(gone);
  }
  const hasSession = rest.some((piece) => piece.name === name);
  const left = hasSession ? rest : rest.filter((piece) => !isCompanion(piece.name, context));
  return { removesBearer, cookie: left.map(({ text }) => text).join(";") };
}

/** Cookies that say something about the session of the session cookie: its cached data, say. */
export function isCompanion(name: string, { authCookies }: AuthContext): boolean {
  const { sessionToken: _, ...companions } = authCookies;
  return Object.values(companions).some(
    (own) => name === own.name || name.startsWith(`${own.name}.`),
  );
}

type Change = ReturnType<typeof changeFor> | undefined;

function applyChange(headers: Headers, change: Change): void {
  if (change?.cookie !== undefined) headers.set("cookie", change.cookie);
  if (change?.removesBearer) headers.delete("authorization");
}

/** The request as later hooks and the endpoint see it. The caller's own stays as it is. */
function withChange(request: Request, change: Change): Request {
  const own = new Headers(request.headers);
  applyChange(own, change);
  return new Proxy(request, {
    get: (target, key) => {
      if (key === "headers") return own;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
