import type { AuthContext, HookEndpointContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError, isAPIError } from "better-auth/api";
import { CALLBACK_PATH, isManagement } from "../constants";
import { type BeforeHook, silentHook } from "../framework";
import { isolationOf, tenantAuthOptions } from "../isolation/isolation";
import { refuseState } from "../oauth/state-prefix";
import { invitingOf } from "../tenants/plugins";
import { currentEndpoint } from "./endpoint";
import { claimedTenantId, resolvedTenantId, tenantOfAnswer } from "./resolve";
import { asHostResolver, hostOf, ofAddresses } from "./resolvers";
import { around, getTenantId, requestSlot, runAsResolver } from "./scope";

/*
 * R9: an address belongs to a tenant. A host that the resolver gives to one tenant is not trusted in
 * another or on the platform, whatever better-auth's `trustedOrigins` say: a reset link that
 * redirects there would hand its token to that tenant.
 *
 * Trusted are paths, the tenant's own host, the base URL, trusted origins that belong to no tenant,
 * and app schemes that `trustedOrigins` lists (`myapp://`).
 */

/** Hosts in the addresses of the request, and the tenant that the resolver gives them to. */
const hosts = requestSlot(() => new Map<string, string | null>());

type Address = { url: URL; error: { code: string; message: string } };

/** Limits what a caller may send: the resolver may query a database for each host. */
const MAX_HOSTS = 20;
const MAX_LENGTH = 2048;

export const refuseAddresses: BeforeHook = {
  matcher: ({ context }) => tenantAuthOptions(context).resolveTenantId !== undefined,

  handler: silentHook(refuseForeignAddresses),
};

/** Finds the owners of all hosts in the addresses of a request, and refuses those of other tenants. */
async function refuseForeignAddresses(ctx: HookEndpointContext): Promise<void> {
  const isOff = isSwitchedOff(ctx.context);
  const base = baseOf(ctx);
  const written = isOff ? [] : addressesIn(ctx.body);
  // Addresses in the query are judged by the endpoint that uses them, see `trustOwnAddresses`.
  const queried = isOff ? [] : addressesIn(ctx.query);
  const sent = [...base, ...(isOff ? [] : originOf(ctx)), ...written];
  const own = namingHost(ctx);
  const others = [...sent, ...queried].map(({ url }) => url).filter(({ host }) => host !== own);
  await findOwners(ctx, others, MAX_HOSTS);
  if (![...hosts.get().values()].some((tenantId) => tenantId !== null)) return;
  // Management runs in no tenant, and may be called at the host of one.
  const isAnywhere = getTenantId() === null && ctx.path !== CALLBACK_PATH;
  const here = isAnywhere ? await resolvedTenantId(ctx) : undefined;
  for (const address of sent) {
    const { url, error } = address;
    const owner = hosts.get().get(url.host);
    if (!isForeign(url) || (owner && owner === here)) continue;
    if (written.includes(address) && (await isTargets(ctx, url))) continue;
    // The application's resolver may need the whole request to know its own host.
    const isOwn = url.host === hostOf(ctx) || base.includes(address);
    if (owner === UNKNOWN_OWNER && isOwn) continue;
    const whose = owner ? `tenant ${owner}` : "another tenant";
    const place = getTenantId() === null ? "on the platform" : `in tenant ${getTenantId()}`;
    ctx.context.logger.error(`${url.origin} belongs to ${whose} and is not trusted ${place}`);
    // A browser follows the provider's redirect there, and has to see a page.
    if (ctx.path === CALLBACK_PATH) return refuseState(ctx);
    throw APIError.from("FORBIDDEN", error);
  }
}

