import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { getAccountCookie } from "better-auth/cookies";
import { ACCOUNT_COOKIE, plainName, suffixOf } from "./cookie-names";

/*
 * Accounts at providers that better-auth keeps in cookies. Loaded where there are any.
 */

/**
 * An account that comes in a cookie under another name than its tenant's own is no account: on the
 * platform, its tokens would be handed out.
 */
export async function dropRenamed({ headers, context }: HookEndpointContext): Promise<void> {
  const { [ACCOUNT_COOKIE]: cookie } = context.authCookies;
  const plain = plainName(cookie);
  const sent = namesIn(headers).filter((name) => name.startsWith(plain));
  // A long one comes in pieces, with numbers behind a dot.
  const withoutNumber = (name: string) => plain + name.slice(plain.length).split(".")[0];
  for (const name of new Set(sent.map(withoutNumber))) {
    const authCookies = { ...context.authCookies, [ACCOUNT_COOKIE]: { ...cookie, name } };
    const given = { headers, context: { ...context, authCookies } };
    const account = await readAccount(given);
    if (account && name !== plain + suffixOf(account.tenantId)) dropCookie(headers, name);
  }
}

/** As better-auth reads it, under the name that is in the context. */
const readAccount = createAuthMiddleware(
  async (ctx) => (await getAccountCookie(ctx)) as { tenantId?: string | null } | null,
);

const namesIn = (headers: Headers | undefined) =>
  (headers?.get("cookie") ?? "").split(";").map(nameOf);

const nameOf = (cookie: string) => cookie.slice(0, Math.max(cookie.indexOf("="), 0)).trim();

/** Takes a cookie out of a request, with all its pieces, and as often as it was sent. */
export function dropCookie(headers: Headers | undefined, dropped: string): void {
  const isKept = (name: string) => name !== dropped && !name.startsWith(`${dropped}.`);
  const cookies = (headers?.get("cookie") ?? "").split(";");
  headers?.set("cookie", cookies.filter((cookie) => isKept(nameOf(cookie))).join(";"));
}
