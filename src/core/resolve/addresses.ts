import type { AuthContext, HookEndpointContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError, isAPIError } from "better-auth/api";
import { CALLBACK_PATH } from "../constants";
import { currentEndpoint } from "../endpoint";
import { extensionsWith } from "../extensions";
import { type BeforeHook, plainHook } from "../hooks";
import { coreOptions, isolationOf } from "../isolation";
import { isManagement } from "../management-calls";
import {
  currentRequest,
  enter,
  getTenantId,
  isResolving,
  runAsResolver,
  scopeOf,
  surroundingScope,
} from "../request";
import { namedTenantId, resolvedTenantId, tenantOfAnswer } from "./resolve";
import { asHostResolver, hostOf, syntheticHostRequests } from "./resolvers";

/*
 * R9: the host of an address may belong to a tenant. If the resolver gives a host to one tenant,
 * the plugin does not trust it in another tenant or on the platform, even if `trustedOrigins` lists
 * it: a reset link that redirects there would give its token to that tenant. `findRefused` has the
 * exceptions for management.
 *
 * Trusted are paths, the tenant's own host, the base URL, trusted origins that belong to no tenant,
 * and app schemes that `trustedOrigins` lists (`myapp://`).
 */

/** An address in a request, where it is, and the error if it is not trusted. */
interface Address {
  url: URL;
  place: "base URL" | "origin" | "body" | "query";
  error: { code: string; message: string };
}

/** Limits what a caller may send: the resolver may query a database for each host. */
const MAX_HOSTS = 20;
const MAX_LENGTH = 2048;

export const refuseAddresses: BeforeHook = {
  matcher: ({ context }) => coreOptions(context).resolveTenantId !== undefined,

  handler: plainHook(refuseForeignAddresses),
};

/**
 * Finds the owners of the hosts in a request's addresses, and refuses hosts of other tenants,
 * except in the query. A provider's callback moves to the platform instead, without its state.
 */
async function refuseForeignAddresses(ctx: HookEndpointContext): Promise<void> {
  const addresses = addressesOf(ctx);
  const ownHost = namingHost(ctx);
  const urls = addresses.map(({ url }) => url).filter(({ host }) => host !== ownHost);
  await findOwners(ctx, urls, MAX_HOSTS);
  // The endpoint that uses an address in the query checks it, see `trustOwnAddresses`.
  const foreign = addresses.filter(({ url, place }) => place !== "query" && isForeign(url));
  const refused = foreign.length ? await findRefused(ctx, foreign) : undefined;
  if (!refused) return;
  const owner = currentRequest().hostOwners.get(refused.url.host);
  const whose = owner ? `tenant ${owner}` : "another tenant";
  const place = getTenantId() === null ? "on the platform" : `in tenant ${getTenantId()}`;
  ctx.context.logger.error(`${refused.url.origin} belongs to ${whose} and is not trusted ${place}`);
  if (ctx.path !== CALLBACK_PATH) throw APIError.from("FORBIDDEN", refused.error);
  // The provider has redirected a browser here, and the user must see a page.
  invalidateState(ctx);
  enter(scopeOf(null));
}

function addressesOf(ctx: HookEndpointContext): Address[] {
  const base = baseOf(ctx);
  if (isSwitchedOff(ctx.context)) return base;
  return [
    ...base,
    ...originOf(ctx),
    ...addressesIn(ctx.body, "body"),
    ...addressesIn(ctx.query, "query"),
  ];
}

/** Returns the first of these addresses that the request must not contain. */
async function findRefused(
  ctx: HookEndpointContext,
  foreign: Address[],
): Promise<Address | undefined> {
  // An operator's management call runs on the platform, but may come to a tenant's host.
  const mayBeManagement = getTenantId() === null && ctx.path !== CALLBACK_PATH;
  const hostTenant = mayBeManagement ? await resolvedTenantId(ctx) : undefined;
  const target = foreign.some(({ place }) => place === "body") ? await findTarget(ctx) : undefined;
  return foreign.find(({ url, place }) => {
    const owner = currentRequest().hostOwners.get(url.host);
    // The application's resolver may need the whole request to recognize the request's own host.
    if (owner === UNKNOWN_OWNER) return place !== "base URL" && url.host !== hostOf(ctx);
    return owner !== hostTenant && !(place === "body" && owner === target);
  });
}

/** Makes better-auth's callback reject the OAuth state, and show its error page. */
export function invalidateState({ query }: HookEndpointContext): void {
  // better-auth rejects a missing, empty or repeated state itself.
  if (query?.state && typeof query.state === "string") query.state = "-";
}

/**
 * Adds R9 to better-auth's `isTrustedOrigin`, for addresses that an endpoint checks itself.
 *
 * Guarded by "better-auth checks addresses in the body before any hook, when there is no endpoint yet".
 */