/** better-auth's own check, with R9 in it: for addresses that an endpoint checks itself. */
export function trustOwnAddresses(ctx: AuthContext): AuthContext["isTrustedOrigin"] {
  const isTrusted = ctx.isTrustedOrigin;
  return function isTrustedOrigin(this: AuthContext, address, settings) {
    if (!isTrusted.call(this, address, settings)) return false;
    if (isSwitchedOff(this)) return true;
    const url = parse(address);
    // Patterns with "*" match text that is not an address.
    if (!url) return false;
    if (url.host === PAGE.host) return true;
    if (!isWeb(url)) return listsScheme(this, url);
    const endpoint = currentEndpoint();
    // better-auth checks the body before any hook. `refuseForeignAddresses` checks it again.
    if (!endpoint) return true;
    const own = [namingHost(endpoint), parse(this.baseURL)?.host];
    if (own.includes(url.host)) return true;
    if (url.host === hostOf(endpoint) && !hosts.get().get(url.host)) return true;
    // If the resolver was not asked about this host: this function cannot wait for it.
    return hosts.get().has(url.host) && !isForeign(url);
  };
}

/**
 * Finds the owners of the hosts of all addresses in a value, at any depth: in the config of an
 * identity provider, for example. A host without a known owner is not trusted.
 */
export async function askForHosts(
  ctx: HookEndpointContext,
  value: unknown,
  from: "the caller" | "what is stored",
): Promise<void> {
  if (!tenantAuthOptions(ctx.context).resolveTenantId) return;
  const values = [value];
  // The list grows while it is read: a caller chooses the depth, and could overflow a stack.
  for (const item of values) {
    if (typeof item === "object") for (const part of Object.values(item ?? {})) values.push(part);
  }
  const urls = values.flatMap((item) => webAddress(item) ?? []);
  await findOwners(ctx, urls, from === "the caller" ? MAX_HOSTS : Infinity);
}

/** The tenant that the host of an address belongs to; null if there is none. */
export async function ownerOf(ctx: HookEndpointContext, address: string | null) {
  const url = webAddress(address);
  if (!url) return null;
  await findOwners(ctx, [url], 1);
  return hosts.get().get(url.host) ?? null;
}

/** Whether a request comes from the host of an address, or has an address of that host in it. */
export function isCarriedBy(ctx: HookEndpointContext, address: string): boolean {
  const host = webAddress(address)?.host;
  const carried = [...originOf(ctx), ...addressesIn(ctx.body), ...addressesIn(ctx.query)];
  return carried.some(({ url }) => url.host === host);
}

/**
 * The host that resolves the tenant of a request. Not inside `runInTenant`; and not at a provider's
 * callback, which goes by its state: at the host of another tenant, that tenant could read the code.
 */
function namingHost(ctx: HookEndpointContext): string | undefined {
  if (around()?.scope !== undefined || ctx.path === CALLBACK_PATH) return undefined;
  // The application's own function may read another host than better-auth.
  return asHostResolver(tenantAuthOptions(ctx.context).resolveTenantId) && hostOf(ctx);
}

/**
 * Where links lead and providers redirect to, if better-auth reads it from the request. It may read
 * another host there than the application's resolver.
 */
