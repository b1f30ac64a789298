import type { AuthContext, HookEndpointContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError } from "better-auth/api";
import { borderOf } from "../border/border";
import { CALLBACK_PATH, isOwnPath, isStandIn } from "../constants";
import type { ResolvedOptions } from "../options";
import { currentEndpoint } from "../scope/endpoint";
import { getTenantId, notes, runAsResolver } from "../scope/scope";
import { settle } from "../scope/settle";
import { hostOf, ownHost } from "./by-host";
import { claimedTenantId, resolvedTenantId, tenantOfAnswer } from "./request";

/*
 * R9: an address belongs to a tenant. A host that the resolver gives to one tenant is not trusted
 * in another, nor on the platform, whatever better-auth's `trustedOrigins` say: a reset link that
 * redirects there would hand its token to another tenant.
 */

/** Finds out whose the hosts are in the addresses of a request, and refuses those of others. */
export async function refuseForeignAddresses(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
): Promise<void> {
  const own = ownHost(ctx, options.resolveTenantId);
  const base = baseOf(ctx);
  const { origin, written, asked, popup } = isSwitchedOff(ctx.context) ? NOTHING : carriedBy(ctx);
  const sent = [...base, ...origin, ...written];
  for (const { url } of [...sent, ...asked, ...(popup ? [popup] : [])]) {
    if (url.host !== own) await askForCarriedHost(ctx, options, url);
  }
  if (![...notes().hosts.values()].some((tenantId) => tenantId !== null)) return;
  const border = borderOf(ctx.context);
  if (border) await settle(border.readSession);
  if (popup && isForeign(popup.url)) ctx.headers?.set("cookie", popup.otherCookies);
  // Management runs in no tenant, and may be at the host of one.
  const here = await resolvedTenantId(ctx, options);
  const isWritten = (url: URL) => written.some((address) => address.url === url);
  for (const { url, error } of sent) {
    const owner = notes().hosts.get(url.host);
    if (!isForeign(url) || (owner && owner === here)) continue;
    if (isWritten(url) && (await isTargets(ctx, options, url))) continue;
    // The application's resolver may not know what to say of an address without a request.
    const isOwn = url.host === hostOf(ctx) || base.some((address) => address.url === url);
    if (!owner && isOwn) continue;
    ctx.context.logger.error(
      `${url.origin} belongs to ${owner ? `tenant ${owner}` : "another tenant"} and is not trusted ${placeOf(getTenantId())}`,
    );
    throw APIError.from("FORBIDDEN", error);
  }
}

const NOTHING = { origin: [], written: [], asked: [], popup: undefined };

const carriedBy = (ctx: HookEndpointContext) => ({
  origin: originOf(ctx),
  written: addressesIn(ctx.body),
  // What is in the query is asked about as well, and looked at by the endpoint that uses it.
  asked: addressesIn(ctx.query),
  popup: ctx.path === CALLBACK_PATH ? popupOrigin(ctx) : undefined,
});

/**
 * Where links lead to and providers send people back, if better-auth takes it from the request. It
 * may have read another host there than the application's resolver.
 */
