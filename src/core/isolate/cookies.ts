import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { adminTarget } from "../admin-endpoints";
import { currentScope } from "../current-scope";
import { currentEndpoint } from "../endpoint";
import { CORE_ERROR_CODES } from "../error-codes";
import { type AfterHook, plainHook } from "../hooks";
import { currentRequest } from "../request";
import { makeCompanionCheck } from "../session-tokens";

/**
 * R5: removes the `Set-Cookie` lines with which better-auth would delete session cookies of other
 * scopes.
 */
export const keepForeignCookies: AfterHook = {
  matcher: () => currentRequest().keptCookies.size > 0,

  handler: plainHook(({ context }) => {
    const headers = context.responseHeaders;
    const { keptCookies } = currentRequest();
    const session = context.authCookies.sessionToken.name;
    const isCompanion = makeCompanionCheck(context);
    const lines = headers?.getSetCookie().filter((line) => {
      const [name = ""] = line.split("=");
      if (!/;\s*max-age=0\b/i.test(line)) return true;
      return !keptCookies.has(isCompanion(name) ? session : name);
    });
    headers?.delete("set-cookie");
    for (const line of lines ?? []) headers?.append("set-cookie", line);
  }),
};

/** Removes the cookies of a response `TRY_AGAIN`: the session behind them may not be stored. */
export const undoCookies: AfterHook = {
  matcher: ({ context: { returned } }) =>
    isAPIError(returned) && returned.body?.code === CORE_ERROR_CODES.TRY_AGAIN.code,

  handler: plainHook(({ context }) => {
    context.responseHeaders?.delete("set-cookie");
  }),
};

type Cookies = AuthContext["authCookies"];

/**
 * Gives session cookies a different name in each tenant. The name is computed when it is read, so
 * that it fits the current scope, even if another plugin has copied the context.
 */
export function nameCookiesPerTenant(ctx: AuthContext): void {
  nameMadeCookies(ctx);
  /** Cookies that better-auth assigned to the context of one request. */
  const ofRequest = new WeakMap<object, Cookies>();
  const computed = withComputedNames(ctx.authCookies);
  Object.defineProperty(ctx, "authCookies", {
    configurable: true,
    enumerable: true,
    get(this: object) {
      return ofRequest.get(this) ?? computed;
    },
    // better-auth assigns other cookies for a request if their domain depends on the host.
    set(this: object, cookies: Cookies) {
      ofRequest.set(this, withComputedNames(cookies));
    },
  });
}

/**
 * Cookies of official plugins that belong to a sign-in. The cookies of an OAuth flow keep their
 * names, because they contain their tenant.
 */
const OF_SIGN_IN = /^(?:two_factor|trust_device|better-auth-passkey|admin_session)$/;

/** Gives cookies that plugins create a different name in each tenant. */
function nameMadeCookies(ctx: AuthContext): void {
  const { createAuthCookie } = ctx;
  ctx.createAuthCookie = (name, attributes) => {
    const cookie = createAuthCookie(name, attributes);
    const sessionName = plainName(ctx.authCookies.sessionToken);
    return OF_SIGN_IN.test(name) ? { ...cookie, name: cookie.name + suffix(sessionName) } : cookie;
  };
}

/** Returns a cookie's name without the tenant. Works for a copy of a cookie, too. */
const plainName = (cookie: Cookies[string & keyof Cookies] & { plainName?: string }) =>
  cookie.plainName ?? cookie.name;

/** Returns cookies whose names are computed when they are read. */
function withComputedNames(cookies: Cookies): Cookies {
  const sessionName = plainName(cookies.sessionToken);
  const entries = Object.entries(cookies).map(([key, given]) => {
    const { attributes } = given;
    const name = plainName(given);
    const cookie = {
      plainName: name,
      attributes,
      get name() {
        return name + suffix(sessionName);
      },
    };
    // Not a plain object: if a hook returns its context, better-auth copies plain objects, and
    // would replace the getter by its current value.
    return [key, Object.setPrototypeOf(cookie, given)];
  });
  return Object.fromEntries(entries) as Cookies;
}

/**
 * Encodes a tenant's id for the name of a cookie, in lower case, because better-auth compares the
 * names of multi-session cookies in lower case. Two ids never get the same name: a capital letter
 * or a hyphen becomes a hyphen and a second character.
 */
const inCookieName = (tenantId: string) =>
  tenantId.replace(/[A-Z-]/g, (letter) => `-${letter.toLowerCase()}`);

/**
 * Returns what the current scope adds to a cookie's name. `sessionName` is the name of the
 * platform's session cookie.
 */
function suffix(sessionName: string): string {
  const scope = currentScope();
  // A visiting operator sends the platform's cookie. So does a request whose tenant is only in the
  // prefix of its token.
  if (!scope.tenantId || scope.access === "visits" || currentRequest().enteredBy === "credential")
    return "";
  const own = `_${inCookieName(scope.tenantId)}`;
  const endpoint = currentEndpoint();
  if (!adminTarget(endpoint)) return own;
  // On admin endpoints, the cookies show whether a tenant's administrator or an operator calls.
  return endpoint?.headers?.get("cookie")?.includes(`${sessionName}${own}=`) ? own : "";
}
