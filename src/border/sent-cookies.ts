import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { getAccountCookie } from "better-auth/cookies";
import { parseCookies } from "better-call";
import { takeOut } from "../scope/endpoint";
import { ACCOUNT_COOKIE, plainName, suffixOf } from "./cookie-names";

/*
 * Which cookies of a request count, where what is in them decides. Loaded where there are any.
 *
 * Whoever sends a cookie may send it twice, and better-auth's two readers of cookies disagree about
 * which of them it is, and about blanks and quotes. So what was judged is all that is left.
 */

/** More than a browser has. Each of them is read on its own, so nobody may send thousands. */
const MOST_NAMES = 20;

/**
 * An account that comes in a cookie under another name than its tenant's own is no account: on the
 * platform, its tokens would be handed out.
 */
export async function dropRenamed(ctx: HookEndpointContext): Promise<void> {
  const { context } = ctx;
  const { [ACCOUNT_COOKIE]: cookie } = context.authCookies;
  const plain = plainName(cookie);
  // A long one comes in pieces, with numbers behind a dot.
  const whole = (name: string) => plain + name.slice(plain.length).split(".")[0];
  const isAccount = (name: string) =>
    name.startsWith(plain) && /^(_|$)/.test(whole(name).slice(plain.length));
  const sent = sentCookies(ctx);
  // One that is whole is read, whatever pieces there are besides.
  const isRead = (name: string) =>
    isAccount(name) && (name === whole(name) || !sent.get(whole(name)));
  const accounts = new Map([...sent].filter(([name]) => isRead(name)));
  if (accounts.size === 0) return;
  const headers = new Headers({ cookie: [...accounts].map(written).join("; ") });
  const own = new Set<string>();
  for (const name of [...new Set([...accounts.keys()].map(whole))].slice(0, MOST_NAMES)) {
    const authCookies = { ...context.authCookies, [ACCOUNT_COOKIE]: { ...cookie, name } };
    const given = { headers, context: { ...context, authCookies } };
    const account = await readAccount(given);
    if (account && name === plain + suffixOf(account.tenantId)) own.add(name);
  }
  const counting = [...accounts].filter(([name]) => own.has(whole(name)));
  keepOnly(ctx, isAccount, new Map(counting));
}

/** As better-auth reads it, under the name that is in the context. */
const readAccount = createAuthMiddleware(
  async (ctx) => (await getAccountCookie(ctx)) as { tenantId?: string | null } | null,
);

/** The cookies of a request as its endpoint reads them. */
export const sentCookies = ({ headers }: HookEndpointContext) =>
  parseCookies(headers?.get("cookie") ?? "");

const written = ([name, value]: [string, string]) => `${name}=${encodeURIComponent(value)}`;

/** Of some of the cookies, only these count, once each: the others are taken out of the request. */
export function keepOnly(
  ctx: HookEndpointContext,
  isJudged: (name: string) => boolean,
  counting: ReadonlyMap<string, string>,
): void {
  takeOut(ctx, (headers) => {
    const cookies = headers.get("cookie");
    if (cookies === null) return;
    const left = new Map(counting);
    const kept = cookies.split(";").flatMap((text) => {
      const [[name] = [""]] = parseCookies(text);
      if (!isJudged(name)) return text;
      const value = left.get(name);
      left.delete(name);
      return value === undefined ? [] : written([name, value]);
    });
    headers.set("cookie", kept.join(";"));
  });
}