export function trustOwnAddresses(ctx: AuthContext): AuthContext["isTrustedOrigin"] {
  const isTrusted = ctx.isTrustedOrigin;
  return function isTrustedOrigin(this: AuthContext, address, settings) {
    if (!isTrusted.call(this, address, settings)) return false;
    if (isSwitchedOff(this)) return true;
    const url = parse(address);
    // Patterns with "*" also match text that is not an address.
    if (!url) return false;
    if (url.host === PAGE.host) return true;
    if (!isWeb(url)) return listsScheme(this, url);
    const endpoint = currentEndpoint();
    // better-auth checks the body before any hook. `refuseForeignAddresses` checks it again.
    if (!endpoint) return true;
    const own = [namingHost(endpoint), parse(this.baseURL)?.host];
    if (own.includes(url.host)) return true;
    if (url.host === hostOf(endpoint) && !currentRequest().hostOwners.get(url.host)) return true;
    // A host about which the resolver was not asked is not trusted: this function is not async.
    return currentRequest().hostOwners.has(url.host) && !isForeign(url);
  };
}

/**
 * Finds the owners of the hosts of all addresses in a value, at any depth: in the config of an
 * identity provider, for example. `trustOwnAddresses` trusts no host about which the resolver was
 * not asked.
 */
export async function askForHosts(
  ctx: HookEndpointContext,
  value: unknown,
  from: "the caller" | "what is stored",
): Promise<void> {
  if (!coreOptions(ctx.context).resolveTenantId) return;
  const values = [value];
  // The list grows while it is read. Recursion could overflow the stack, because a caller chooses
  // the depth.
  for (const item of values) {
    if (typeof item === "object") for (const part of Object.values(item ?? {})) values.push(part);
  }
  const urls = values.flatMap((item) => webAddress(item) ?? []);
  await findOwners(ctx, urls, from === "the caller" ? MAX_HOSTS : Infinity);
}

/**
 * Returns the tenant to which the host of an address belongs. Null if it belongs to no tenant, and
 * `UNKNOWN_OWNER` if the resolver fails or finds an unknown slug.
 */
export async function ownerOf(ctx: HookEndpointContext, address: string | null) {
  const url = webAddress(address);
  if (!url) return null;
  await findOwners(ctx, [url], 1);
  return currentRequest().hostOwners.get(url.host) ?? null;
}

/**
 * Returns whether a request comes from the host of an address, or contains an address of that host.
 */
export function isCarriedBy(ctx: HookEndpointContext, address: string): boolean {
  const host = webAddress(address)?.host;
  const carried = [
    ...originOf(ctx),
    ...addressesIn(ctx.body, "body"),
    ...addressesIn(ctx.query, "query"),
  ];
  return carried.some(({ url }) => url.host === host);
}

/**
 * Returns the host that resolves the tenant of a request. There is none inside `runInTenant`, or at
 * a provider's callback, where the state leads to the tenant. A callback at the host of another
 * tenant would let that tenant read the code.
 */
function namingHost(ctx: HookEndpointContext): string | undefined {
  if (surroundingScope() !== undefined || ctx.path === CALLBACK_PATH) return undefined;
  // The application's own function may read another host than better-auth.
  return asHostResolver(coreOptions(ctx.context).resolveTenantId) && hostOf(ctx);
}

/**
 * Returns the base URL if better-auth reads it from the request. Links and redirects lead there,
 * and better-auth may read another host than the application's resolver.
 */
