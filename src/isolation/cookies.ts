import type { AuthContext, HookEndpointContext } from "better-auth";
import { type AfterHook, type BeforeHook, silentHook } from "../framework";
import {
  adminTarget,
  currentEndpoint,
  type Endpoint,
  effectiveScope,
  isAdminRunning,
} from "../request/endpoint";
import { isCompanion, keptCookies } from "../request/prefix";
import { enter, enteredBy, scopeOf } from "../request/scope";

/** Cross-tenant access begins and ends with the endpoint: see `isAdminRunning`. */
export const openAdminEndpoint: BeforeHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: silentHook(() => {
    isAdminRunning.set(true);
    return undefined;
  }),
};

export const closeAdminEndpoint: AfterHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: silentHook(async () => {
    isAdminRunning.set(false);
    enter(scopeOf(effectiveScope().tenantId));
  }),
};

/**
 * R5: the cookie of a session that was taken out of the request stays in the browser, whatever
 * better-auth does about the session that it has used instead.
 */
export const keepForeignCookies: AfterHook = {
  matcher: () => keptCookies.get().size > 0,

  handler: silentHook(keepCookies),
};

async function keepCookies({ context }: HookEndpointContext) {
  const headers = context.responseHeaders;
  if (!headers) return;
  const kept = headers.getSetCookie().filter((line) => {
    const [name = ""] = line.split("=");
    if (!/;\s*max-age=0\b/i.test(line)) return true;
    return !keptCookies
      .get()
      .has(isCompanion(name, context) ? context.authCookies.sessionToken.name : name);
  });
  headers.delete("set-cookie");
  for (const line of kept) headers.append("set-cookie", line);
}

type Cookies = AuthContext["authCookies"];

/**
 * The session cookies under names of the tenant's own. The name is read late, so that it is right
 * for the scope of the moment, also where another plugin copies the context.
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
    // better-auth makes cookies anew for a request where their domain goes by the host.
    set(this: object, cookies: Cookies) {
      named.set(this, lateNames(cookies));
    },
  });
}

/**
 * Cookies of official plugins that belong to a sign-in: the second factor and the device that is
 * trusted with it, and the challenge of a passkey. Those of an OAuth flow carry their tenant, and
 * those of an operator are the platform's.
 */
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

const LATE = new WeakSet<object>();

function lateNames(cookies: Cookies): Cookies {
  if (LATE.has(cookies)) return cookies;
  const entries = Object.entries(cookies).map(([key, given]) => {
    const { name, attributes } = given;
    const sent = plainName(cookies.sessionToken);
    const cookie = {
      plainName: name,
      attributes,
      get name() {
        return name + suffix(sent);
      },
    };
    // Not a plain object: better-auth copies those that are in a context which a hook hands back,
    // and would have the name of the moment.
    return [key, Object.setPrototypeOf(cookie, given)];
  });
  const late = Object.fromEntries(entries) as Cookies;
  LATE.add(late);
  return late;
}

/**
 * A tenant's id in the name of a cookie, without upper case: better-auth drops the cookies of
 * multiSession by their names in lower case, and finds the chunks of a cookie behind a dot. No two
 * ids give the same: every hyphen begins a pair.
 */
const inCookieName = (tenantId: string) =>
  encodeURIComponent(tenantId)
    // Some of what that leaves as it is, better-auth takes in no name of a cookie.
    .replace(/[!'()*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`)
    .replace(/[A-Z-]/g, (letter) => `-${letter.toLowerCase()}`)
    .replaceAll(".", "-_");

/** What the scope of the moment adds to a name; for admin endpoints by the name of a cookie that is sent. */
function suffix(sent: string): string {
  const scope = effectiveScope();
  // An operator visits with the platform's cookie, and names follow the tenant that is named.
  if (!scope.tenantId || scope.access === "visits" || enteredBy.get() === "prefix") return "";
  const own = `_${inCookieName(scope.tenantId)}`;
  const endpoint = currentEndpoint();
  if (!adminTarget(endpoint)) return own;
  // Whether a tenant's own admin calls or an operator is about to visit shows in the cookies.
  return endpoint?.headers?.get("cookie")?.includes(`${sent}${own}=`) ? own : "";
}
