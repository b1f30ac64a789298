import type { HookEndpointContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { parseJSON } from "../framework";

/* The addresses that a request carries, and where a browser goes that follows one of them. */

export type Address = { url: URL; error: { code: string; message: string } };

/** Where a request that changes something comes from. A GET is a link, which anybody may follow. */
export function originOf({ request, context, path }: HookEndpointContext): Address[] {
  if (!request || request.method === "GET" || context.options.advanced?.disableCSRFCheck) return [];
  // What identity providers make a browser post comes from wherever they are.
  const { skipOriginCheck } = context;
  const isFromAnywhere = (skipped: string) => path?.startsWith(skipped.replace(/\/*$/, "/"));
  if (Array.isArray(skipOriginCheck) && skipOriginCheck.some(isFromAnywhere)) return [];
  const url = parse(request.headers.get("origin") || request.headers.get("referer"));
  return url ? [{ url, error: BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
}

/**
 * A popup's opener is in a cookie of its own, which may come from a flow at another tenant's host:
 * the session that the callback makes would be posted to it.
 */
export async function popupOpener(ctx: HookEndpointContext) {
  const { name } = ctx.context.createAuthCookie("oauth_popup");
  if (!ctx.headers?.get("cookie")?.includes(name)) return undefined;
  const given = { headers: ctx.headers, context: ctx.context };
  const marker = await readPopup(given);
  const { popupOrigin } = Object(parseJSON(marker));
  return { name, isRead: Boolean(marker), url: parse(popupOrigin) };
}

/** As better-auth's plugin reads it: whatever is read in another way could say something else. */
const readPopup = createAuthMiddleware((ctx) =>
  ctx.getSignedCookie(ctx.context.createAuthCookie("oauth_popup").name, ctx.context.secret),
);

const ERRORS: Record<string, Address["error"]> = {
  callbackURL: BASE_ERROR_CODES.INVALID_CALLBACK_URL,
  redirectTo: BASE_ERROR_CODES.INVALID_REDIRECT_URL,
  errorCallbackURL: BASE_ERROR_CODES.INVALID_ERROR_CALLBACK_URL,
  newUserCallbackURL: BASE_ERROR_CODES.INVALID_NEW_USER_CALLBACK_URL,
};

/** better-auth's names for addresses, and whatever else is named like one. */
const NAMED_LIKE_ADDRESS = /(url|uri|origin|callback|redirect|redirectto)$/i;

export function addressesIn(input: unknown): Address[] {
  if (typeof input !== "object" || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const url = NAMED_LIKE_ADDRESS.test(name) ? parse(value) : undefined;
    return url ? [{ url, error: ERRORS[name] ?? BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
  });
}

/** Pages at which an address may be followed. */
export const PAGE = "http://page.invalid";
const PAGES = [PAGE, "https://page.invalid"];

/**
 * Where a browser goes that follows an address from one of our pages, if that is another host. What
 * begins an address is the URL parser's to say, and not ours: it overlooks control characters,
 * takes backslashes for slashes, and "https:/host" is a host or a path, depending on the page.
 * Whatever the scheme is: "intent://host" leads a phone there as well.
 */
export function parse(address: unknown, depth = 0): URL | undefined {
  if (typeof address !== "string") return undefined;
  const url = PAGES.filter((page) => URL.canParse(address, page))
    .map((page) => new URL(address, page))
    .find(({ host }) => host !== "page.invalid");
  // Without a host of its own, it may have an address for a path: "blob:https://host/x".
  if (!url?.host) return url && depth < MOST_NESTED ? parse(url.pathname, depth + 1) : undefined;
  const isWeb = /^(https?|wss?|ftp):$/.test(url.protocol);
  const canonical = /^https?:$/.test(url.protocol) ? url.href : `http://${url.host}`;
  if (!URL.canParse(canonical)) return undefined;
  const site = new URL(canonical);
  // A trailing dot names the same host.
  site.hostname = site.hostname.replace(/\.$/, "");
  return isWeb || DOMAIN.test(site.hostname) ? site : undefined;
}

/** "view-source:blob:https://host/x", and one more. Each costs a walk through the whole text. */
const MOST_NESTED = 3;

/** What apps have in place of a host is mostly a page ("myapp://callback") or a number ("exp://10.0.0.1"). */
const DOMAIN = /\.[a-z][^.]*$/;
