import type { BetterAuthOptions } from "better-auth";
import { type AfterHook, lazy, silentHook } from "../framework";
import { settledScope } from "../scope/endpoint";
import type { SessionRow } from "../scope/scope";
import { enter, notes, settled } from "../scope/scope";
import type { Border, Row } from "./border";
import { mayUse } from "./sessions";

/**
 * Runs right after the endpoint. What an operator may reach ends with it: hooks of others have no
 * business elsewhere. And the cookies of a new session are remembered, see below.
 */
export const closeEndpoint: AfterHook = {
  matcher: ({ context }) => settledScope()?.reach !== "own" || context.newSession != null,

  handler: silentHook(async ({ context }) => {
    const scope = settledScope();
    if (scope && scope.reach !== "own") enter(settled(scope.tenantId));
    if (context.newSession) notes().issued = context.responseHeaders?.getSetCookie() ?? [];
  }),
};

/**
 * R5: elsewhere a session is no session, but it stays alive where it belongs, and so does its
 * cookie. better-auth drops the cookie of a session that it does not find; in a tenant that only
 * means that the session may be another tenant's.
 */
export const keepCookiesOfElsewhere: AfterHook = {
  matcher: ({ headers }) => notes().elsewhere.size > 0 || headers?.has("authorization") === true,

  handler: silentHook(async (ctx) => (await elsewhere()).keepCookies(ctx)),
};

/** Loaded when a request turns out to carry a session of somewhere else. */
const elsewhere = lazy(() => import("./elsewhere"));

type SessionOptions = NonNullable<BetterAuthOptions["session"]>;

/**
 * A cached session is read from a signed cookie and never reaches the border, but better-auth
 * asks for its version first. The version of a tenant's session has the tenant in it (R10), and a
 * session that is not good here has one that nobody expects.
 */
export function labelCachedSessions(
  session: SessionOptions | undefined,
  border: Border,
): SessionOptions | undefined {
  const cookieCache = session?.cookieCache;
  if (!cookieCache?.enabled) return session;
  const { version: given = "1" } = cookieCache;
  const version = async (session: Row, user: Row) => {
    const isHere = notes().reading || (await mayUse(border, session as SessionRow, user));
    // Something new each time: what is nobody's version must never match what was written.
    if (!isHere) return crypto.randomUUID();
    const own = typeof given === "function" ? await given(session as never, user as never) : given;
    if (!session.tenantId) return own;
    const since = await border.tenantSince(session.tenantId);
    return since === undefined ? crypto.randomUUID() : `${own}@${session.tenantId}:${since}`;
  };
  return { ...session, cookieCache: { ...cookieCache, version } } as SessionOptions;
}
