import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { getAccountCookie } from "better-auth/cookies";
import { takeOut } from "../scope/endpoint";
import { ACCOUNT_COOKIE, plainName, suffixOf } from "./cookie-names";

/*
 * Accounts at providers that better-auth keeps in cookies. Loaded where there are any.
 */

/** More than a browser has. Each of them is read on its own, so nobody may send thousands. */
const MOST_NAMES = 20;

/**
 * An account that comes in a cookie under another name than its tenant's own is no account: on the
 * platform, its tokens would be handed out.
 */
export async function dropRenamed(ctx: HookEndpointContext): Promise<void> {
  const { headers, context } = ctx;
  const { [ACCOUNT_COOKIE]: cookie } = context.authCookies;
  const plain = plainName(cookie);
  // A long one comes in pieces, with numbers behind a dot.
  const whole = (name: string) => plain + name.slice(plain.length).split(".")[0];
  const isAccount = (name: string) =>
    name.startsWith(plain) && /^(_|$)/.test(whole(name).slice(plain.length));
  const names = [...new Set(cookiesIn(headers).map(nameOf).filter(isAccount).map(whole))];
  const dropped = new Set(names.slice(MOST_NAMES));
  for (const name of names.slice(0, MOST_NAMES)) {
    const authCookies = { ...context.authCookies, [ACCOUNT_COOKIE]: { ...cookie, name } };
    const given = { headers, context: { ...context, authCookies } };
    const account = await readAccount(given);
    if (account && name !== plain + suffixOf(account.tenantId)) dropped.add(name);
  }
  if (dropped.size) dropCookies(ctx, (name) => isAccount(name) && dropped.has(whole(name)));
}

/** As better-auth reads it, under the name that is in the context. */
const readAccount = createAuthMiddleware(
  async (ctx) => (await getAccountCookie(ctx)) as { tenantId?: string | null } | null,
);

const cookiesIn = (headers: Headers | undefined) => (headers?.get("cookie") ?? "").split(";");

const nameOf = (cookie: string) => cookie.slice(0, Math.max(cookie.indexOf("="), 0)).trim();

/** Takes cookies out of a request, as often as they were sent. */
export function dropCookies(ctx: HookEndpointContext, isDropped: (name: string) => boolean): void {
  takeOut(ctx, (headers) => {
    const kept = cookiesIn(headers).filter((cookie) => !isDropped(nameOf(cookie)));
    headers.set("cookie", kept.join(";"));
  });
}
