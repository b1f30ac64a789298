import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { getAccountCookie } from "better-auth/cookies";
import { parseCookies } from "better-call";
import { takeOut } from "../scope/endpoint";
import { ACCOUNT_COOKIE, plainName, suffixOf } from "./cookie-names";

/*
 * Which cookies of a request count, where what is in them decides. Loaded where there are any.
 *
 * Whoever sends a cookie may send it twice, and better-auth's two readers of cookies disagree about
 * which of them it is, and about blanks and quotes. So one is left: the one that was judged.
 */

/** More than a browser has. Each of them is read on its own, so nobody may send thousands. */
const MOST_NAMES = 20;

/**
 * An account that comes in a cookie under another name than its tenant's own is no account: on the
 * platform, its tokens would be handed out. What hooks make of the cookies is judged like what was
 * sent.
 */
export async function dropRenamed({ headers, context }: HookEndpointContext): Promise<void> {
  let judged: string | null = null;
  await takeOut({ headers, context }, async (given) => {
    if (given.get("cookie") === judged) return;
    await judge(given, context);
    judged = given.get("cookie");
  });
}

async function judge(headers: Headers, context: AuthContext): Promise<void> {
  const { [ACCOUNT_COOKIE]: cookie, ...others } = context.authCookies;
  const plain = plainName(cookie);
  // A long one comes in pieces, with numbers behind a dot.
  const whole = (name: string) => plain + name.slice(plain.length).split(".")[0];
  const isOther = (name: string) => Object.values(others).some((other) => other.name === name);
  const isAccount = (name: string) =>
    name.startsWith(plain) &&
    /^(_|$)/.test(whole(name).slice(plain.length)) &&
    !isOther(whole(name));
  const sent = cookiesIn(headers);
  // One that is whole is read, whatever pieces there are besides.
  const isRead = (name: string) =>
    isAccount(name) && (name === whole(name) || !sent.get(whole(name)));
  const accounts = new Map([...sent].filter(([name]) => isRead(name)));
  if (accounts.size === 0) return;
  const given = new Headers({ cookie: [...accounts].map(written).join("; ") });
  const names = [...new Set([...accounts.keys()].map(whole))];
  const foreign = new Set(names.slice(MOST_NAMES));
  for (const name of names.slice(0, MOST_NAMES)) {
    const authCookies = { ...context.authCookies, [ACCOUNT_COOKIE]: { ...cookie, name } };
    const input = { headers: given, context: { ...context, authCookies } };
    const account = await readAccount(input);
    if (account && name !== plain + suffixOf(account.tenantId)) foreign.add(name);
  }
  // As they were judged: the other reader might make something else of what was sent.
  leave(headers, isAccount, new Map([...accounts].filter(([name]) => !foreign.has(whole(name)))));
}

/** As better-auth reads it, under the name that is in the context. */
const readAccount = createAuthMiddleware(
  async (ctx) => (await getAccountCookie(ctx)) as { tenantId?: string | null } | null,
);

/** The cookies of a request as its endpoint reads them. */
export const cookiesIn = (headers: Headers | undefined) =>
  parseCookies(headers?.get("cookie") ?? "");

const written = ([name, value]: [string, string]) => `${name}=${encodeURIComponent(value)}`;

type IsJudged = (name: string) => boolean;

/** Of some of the cookies, only these count, once each: the others are taken out of the request. */
export const keepOnly = (
  ctx: HookEndpointContext,
  isJudged: IsJudged,
  counting: ReadonlyMap<string, string>,
) => takeOut(ctx, (headers) => leave(headers, isJudged, counting));

function leave(headers: Headers, isJudged: IsJudged, counting: ReadonlyMap<string, string>): void {
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
}
