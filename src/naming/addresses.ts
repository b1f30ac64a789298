import type { AuthContext, HookEndpointContext } from "better-auth";
import { BASE_ERROR_CODES } from "better-auth";
import { APIError, isAPIError } from "better-auth/api";
import { borderOf } from "../border/border";
import { invitingOf } from "../border/inviting";
import { cookiesIn, keepOnly } from "../border/sent-cookies";
import { CALLBACK_PATH, isManagement } from "../constants";
import type { ResolvedOptions } from "../options";
import { currentEndpoint } from "../scope/endpoint";
import { commonScope, getTenantId, notes, runAsResolver } from "../scope/scope";
import { settle } from "../scope/settle";
import { hostOf, ownHost } from "./by-host";
import { type Address, addressesIn, originOf, PAGE, parse, popupOpener } from "./carried";
import { claimedTenantId, resolvedTenantId, tenantOfAnswer } from "./request";
import { oauthState } from "./stand-ins";

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
  const own = namingHost(ctx, options);
  const base = baseOf(ctx);
  const { origin, written, asked, popup } = isSwitchedOff(ctx.context)
    ? NOTHING
    : await carriedBy(ctx);
  const sent = [...base, ...origin, ...written];
  if (popup) keepPopup(ctx, popup.name, popup.isRead);
  const urls = [...sent, ...asked].map(({ url }) => url);
  for (const url of popup?.url ? [...urls, popup.url] : urls) {
    if (url.host !== own) await askForCarriedHost(ctx, options, url);
  }
  if (![...notes().hosts.values()].some((tenantId) => tenantId !== null)) return;
  const border = borderOf(ctx.context);
  if (border) await settle(border.readSession);
  if (popup?.url && isForeign(popup.url)) keepPopup(ctx, popup.name, false);
  // Management runs in no tenant, and may be at the host of one.
  const isAnywhere = getTenantId() === null && ctx.path !== CALLBACK_PATH;
  const here = isAnywhere ? await resolvedTenantId(ctx, options) : undefined;
  const isWritten = (url: URL) => written.some((address) => address.url === url);
  for (const { url, error } of sent) {
    const owner = notes().hosts.get(url.host);
    if (!isForeign(url) || (owner && owner === here)) continue;
    if (isWritten(url) && (await isTargets(ctx, options, url))) continue;
    // The application's resolver may not know what to say of an address without a request.
    const isOwn = url.host === hostOf(ctx) || base.some((address) => address.url === url);
    if (!owner && isOwn) continue;
    const whose = owner ? `tenant ${owner}` : "another tenant";
    const place = getTenantId() === null ? "on the platform" : `in tenant ${getTenantId()}`;
    ctx.context.logger.error(`${url.origin} belongs to ${whose} and is not trusted ${place}`);
    // Somebody's browser comes there, and is to see a page.
    if (ctx.path === CALLBACK_PATH) return (await oauthState()).refuseState(ctx);
    throw APIError.from("FORBIDDEN", error);
  }
}

/**
 * The host that says where a request belongs. Inside of `runInTenant` that is said already, and a
 * provider's callback goes by its state: at the host of another tenant, whoever reads along there
 * would have the code.
 */
const namingHost = (ctx: HookEndpointContext, { resolveTenantId }: ResolvedOptions) =>
  commonScope().kind === "settled" || ctx.path === CALLBACK_PATH
    ? undefined
    : ownHost(ctx, resolveTenantId);

const NOTHING = { origin: [], written: [], asked: [], popup: undefined };

const carriedBy = async (ctx: HookEndpointContext) => ({
  origin: originOf(ctx),
  written: addressesIn(ctx.body),
  // What is in the query is asked about as well, and looked at by the endpoint that uses it.
  asked: addressesIn(ctx.query),
  popup: ctx.path === CALLBACK_PATH ? await popupOpener(ctx) : undefined,
});

/** Of what a popup's cookie says, only what was read here counts. */
function keepPopup(ctx: HookEndpointContext, name: string, counts: boolean): void {
  const value = counts ? cookiesIn(ctx.headers).get(name) : undefined;
  void keepOnly(ctx, (sent) => sent === name, new Map(value ? [[name, value]] : []));
}

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
  options: ResolvedOptions,
): AuthContext["isTrustedOrigin"] {
  const isTrusted = ctx.isTrustedOrigin;
  return function isTrustedOrigin(this: AuthContext, address, settings) {
    if (!isTrusted.call(this, address, settings)) return false;
    // Patterns with "*" match text that is no address at all.
    if (!URL.canParse(address, PAGE)) return false;
    const url = parse(address);
    const endpoint = currentEndpoint();
    if (!url || !endpoint || isSwitchedOff(this)) return true;
    const own = [namingHost(endpoint, options), parse(this.baseURL)?.host];
    if (own.includes(url.host)) return true;
    if (url.host === hostOf(endpoint) && !notes().hosts.get(url.host)) return true;
    if (notes().hosts.has(url.host)) return !isForeign(url);
    // Nobody has asked the resolver about this one, and here is no time to. The application has
    // said of some that they are an identity provider's.
    return !settings && options.trustedProviderHosts.includes(url.host);
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
 * pages still must not call in a manager's name. So may somebody who accepts an invitation: the
 * sign-up itself runs in its tenant, and looks at the addresses again.
 */
async function isTargets(ctx: HookEndpointContext, options: ResolvedOptions, { host }: URL) {
  if (!isManagement(ctx.path)) return false;
  const accepted = await invitingOf(ctx.context)?.acceptedTenant(ctx);
  const target = accepted ?? (await claimedTenantId(ctx, options));
  return target !== undefined && notes().hosts.get(host) === target;
}

const isSwitchedOff = ({ options: { advanced } }: AuthContext) =>
  advanced?.disableOriginCheck === true;

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
    // Anybody can name a host of no tenant.
    if (isAPIError(error) && error.statusCode === 404) return SOMEBODY_ELSE;
    ctx.context.logger.error(
      `resolveTenantId failed for ${address.host}, which is not trusted therefore: ${name}: ${message}`,
    );
    return SOMEBODY_ELSE;
  }
}

const SOMEBODY_ELSE = "";
