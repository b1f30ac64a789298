import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { adminTarget } from "../admin-endpoints";
import { currentEndpoint } from "../endpoint";
import { SEPARATOR, tenantInPrefix } from "../prefix";
import { currentRequest, type Endpoint, getTenantId, type SentCookie } from "../request";
import {
  bearerTokenIn,
  type Call,
  isSessionCookie,
  keepCookie,
  makeCompanionCheck,
  prefixesIn,
  readCookies,
  readHeaders,
  sessionCookieName,
} from "../session-tokens";

/** Returns whether the session token, whose prefix named the tenant, belongs to a valid session. */
export async function isSignedIn(call: Call): Promise<boolean> {
  const { context, headers = call.request?.headers } = call;
  const input = { context, headers } as Parameters<typeof readSessionToken>[0];
  const token = bearerTokenIn(call) ?? (await readSessionToken(input));
  if (!token) return false;
  const record = currentRequest();
  record.isCheckingPrefix = true;
  try {
    const session = await context.internalAdapter.findSession(token);
    return session !== null && session.session.expiresAt > new Date();
  } finally {
    record.isCheckingPrefix = false;
  }
}

const readSessionToken = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(sessionCookieName(ctx.context), ctx.context.secret),
);

/**
 * R5: removes session tokens of other scopes from the request. better-auth does not see them: it
 * does not use a session of another tenant, and does not delete its cookie in the browser. On admin
 * endpoints, an operator's may stay: see `makeForeignCheck`.
 */
export function removeForeignCredentials(ctx: HookEndpointContext): undefined {
  const headers = readHeaders(ctx);
  if (!headers.has("cookie") && !headers.has("authorization")) return;
  const isForeign = makeForeignCheck(ctx);
  const bearer = bearerTokenIn(ctx);
  // A token without a prefix may belong to another plugin. It is kept: no tenant has a session for
  // it.
  const mayRemoveBearer = bearer?.includes(SEPARATOR) || adminTarget(ctx as Endpoint);
  const removesBearer =
    bearer !== undefined && mayRemoveBearer && isForeign(tenantInPrefix(bearer));
  const cookie = cookiesInScope(ctx, isForeign, removesBearer ? undefined : bearer);
  if (!removesBearer && cookie === undefined) return;
  currentRequest().sentHeaders ??= new Headers(headers);
  const change = (headers: Headers) => {
    if (cookie !== undefined) headers.set("cookie", cookie);
    if (removesBearer) headers.delete("authorization");
    return headers;
  };
  if (ctx.headers) change(ctx.headers);
  // The bearer plugin reads the request's headers, and returns all of them.
  const endpoint = currentEndpoint() as { request?: Request } | undefined;
  if (!endpoint?.request) return;
  const changed = change(new Headers(endpoint.request.headers));
  endpoint.request = withHeaders(endpoint.request, changed);
}

type IsForeign = (tenantId: string | null) => boolean;

/**
 * Returns a function that says which credentials are foreign here. On admin endpoints, a credential
 * of the platform may be a visiting operator's. Credentials of different scopes are all removed
 * there, so that their rights never add up.
 */
function makeForeignCheck(ctx: HookEndpointContext): IsForeign {
  const here = getTenantId();
  if (!adminTarget(ctx as Endpoint)) return (tenantId) => tenantId !== here;
  const areMixed = new Set(prefixesIn(ctx)).size > 1;
  return (tenantId) => areMixed || (tenantId !== here && tenantId !== null);
}

/**
 * Returns the cookies without foreign sessions; undefined if no session is foreign. Notes which
 * cookies the browser keeps. Takes a time that grows only with the number of cookies, because a
 * caller may send thousands.
 */
function cookiesInScope(
  ctx: HookEndpointContext,
  isForeign: IsForeign,
  bearer: string | undefined,
) {
  const { context } = ctx;
  const name = sessionCookieName(context);
  const cookies = readCookies(ctx);
  // A bearer token replaces the cookie. The cookie's session is not checked, so the cookie stays.
  const sessions = cookies.filter((cookie) => cookie.name === name);
  if (bearer !== undefined && sessions.length && sessions.every(({ token }) => token !== bearer)) {
    keepCookie(name);
  }
  const isRemoved = (cookie: SentCookie) =>
    isSessionCookie(cookie.name, name) && isForeign(tenantInPrefix(cookie.token));
  const removed = new Set(cookies.filter(isRemoved));
  if (!removed.size) return undefined;
  const rest = cookies.filter((cookie) => !removed.has(cookie));
  const kept = new Set(rest.map((cookie) => cookie.name));
  // If another cookie of this name is left, better-auth may delete that one.
  for (const { name: gone } of removed) if (!kept.has(gone)) keepCookie(gone);
  const isCompanion = makeCompanionCheck(context);
  const left = kept.has(name) ? rest : rest.filter((cookie) => !isCompanion(cookie.name));
  return left.map(({ text }) => text).join(";");
}

/**
 * Returns the request with other headers, for later hooks and the endpoint. The caller's `Request`
 * object does not change.
 */
const withHeaders = (request: Request, headers: Headers) =>
  new Proxy(request, {
    get: (target, key) => {
      if (key === "headers") return headers;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
