import type { AuthContext } from "better-auth";
import { type AfterHook, type BeforeHook, silentHook } from "../framework";
import {
  adminTarget,
  currentEndpoint,
  type Endpoint,
  effectiveScope,
  isAdminRunning,
} from "../request/endpoint";
import { isCompanion, removedCookies } from "../request/prefix";
import { enter, enteredBy, scopeOf } from "../request/scope";

/** Cross-tenant access begins and ends with the endpoint: see `isAdminRunning`. */
export const openAdminEndpoint: BeforeHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: silentHook(() => isAdminRunning.set(true)),
};

export const closeAdminEndpoint: AfterHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: silentHook(() => {
    isAdminRunning.set(false);
    enter(scopeOf(effectiveScope().tenantId));
  }),
};

/** R5: the cookie of a session that was removed from the request stays in the browser. */
export const keepForeignCookies: AfterHook = {
  matcher: () => removedCookies.get().size > 0,

  handler: silentHook(({ context }) => {
    const headers = context.responseHeaders;
    const removed = removedCookies.get();
    const lines = headers?.getSetCookie().filter((line) => {
      const [name = ""] = line.split("=");
      if (!/;\s*max-age=0\b/i.test(line)) return true;
      const { sessionToken } = context.authCookies;
      return !removed.has(isCompanion(name, context) ? sessionToken.name : name);
    });
    headers?.delete("set-cookie");
    for (const line of lines ?? []) headers?.append("set-cookie", line);
  }),
};

type Cookies = AuthContext["authCookies"];

/**
 * Gives session cookies a name of the tenant's own. The name is read when it is needed, so that it
 * fits the current scope, also where another plugin copies the context.
 */
export function nameCookiesPerTenant(ctx: AuthContext): void {
  nameMadeCookies(ctx);
  const named = new WeakMap<object, Cookies>();
  const late = lateNames(ctx.authCookies);
  Object.defineProperty(ctx, "authCookies", {
    configurable: true,
    enumerable: true,
    get(this: object) {
      return named.get(this) ?? late;
    },
    // better-auth assigns other cookies for a request if their domain depends on the host.
    set(this: object, cookies: Cookies) {
      named.set(this, lateNames(cookies));
    },
  });
}

/** Cookies of official plugins that belong to a sign-in. Those of an OAuth flow carry their tenant. */
const OF_SIGN_IN = /^(?:two_factor|trust_device|better-auth-passkey)$/;

/** The same for cookies that plugins make. */
function nameMadeCookies(ctx: AuthContext): void {
  const { createAuthCookie } = ctx;
  ctx.createAuthCookie = (name, attributes) => {
    const cookie = createAuthCookie(name, attributes);
    const sent = plainName(ctx.authCookies.sessionToken);
    return OF_SIGN_IN.test(name) ? { ...cookie, name: cookie.name + suffix(sent) } : cookie;
  };
}

/** The name of a cookie without a tenant, also of a cloned one. */
const plainName = (cookie: Cookies[string & keyof Cookies] & { plainName?: string }) =>
  cookie.plainName ?? cookie.name;

function lateNames(cookies: Cookies): Cookies {
  const sent = plainName(cookies.sessionToken);
  const entries = Object.entries(cookies).map(([key, given]) => {
    const { attributes } = given;
    const name = plainName(given);
    const cookie = {
      plainName: name,
      attributes,
      get name() {
        return name + suffix(sent);
      },
    };
    // Not a plain object: better-auth copies those if a hook returns its context, with the name that
    // they have at that moment.
    return [key, Object.setPrototypeOf(cookie, given)];
  });
  return Object.fromEntries(entries) as Cookies;
}

/**
 * A tenant's id in the name of a cookie, in lower case, because better-auth compares the names of
 * multi-session cookies that way. No two ids give the same: every hyphen begins a pair.
 */
const inCookieName = (tenantId: string) =>
  tenantId.replace(/[A-Z-]/g, (letter) => `-${letter.toLowerCase()}`);

/** What the current scope adds to a name. `sent` is the name of the platform's session cookie. */
function suffix(sent: string): string {
  const scope = effectiveScope();
  // An operator visits with the platform's cookie. A prefix alone does not change names.
  if (!scope.tenantId || scope.access === "visits" || enteredBy.get() === "credential") return "";
  const own = `_${inCookieName(scope.tenantId)}`;
  const endpoint = currentEndpoint();
  if (!adminTarget(endpoint)) return own;
  // The cookies show whether a tenant's own administrator calls, or an operator.
  return endpoint?.headers?.get("cookie")?.includes(`${sent}${own}=`) ? own : "";
}
