import type { AuthContext, HookEndpointContext } from "better-auth";
import { parseCookies } from "better-auth/cookies";
import type { DBTransactionAdapter } from "better-auth/types";
import { notes, type Settled } from "../scope/scope";
import { borderOf, isInside, type Row } from "./border";

/** Of several tokens that are not found here, some are good elsewhere, and some nowhere. */
export async function noteTokens(
  raw: DBTransactionAdapter,
  scope: Settled,
  model: string,
  tokens: string[],
): Promise<void> {
  const where = [{ field: "token", operator: "in" as const, value: tokens }];
  for (const row of await raw.findMany<Row>({ model, where })) {
    if (!isInside(scope, row)) notes().elsewhere.add(String(row.token));
  }
}

/** R5: takes back what drops the cookie of a session that is good elsewhere. */
export async function keepCookies(ctx: HookEndpointContext): Promise<void> {
  const { context, headers: effective, request } = ctx;
  const headers = context.responseHeaders;
  if (!headers) return;
  const used = parseCookies(effective?.get("cookie") ?? "");
  const sent = parseCookies(request?.headers.get("cookie") ?? "");
  const isElsewhere = (name: string) => {
    // A bearer token stood in for the cookie: nothing was found out about the cookie.
    if (request && sent.has(name) && sent.get(name) !== used.get(name)) return true;
    const [token = ""] = (used.get(name) ?? "").split(".");
    return notes().elsewhere.has(token);
  };
  const { sessionToken, ...companions } = context.authCookies;
  const goWithSession = Object.values(companions).map(({ name }) => name);
  const kept = headers.getSetCookie().filter((line) => {
    const [name = ""] = line.split("=");
    if (!/;\s*max-age=0\b/i.test(line)) return true;
    const companion = goWithSession.some((own) => name === own || name.startsWith(`${own}.`));
    return !isElsewhere(companion ? sessionToken.name : name);
  });
  const lost = await lostCookies(context, kept);
  headers.delete("set-cookie");
  for (const line of [...kept, ...lost]) headers.append("set-cookie", line);
}

/**
 * Where a hook asks who was signed in before, better-auth drops the cookie of the session that it
 * does not find here, and with it the one of the session that was just made. That one comes back,
 * unless the session itself was taken back, for a second factor, say.
 */
async function lostCookies(context: AuthContext, kept: string[]): Promise<string[]> {
  const { session } = context.newSession ?? {};
  const { issued = [], elsewhere } = notes();
  const isLost =
    session && elsewhere.size > 0 && !kept.some((line) => line.includes(session.token));
  if (!isLost || !(await borderOf(context.adapter)?.readSession(session.token))) return [];
  return issued.filter((line) => !kept.includes(line) && !/;\s*max-age=0\b/i.test(line));
}
