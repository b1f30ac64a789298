import type { AuthContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { parseCookies } from "better-auth/cookies";
import type { AfterHook } from "./hook";
import { currentScope, isAdmitted } from "./scope";
import { type EnterScope, type SessionRow, settleScopeBy } from "./settle";

/**
 * R5: elsewhere a session is no session, but it stays alive where it belongs, and so does its
 * cookie. better-auth drops the cookie of a session that it does not find; in a tenant that only
 * means that the session may be another tenant's.
 */
export const keepCookiesOfElsewhere: AfterHook = {
  matcher: () => Boolean(currentScope()?.elsewhere.size),

  handler: createAuthMiddleware(async ({ context, headers: requestHeaders }) => {
    const headers = context.responseHeaders;
    const sent = parseCookies(requestHeaders?.get("cookie") ?? "");
    const isElsewhere = (name: string) => {
      const [token = ""] = (sent.get(name) ?? "").split(".");
      return currentScope()?.elsewhere.has(token) ?? false;
    };
    const { sessionToken, ...companions } = context.authCookies;
    const goWithSession = Object.values(companions).map(({ name }) => name);
    const kept = headers?.getSetCookie().filter((line) => {
      const [name = ""] = line.split("=");
      if (!/;\s*max-age=0\b/i.test(line)) return true;
      const companion = goWithSession.some((own) => name === own || name.startsWith(`${own}.`));
      return !isElsewhere(companion ? sessionToken.name : name);
    });
    headers?.delete("set-cookie");
    for (const line of kept ?? []) headers?.append("set-cookie", line);
  }),
};

/**
 * A cached session is read from a signed cookie and never reaches the border, but better-auth
 * asks for its version first. A session of another tenant, or of a tenant that was deleted, has
 * one that nobody expects; and where no tenant is named, the session says which one it is (R4).
 */
export function bindCookieCache(ctx: AuthContext, enter: EnterScope): void {
  const cookieCache = ctx.options.session?.cookieCache;
  if (!cookieCache?.enabled) return;
  const { version = "1" } = cookieCache;
  ctx.options.session = {
    ...ctx.options.session,
    cookieCache: {
      ...cookieCache,
      version: async (session, user) => {
        const { tenantId = null } = session as SessionRow;
        if (!currentScope()) await settleScopeBy(session as SessionRow, enter);
        const scope = currentScope();
        const here = scope ? isAdmitted(scope, tenantId) : tenantId === null;
        // Something new each time: what is nobody's version must never match what was written.
        if (!here || (tenantId && isDeleted(tenantId))) return crypto.randomUUID();
        return typeof version === "function" ? version(session, user) : version;
      },
    },
  };
}

// Tenants that this process deleted, each for as long as a cached cookie could outlive it. Another
// process learns of it when the cached cookie expires, as with every session that is revoked.
const deletedUntil = new Map<string, number>();

const isDeleted = (tenantId: string) => (deletedUntil.get(tenantId) ?? 0) > Date.now();

export function rememberDeletedTenant(ctx: AuthContext, tenantId: string): void {
  const { enabled, maxAge = 300 } = ctx.options.session?.cookieCache ?? {};
  if (!enabled) return;
  for (const id of deletedUntil.keys()) if (!isDeleted(id)) deletedUntil.delete(id);
  deletedUntil.set(tenantId, Date.now() + maxAge * 1000);
}

/** The session cookies under names of the tenant's own. */
export function tenantCookies(
  { authCookies }: AuthContext,
  tenantId: string,
): AuthContext["authCookies"] {
  if (namedForTenant.has(authCookies)) return authCookies;
  const named = Object.fromEntries(
    Object.entries(authCookies).map(([key, cookie]) => [
      key,
      { ...cookie, name: `${cookie.name}_${encodeURIComponent(tenantId)}` },
    ]),
  ) as AuthContext["authCookies"];
  namedForTenant.add(named);
  return named;
}

const namedForTenant = new WeakSet<AuthContext["authCookies"]>();
