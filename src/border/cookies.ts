import type { HookEndpointContext } from "better-auth";
import { parseCookies } from "better-auth/cookies";
import { type AfterHook, type BeforeHook, lazy, silentHook } from "../framework";
import { adminTarget, type Endpoint, type Noted, SENT, settledScope } from "../scope/endpoint";
import { enter, notes, settled } from "../scope/scope";

/**
 * What an operator may reach begins and ends with the endpoint: hooks of others have no business
 * elsewhere. The endpoint asks for the session itself, whoever has asked before.
 *
 * Guarded by "R3: a before hook that asks who is there sees and changes the platform's".
 */
export const openEndpoint: BeforeHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: silentHook(() => {
    notes().isOpen = true;
    return undefined;
  }),
};

export const closeEndpoint: AfterHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: silentHook(async () => {
    notes().isOpen = false;
    const scope = settledScope();
    if (scope) enter(settled(scope.tenantId));
  }),
};

/**
 * R5: elsewhere a session is no session, but it stays alive where it belongs, and so does its
 * cookie. better-auth drops the cookie of a session that it does not find; in a tenant that only
 * means that the session may be another tenant's.
 */
export const keepCookiesOfElsewhere: AfterHook = {
  matcher: ({ headers }) => notes().elsewhere.size > 0 || headers?.has("authorization") === true,

  handler: silentHook(keepCookies),
};

/** Loaded where there are accounts in cookies. */
const sentCookies = lazy(() => import("./sent-cookies"));

/** R10: who sends a cookie chooses its name, and what is in it says whose it is. */
export const dropRenamedAccounts: BeforeHook = {
  matcher: ({ context: { options } }) => Boolean(options.account?.storeAccountCookie),

  handler: silentHook(async (ctx) => (await sentCookies()).dropRenamed(ctx)),
};

/** R5: takes back what drops the cookie of a session that is good elsewhere. */
async function keepCookies(ctx: HookEndpointContext) {
  const { context, headers: effective, request } = ctx;
  const headers = context.responseHeaders;
  if (!headers) return;
  const used = valuesIn(effective);
  const sent = valuesIn((context as Noted)[SENT] ?? request?.headers);
  const isElsewhere = (name: string) => {
    const values = used(name);
    const before = sent(name);
    // A bearer token stood in for the cookie: nothing was found out about the cookie.
    if (before.length > 0 && !values.some((value) => before.includes(value))) return true;
    return values.some((value) => notes().elsewhere.has(value.split(".")[0] ?? ""));
  };
  const { sessionToken, ...companions } = context.authCookies;
  const goWithSession = Object.values(companions).map(({ name }) => name);
  const kept = headers.getSetCookie().filter((line) => {
    const [name = ""] = line.split("=");
    if (!/;\s*max-age=0\b/i.test(line)) return true;
    const companion = goWithSession.some((own) => name === own || name.startsWith(`${own}.`));
    return !isElsewhere(companion ? sessionToken.name : name);
  });
  headers.delete("set-cookie");
  for (const line of kept) headers.append("set-cookie", line);
}

/** What is sent under a name, which may be more than one thing. */
const valuesIn = (headers: Headers | undefined) => {
  const cookies = (headers?.get("cookie") ?? "")
    .split(";")
    .flatMap((text) => [...parseCookies(text)]);
  return (name: string) => cookies.flatMap(([sent, value]) => (sent === name ? [value] : []));
};