function baseOf({ context }: HookEndpointContext): Address[] {
  const url = isolationOf(context)?.ctx.baseURL ? undefined : webAddress(context.baseURL);
  return url ? [{ url, place: "base URL", error: BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
}

/**
 * Returns the origin of a request that may change something. A GET has no checked origin: any page
 * may link to it.
 */
function originOf({ request, context, path }: HookEndpointContext): Address[] {
  if (!request || request.method === "GET" || context.options.advanced?.disableCSRFCheck) return [];
  // An identity provider makes the browser post a form from the provider's host.
  const { skipOriginCheck } = context;
  const isSkipped = (skipped: string) => path?.startsWith(skipped.replace(/\/*$/, "/"));
  if (Array.isArray(skipOriginCheck) && skipOriginCheck.some(isSkipped)) return [];
  const url = webAddress(request.headers.get("origin") || request.headers.get("referer"));
  return url ? [{ url, place: "origin", error: BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
}

const ERRORS: Record<string, Address["error"]> = {
  callbackURL: BASE_ERROR_CODES.INVALID_CALLBACK_URL,
  redirectTo: BASE_ERROR_CODES.INVALID_REDIRECT_URL,
  errorCallbackURL: BASE_ERROR_CODES.INVALID_ERROR_CALLBACK_URL,
  newUserCallbackURL: BASE_ERROR_CODES.INVALID_NEW_USER_CALLBACK_URL,
};

/** better-auth's names for addresses, and names like them in other plugins. */
const NAMED_LIKE_ADDRESS = /(url|uri|origin|callback|redirect|redirectto)$/i;

function addressesIn(input: unknown, place: "body" | "query"): Address[] {
  if (typeof input !== "object" || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const url = NAMED_LIKE_ADDRESS.test(name) ? webAddress(value) : undefined;
    if (url && value.length > MAX_LENGTH) throw tooMuch(`more than ${MAX_LENGTH} characters`);
    return url ? [{ url, place, error: ERRORS[name] ?? BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
  });
}

const tooMuch = (what: string) =>
  new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message: `Addresses of ${what}` });

/** The page on which a relative address is read. An address that stays on this host is a path. */
const PAGE = new URL("http://page.invalid");

/**
 * Parses an address as a browser does. Uses only the URL parser: it ignores control characters,
 * takes backslashes for slashes, and reads "https:/host" as a host or a path, depending on the
 * page. Here, that is a host.
 */
function parse(address: unknown): URL | undefined {
  if (typeof address !== "string") return undefined;
  const page = URL.canParse(address) ? undefined : PAGE;
  if (!URL.canParse(address, page)) return undefined;
  const url = new URL(address, page);
  // A trailing dot names the same host.
  if (isWeb(url)) url.hostname = url.hostname.replace(/\.$/, "");
  return url;
}

const isWeb = ({ protocol }: URL) => protocol === "http:" || protocol === "https:";

/** Parses an address at a host. Returns undefined for paths and for schemes of apps. */
function webAddress(address: unknown): URL | undefined {
  const url = parse(address);
  return url && isWeb(url) && url.host !== PAGE.host ? url : undefined;
}

/**
 * Returns whether the application lists the scheme of an app. A pattern such as "*.example.com"
 * matches hosts of any scheme, and `intent://globex.example.com` would open a page of Globex.
 */
const listsScheme = ({ trustedOrigins }: AuthContext, { protocol }: URL) =>
  trustedOrigins.some((origin) => origin.toLowerCase().startsWith(protocol));

/** Asks the resolver for the owners of hosts, once per request and host. */
async function findOwners(ctx: HookEndpointContext, urls: URL[], most: number): Promise<void> {
  const unknown = new Map(urls.map((url) => [url.host, url]));
  for (const host of currentRequest().hostOwners.keys()) unknown.delete(host);
  if (unknown.size > most) throw tooMuch(`more than ${most} hosts in one request`);
  for (const [host, url] of unknown)
    currentRequest().hostOwners.set(host, await tenantOfHost(ctx, url));
}

/**
 * Returns whether a host belongs to a tenant in which the request does not run, or to an unknown
 * one.
 */
function isForeign({ host }: URL): boolean {
  const owner = currentRequest().hostOwners.get(host) ?? null;
  return owner !== null && owner !== getTenantId();
}

/**
 * Returns the tenant whose addresses the body of a management call may contain: the tenant on which
 * the call acts, because links lead there. A page of that tenant still must not make calls in a
 * manager's name. The same holds for accepting an invitation: the sign-up runs in its tenant, and
 * checks the addresses again.
 */
async function findTarget(ctx: HookEndpointContext): Promise<string | undefined> {
  if (!isManagement(ctx)) return undefined;
  for (const extension of extensionsWith(isolationOf(ctx.context), "claim")) {
    const target = await extension.claim(ctx, "target");
    if (target) return target.tenantId ?? undefined;
  }
  return namedTenantId(ctx);
}

const isSwitchedOff = ({ options: { advanced } }: AuthContext) =>
  advanced?.disableOriginCheck === true;

/**
 * The owner of a host if the resolver fails or finds an unknown slug. No tenant has this id, so the
 * host is trusted nowhere.
 */
const UNKNOWN_OWNER = "";

/**
 * Returns the tenant to which the resolver gives a host. Null if it gives it to no tenant, and
 * `UNKNOWN_OWNER` if it fails or finds an unknown slug.
 */
async function tenantOfHost(ctx: HookEndpointContext, address: URL): Promise<string | null> {
  const { resolveTenantId } = coreOptions(ctx.context);
  if (!resolveTenantId || isResolving()) return null;
  const headers = new Headers({ host: address.host, "x-forwarded-host": address.host });
  const request = new Request(address.origin, { headers });
  syntheticHostRequests.add(request);
  try {
    const { context } = ctx;
    const answer = await runAsResolver(() => resolveTenantId({ context, headers, request }));
    return (await tenantOfAnswer(ctx, answer)) || null;
  } catch (error) {
    // Not logged: any caller can send a host whose slug belongs to no tenant.
    if (isAPIError(error) && error.statusCode === 404) return UNKNOWN_OWNER;
    const { name, message } = error as Error;
    ctx.context.logger.error(
      `resolveTenantId failed for ${address.host}, which is not trusted therefore: ${name}: ${message}`,
    );
    return UNKNOWN_OWNER;
  }
}
