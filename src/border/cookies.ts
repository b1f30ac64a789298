import type { HookEndpointContext } from "better-auth";
import { type AfterHook, type BeforeHook, silentHook } from "../framework";
import { adminTarget, type Endpoint, settledScope } from "../scope/endpoint";
import { isCompanion } from "../scope/prefix";
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
    enter(settled(settledScope().tenantId));
  }),
};

/**
 * R5: the cookie of a session that was taken out of the request stays in the browser, whatever
 * better-auth does about the session that it has used instead.
 */
export const keepCookiesOfElsewhere: AfterHook = {
  matcher: () => notes().keptCookies.size > 0,

  handler: silentHook(keepCookies),
};

async function keepCookies({ context }: HookEndpointContext) {
  const headers = context.responseHeaders;
  if (!headers) return;
  const { keptCookies } = notes();
  const kept = headers.getSetCookie().filter((line) => {
    const [name = ""] = line.split("=");
    if (!/;\s*max-age=0\b/i.test(line)) return true;
    return !keptCookies.has(
      isCompanion(name, context) ? context.authCookies.sessionToken.name : name,
    );
  });
  headers.delete("set-cookie");
  for (const line of kept) headers.append("set-cookie", line);
}