function baseOf({ context }: HookEndpointContext): Address[] {
  const url = isolationOf(context)?.ctx.baseURL ? undefined : webAddress(context.baseURL);
  return url ? [{ url, error: BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
}

/** Where a request that changes something comes from. A GET is a link, which any page may have. */
function originOf({ request, context, path }: HookEndpointContext): Address[] {
  if (!request || request.method === "GET" || context.options.advanced?.disableCSRFCheck) return [];
  // Identity providers make a browser post from their own host.
  const { skipOriginCheck } = context;
  const isSkipped = (skipped: string) => path?.startsWith(skipped.replace(/\/*$/, "/"));
  if (Array.isArray(skipOriginCheck) && skipOriginCheck.some(isSkipped)) return [];
  const url = webAddress(request.headers.get("origin") || request.headers.get("referer"));
  return url ? [{ url, error: BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
}

const ERRORS: Record<string, Address["error"]> = {
  callbackURL: BASE_ERROR_CODES.INVALID_CALLBACK_URL,
  redirectTo: BASE_ERROR_CODES.INVALID_REDIRECT_URL,
  errorCallbackURL: BASE_ERROR_CODES.INVALID_ERROR_CALLBACK_URL,
  newUserCallbackURL: BASE_ERROR_CODES.INVALID_NEW_USER_CALLBACK_URL,
};

/** better-auth's names for addresses, and names like them in other plugins. */
const NAMED_LIKE_ADDRESS = /(url|uri|origin|callback|redirect|redirectto)$/i;

function addressesIn(input: unknown): Address[] {
  if (typeof input !== "object" || input === null) return [];
  return Object.entries(input).flatMap(([name, value]) => {
    const url = NAMED_LIKE_ADDRESS.test(name) ? webAddress(value) : undefined;
    if (url && value.length > MAX_LENGTH) throw tooMuch(`more than ${MAX_LENGTH} characters`);
    return url ? [{ url, error: ERRORS[name] ?? BASE_ERROR_CODES.INVALID_ORIGIN }] : [];
  });
}

const tooMuch = (what: string) =>
  new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message: `Addresses of ${what}` });

/** A page that an address may be on: without a host of its own, it leads here. */
const PAGE = new URL("http://page.invalid");

/**
 * Where a browser goes from an address. Only the URL parser decides: it ignores control characters,
 * takes backslashes for slashes, and reads "https:/host" as a host or a path, depending on the page.
 * Here that is a host.
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

/** An address at a host, which can belong to a tenant. */
function webAddress(address: unknown): URL | undefined {
  const url = parse(address);
  return url && isWeb(url) && url.host !== PAGE.host ? url : undefined;
}

/**
 * Whether the application lists the scheme of an app. A pattern such as "*.example.com" matches
 * hosts of any scheme, and `intent://globex.example.com` would open a page of Globex.
 */
const listsScheme = ({ trustedOrigins }: AuthContext, { protocol }: URL) =>
  trustedOrigins.some((origin) => origin.toLowerCase().startsWith(protocol));

/** Asks the resolver, once per request and host. */
async function findOwners(ctx: HookEndpointContext, urls: URL[], most: number): Promise<void> {
  const unknown = new Map(urls.map((url) => [url.host, url]));
  for (const host of hosts.get().keys()) unknown.delete(host);
  if (unknown.size > most) throw tooMuch(`more than ${most} hosts in one request`);
  for (const [host, url] of unknown) hosts.get().set(host, await tenantOfHost(ctx, url));
}

/** Whether the host of an address belongs to a tenant that the request does not run in. */
function isForeign({ host }: URL): boolean {
  const owner = hosts.get().get(host) ?? null;
  return owner !== null && owner !== getTenantId();
}

/**
 * A manager may write an address of the tenant that the call is about: a link leads there. (A page
 * of that tenant still must not call in a manager's name.) So may the caller who accepts an
 * invitation: the sign-up itself runs in its tenant, and checks the addresses again.
 */
async function isTargets(ctx: HookEndpointContext, { host }: URL) {
  if (!isManagement(ctx.path)) return false;
  const accepted = await invitingOf(ctx.context)?.acceptedTenant(ctx);
  const target = accepted ?? (await claimedTenantId(ctx));
  return target !== undefined && hosts.get().get(host) === target;
}

const isSwitchedOff = ({ options: { advanced } }: AuthContext) =>
  advanced?.disableOriginCheck === true;

/** Not a tenant's id: a host of which the resolver does not know the tenant is trusted nowhere. */
const UNKNOWN_OWNER = "";

/** The tenant that a host belongs to, by the resolver alone; null if it belongs to none. */
async function tenantOfHost(ctx: HookEndpointContext, address: URL): Promise<string | null> {
  const { resolveTenantId } = tenantAuthOptions(ctx.context);
  if (!resolveTenantId || around()?.resolving) return null;
  const headers = new Headers({ host: address.host, "x-forwarded-host": address.host });
  const request = new Request(address.origin, { headers });
  ofAddresses.add(request);
  try {
    const { context } = ctx;
    const answer = await runAsResolver(() => resolveTenantId({ context, headers, request }));
    return (await tenantOfAnswer(ctx, answer)) || null;
  } catch (error) {
    // The slug in a host may be that of no tenant: any caller can send such a host.
    if (isAPIError(error) && error.statusCode === 404) return UNKNOWN_OWNER;
    const { name, message } = error as Error;
    ctx.context.logger.error(
      `resolveTenantId failed for ${address.host}, which is not trusted therefore: ${name}: ${message}`,
    );
    return UNKNOWN_OWNER;
  }
}
