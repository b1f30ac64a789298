import type { AuthContext, HookEndpointContext } from "better-auth";
import { tenantInPrefix } from "./prefix";
import type { Endpoint } from "./request";
import { currentRequest, type SentCookie } from "./request";
import { decodeComponent } from "./utils";

export type Call = Pick<HookEndpointContext, "headers" | "context"> & {
  request?: Request | undefined;
};

/**
 * Returns the headers of a call. Assumes that `headers` and `request` carry the same credentials.
 */
export const readHeaders = ({ headers, request }: Call) =>
  headers ?? request?.headers ?? new Headers();

/**
 * Returns the session token that the bearer plugin uses in place of the session cookie. Returns
 * undefined for a JWT and for other text that does not look like a session token.
 */
export function bearerTokenIn(call: Call): string | undefined {
  const authorization = readHeaders(call).get("authorization");
  const bearer = authorization && call.context.options.plugins?.find(({ id }) => id === "bearer");
  if (!bearer || authorization.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  const [token, signature, ...more] = decodeComponent(authorization.slice(7).trim()).split(".", 3);
  const { requireSignature } = (bearer.options ?? {}) as { requireSignature?: boolean };
  if (!token || more.length || (requireSignature && !signature)) return undefined;
  // A signature has 32 bytes, in base64.
  return signature === undefined || /^[\w+/-]{43}=?$/.test(signature) ? token : undefined;
}

/** Parses the cookies of a call. Returns none if the session cookie's name is not in the header. */
export function readCookies(call: Call): SentCookie[] {
  const header = readHeaders(call).get("cookie");
  const sessionName = sessionCookieName(call.context);
  if (!header?.includes(sessionName)) return [];
  const record = currentRequest();
  const parsed = record.parsedCookies;
  if (parsed?.header === header && parsed.sessionName === sessionName) return parsed.cookies;
  const cookies = header.split(";").flatMap((text) => parseCookie(text, sessionName) ?? []);
  record.parsedCookies = { header, sessionName, cookies };
  return cookies;
}

/**
 * Parses a cookie. Returns undefined for empty text between two semicolons: a caller may send
 * thousands of them.
 */
function parseCookie(text: string, sessionName: string): SentCookie | undefined {
  const at = text.indexOf("=");
  if (at < 0 && text.trim() === "") return undefined;
  // better-auth skips a cookie without a name.
  const name = text.slice(0, Math.max(at, 0)).trim();
  if (!isSessionCookie(name, sessionName)) return { text, name, token: "" };
  const value = text.slice(at + 1).trim();
  const unquoted = value.startsWith('"') ? value.slice(1, -1) : value;
  const [token = ""] = decodeComponent(unquoted).split(".", 1);
  return { text, name, token };
}

/** Returns whether a name is that of the session cookie, or looks like one of `multiSession()`. */
export const isSessionCookie = (name: string, sessionName: string) =>
  name === sessionName || name.includes("_multi-");

export const sessionCookieName = ({ authCookies }: AuthContext) => authCookies.sessionToken.name;

/** Returns the tokens in the session cookies of a call, which may send the cookie twice. */
function sessionTokens(call: Call): string[] {
  const sessionName = sessionCookieName(call.context);
  return readCookies(call).flatMap(({ name, token }) => (name === sessionName ? token : []));
}

/**
 * Returns the tenants of the session tokens in a call, in better-auth's order: a bearer token that
 * counts replaces the cookie, and of two cookies with one name, better-auth reads the first.
 */
export function prefixesIn(call: Call): (string | null)[] {
  const bearer = bearerTokenIn(call);
  return [...(bearer === undefined ? [] : [bearer]), ...sessionTokens(call)].map(tenantInPrefix);
}

/**
 * Returns whether the endpoint reads its session by this token. Only cookies count: the bearer
 * plugin has put its token into the cookie header by now.
 *
 * Guarded by "when an admin endpoint looks up a session, the token of bearer() is in the cookie".
 */
export const isSessionTokenOf = ({ headers, context }: Endpoint, token: string | undefined) =>
  token !== undefined && sessionTokens({ headers, context }).includes(token);

/** Makes the browser keep a session cookie, even if better-auth's response deletes it (R5). */
export const keepCookie = (name: string) => void currentRequest().keptCookies.add(name);

/**
 * Returns a function that recognizes cookies with data of the session, such as the cookie cache.
 */
export function makeCompanionCheck({ authCookies }: AuthContext): (name: string) => boolean {
  const { sessionToken: _, ...companions } = authCookies;
  // Read once: with cookies per tenant, better-auth's `name` is computed at each access.
  const names = Object.values(companions).map(({ name }) => name);
  return (name) =>
    names.some((companion) => name === companion || name.startsWith(`${companion}.`));
}