function baseOf({ context }: HookEndpointContext): Address[] {
  const url = borderOf(context)?.ctx.baseURL ? undefined : parse(context.baseURL);
  return url ? [{ url, error: BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
}

/** More than any request is about. The resolver may ask a database each time. */
const MOST_HOSTS = 20;

type Ask = (ctx: HookEndpointContext, options: ResolvedOptions, url: URL) => Promise<void>;

const askForHost: Ask = async (ctx, options, url) => {
  const { hosts } = notes();
  if (!hosts.has(url.host)) hosts.set(url.host, await tenantOfHost(ctx, options, url));
};

/** The same for one that the caller has chosen. What is stored does not count: nobody can help it. */
const askForCarriedHost: Ask = async (ctx, options, url) => {
  const note = notes();
  if (note.hosts.has(url.host)) return;
  note.carriedHosts = (note.carriedHosts ?? 0) + 1;
  if (note.carriedHosts > MOST_HOSTS) {
    const message = `Addresses of more than ${MOST_HOSTS} hosts in one request`;
    throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
  }
  await askForHost(ctx, options, url);
};

/**
 * Finds out whose the hosts are of all addresses in a value, at any depth: in the config of an
 * identity provider, for example. What nobody has asked about is trusted nowhere, see below.
 */
export async function askForHosts(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  value: unknown,
  from: "the caller" | "what is stored",
): Promise<void> {
  const ask = from === "the caller" ? askForCarriedHost : askForHost;
  const found = [value];
  // It grows meanwhile. Callers choose how deep it is: no stack is that high.
  for (const item of found) {
    const url = parse(item);
    if (url) await ask(ctx, options, url);
    if (typeof item === "object") for (const part of Object.values(item ?? {})) found.push(part);
  }
}

/**
 * Whether an address that was written down before leads to another tenant by now: hosts change
 * hands with slugs and domains. Goes by the scope that it runs in.
 */
export async function leadsElsewhere(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  address: string | null,
): Promise<boolean> {
  const url = parse(address);
  if (!url || isSwitchedOff(ctx.context)) return false;
  await askForHost(ctx, options, url);
  return isForeign(url);
}

/** better-auth's own check, with R9 in it: for addresses that an endpoint looks at itself. */
export function trustOwnAddresses(
  ctx: AuthContext,
  { resolveTenantId }: ResolvedOptions,
): AuthContext["isTrustedOrigin"] {
  const isTrusted = ctx.isTrustedOrigin;
  return function isTrustedOrigin(this: AuthContext, address, settings) {
    if (!isTrusted.call(this, address, settings)) return false;
    // Patterns with "*" match text that is no address at all.
    if (!URL.canParse(address, PAGE)) return false;
    const url = parse(address);
    const endpoint = currentEndpoint();
    if (!url || !endpoint || isSwitchedOff(this)) return true;
    const own = [ownHost(endpoint, resolveTenantId), parse(this.baseURL)?.host];
    if (own.includes(url.host)) return true;
    if (url.host === hostOf(endpoint) && !notes().hosts.get(url.host)) return true;
    // Nobody has asked the resolver about this one, and here is no time to.
    return notes().hosts.has(url.host) && !isForeign(url);
  };
}

/** Whether a request comes from the host of an address, or says that people are to be sent there. */
export function isCarriedBy(ctx: HookEndpointContext, address: string): boolean {
  const host = parse(address)?.host;
  const carried = [...originOf(ctx), ...addressesIn(ctx.body), ...addressesIn(ctx.query)];
  return carried.some(({ url }) => url.host === host);
}

/** Whether the host of an address belongs to a tenant that the request does not run in. */
function isForeign({ host }: URL): boolean {
  const owner = notes().hosts.get(host) ?? null;
  return owner !== null && owner !== getTenantId();
}

/**
 * A manager may write down an address of the tenant that the call is about: a link leads there. Its
 * pages still must not call in a manager's name.
 */
async function isTargets(ctx: HookEndpointContext, options: ResolvedOptions, { host }: URL) {
  const isManagement = isOwnPath(ctx.path) && !isStandIn(ctx.path);
  const target = isManagement ? await claimedTenantId(ctx, options) : undefined;
  return target !== undefined && notes().hosts.get(host) === target;
}

const isSwitchedOff = ({ options: { advanced } }: AuthContext) =>
  advanced?.disableOriginCheck === true;

type Address = { url: URL; error: { code: string; message: string } };

/** Where a request that changes something comes from. A GET is a link, which anybody may follow. */
function originOf({ request, context, path }: HookEndpointContext): Address[] {
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
 * the session that the callback makes would be posted to it. Returns it, and the other cookies.
 */
function popupOrigin({ headers, context }: HookEndpointContext) {
  const { name } = context.createAuthCookie("oauth_popup");
  const cookies = headers?.get("cookie")?.split(/;\s*/) ?? [];
  const marker = cookies.find((cookie) => cookie.startsWith(`${name}=`));
  const url = parse(originIn(marker));
  // A browser may send several of one name.
  const otherCookies = cookies.filter((cookie) => !cookie.startsWith(`${name}=`)).join("; ");
  return url && { url, otherCookies };
}

/** The text in front of a signed cookie's signature is JSON. Who cannot read it posts nothing. */
function originIn(cookie = ""): unknown {
  try {
    const text = decodeURIComponent(cookie);
    return JSON.parse(text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1)).popupOrigin;
  } catch {
    return undefined;
  }
}

const ERRORS: Record<string, Address["error"]> = {
  callbackURL: BASE_ERROR_CODES.INVALID_CALLBACK_URL,
  redirectTo: BASE_ERROR_CODES.INVALID_REDIRECT_URL,
  errorCallbackURL: BASE_ERROR_CODES.INVALID_ERROR_CALLBACK_URL,
  newUserCallbackURL: BASE_ERROR_CODES.INVALID_NEW_USER_CALLBACK_URL,
};

/** better-auth's names for addresses, and whatever else is named like one. */
const NAMED_LIKE_ADDRESS = /(url|uri|origin|callback|redirect|redirectto)$/i;

function addressesIn(input: unknown): Address[] {
  if (typeof input !== "object" || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const url = NAMED_LIKE_ADDRESS.test(name) ? parse(value) : undefined;
    return url ? [{ url, error: ERRORS[name] ?? BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
  });
}

/** Pages at which an address may be followed. */
const PAGE = "http://page.invalid";
const PAGES = [PAGE, "https://page.invalid"];

/**
 * Where a browser goes that follows an address from one of our pages, if that is another host. What
 * begins an address is the URL parser's to say, and not ours: it overlooks control characters,
 * takes backslashes for slashes, and "https:/host" is a host or a path, depending on the page.
 * Whatever the scheme is: "intent://host" leads a phone there as well.
 */
function parse(address: unknown, depth = 0): URL | undefined {
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

/**
 * Who a host belongs to, by the resolver alone: the tenant's id, or null for nobody's. Where the
 * resolver does not know what to say, the host is somebody else's, whoever asks.
 */
async function tenantOfHost(
  ctx: HookEndpointContext,
  { resolveTenantId }: ResolvedOptions,
  address: URL,
): Promise<string | null> {
  if (!resolveTenantId || notes().resolving) return null;
  const headers = new Headers({ host: address.host, "x-forwarded-host": address.host });
  const request = new Request(address.origin, { headers });
  try {
    const { context } = ctx;
    const answer = await runAsResolver(() => resolveTenantId({ context, headers, request }));
    return (await tenantOfAnswer(ctx, answer)) || null;
  } catch (error) {
    const { name, message } = error as Error;
    ctx.context.logger.error(
      `resolveTenantId failed for ${address.host}, which is not trusted therefore: ${name}: ${message}`,
    );
    return SOMEBODY_ELSE;
  }
}

const SOMEBODY_ELSE = "";

const placeOf = (tenantId: string | null) =>
  tenantId === null ? "on the platform" : `in tenant ${tenantId}`;
