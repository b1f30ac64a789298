import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware, isAPIError } from "better-auth/api";
import type { Guard } from "../../core/database";
import { currentEndpoint } from "../../core/endpoint";
import type { AfterHook, BeforeHook } from "../../core/hooks";
import type { Isolation } from "../../core/isolation";
import { getTenantId } from "../../core/request";
import { askForHosts, isCarriedBy } from "../../core/resolve/addresses";
import { parseJSON } from "../../core/utils";
import { oauthOptions } from "../oauth/options";
import { limitCallsTo } from "../oauth/provider-calls";
import { isTrustedAddress } from "../oauth/trusted-addresses";
import { enterpriseRequest } from "./request";
import { isCalledAsWritten } from "./sso-addresses";
import { badRequest, SSO_PROVIDER, sharedProviders, writesProvider } from "./sso-providers";

/*
 * better-auth uses one list for two questions: where users may be redirected to, and where
 * endpoints of identity providers may be. With a provider's host on that list, an attacker with a
 * page at that host would receive the tokens of reset links. So `trustedProviderHosts` answers the
 * second question only.
 */

const isSSO = (path: string | undefined) => /^\/(sign-in\/sso$|sso\/)/.test(path ?? "");

/**
 * Makes `trustedProviderHosts` decide which endpoints of providers `sso()` may call. `sso()` asks
 * `isTrustedOrigin` about redirects with settings, and about endpoints without.
 *
 * A trusted endpoint skips better-auth's check for private networks, so `trustedOrigins` are not
 * enough: with `*.example.com`, a tenant's administrator could make the server call
 * `vault.internal.example.com`.
 *
 * `sso()` asks right before each call, so the limits of `provider-calls.ts` start here.
 *
 * Guarded by "sso() asks about endpoints of providers without settings, and about pages with them".
 */
export function trustProviderHosts(isolation: Isolation): void {
  const { ctx } = isolation;
  const { trustedProviderHosts } = oauthOptions(ctx);
  const isTrustedPage = ctx.isTrustedOrigin;
  ctx.isTrustedOrigin = function isTrustedOrigin(this: AuthContext, address, settings) {
    const isPage = () => isTrustedPage.call(this, address, settings);
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    if (settings || !endpoint || !isSSO(endpoint.path)) return isPage();
    if (!URL.canParse(address)) return false;
    // An address from the request may be a redirect, although `sso()` asks without settings. So it
    // must be trusted as a page as well.
    const isForeignPage = isCarriedBy(endpoint, address) && !isPage();
    const { origin } = new URL(address);
    const isStored = isAboutStoredProvider(endpoint);
    const isTrusted =
      !isForeignPage &&
      (!isStored || isCalledAsWritten(address)) &&
      isTrustedAddress(origin, [], trustedProviderHosts);
    if (isStored) limitCallsTo(address, isTrusted);
    return isTrusted;
  };
}

/** Returns whether the endpoint calls a stored provider, or stores a provider. */
const isAboutStoredProvider = (endpoint: HookEndpointContext) =>
  writesProvider(endpoint) || enterpriseRequest.get().readProviders.length > 0;

/*
 * R9: if the resolver reads the host, a page is trusted only after the resolver was asked about its
 * host. better-auth asks about the pages of a SAML flow in synchronous code, which cannot wait for
 * the resolver. So their hosts are resolved before.
 */

const isSAML = ({ path }: HookEndpointContext) => path?.startsWith("/sso/saml2/") === true;

/** Resolves the hosts of the pages in a stored relay state or provider. */
export const resolveStoredHosts: Guard = {
  models: ["verification", SSO_PROVIDER],
  async run({ call }, next) {
    const found = await next(call);
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    if (endpoint && isSAML(endpoint)) {
      await askForHosts(endpoint, [found].flat().map(valuesOf), "what is stored");
    }
    return found;
  },
};

const valuesOf = (row: unknown) =>
  Object.values(Object(row)).map((value) => parseJSON(value) ?? value);

/** Resolves the hosts of pages in the request, and in the application's own providers. */
export const resolveGivenHosts: BeforeHook = {
  matcher: isSAML,

  handler: createAuthMiddleware(async (given) => {
    const ctx = given as HookEndpointContext;
    const { query, body, context } = ctx;
    await askForHosts(ctx, sharedProviders(context), "what is stored");
    await askForHosts(ctx, [query?.RelayState, body?.RelayState], "the caller");
  }),
};

/**
 * Refuses a sign-in address that is not http or https: a page that opens it would run a script of
 * the tenant's administrator.
 */
export const refuseScriptAddress: AfterHook = {
  matcher: ({ path }) => path === "/sign-in/sso",

  handler: createAuthMiddleware(async ({ context: { returned, logger } }) => {
    const { url } = (returned ?? {}) as { url?: unknown };
    if (typeof url !== "string" || isAPIError(returned) || /^https?:/i.test(url)) return;
    logger.error(
      `The identity provider of tenant ${getTenantId() ?? "(platform)"} has a sign-in address that is not http or https: ${url.slice(0, 100)}`,
    );
    throw badRequest(
      "INVALID_PROVIDER_ADDRESS",
      "The sign-in address of this identity provider is not one of http or https",
    );
  }),
};

/**
 * Stops browsers from running scripts in SAML metadata, which a tenant's administrator may have
 * written. Anyone can open it at the host where all tenants sign in.
 */
export const sandboxMetadata: AfterHook = {
  matcher: ({ path }) => path === "/sso/saml2/sp/metadata",

  handler: createAuthMiddleware(async ({ setHeader }) => {
    setHeader("content-security-policy", "default-src 'none'; sandbox");
    setHeader("content-disposition", "attachment");
    setHeader("x-content-type-options", "nosniff");
  }),
};

const REFUSALS = ["discovery_untrusted_origin", "discovery_private_host"];

/** Logs which option to change: better-auth recommends `trustedOrigins`, which would be unsafe. */
export const explainRefusedProvider: AfterHook = {
  matcher: ({ path }) => isSSO(path),

  handler: createAuthMiddleware(async ({ path, context: { returned, logger } }) => {
    if (!isAPIError(returned) || !REFUSALS.includes(String(returned.body?.code))) return;
    logger.error(
      `${path}: ${returned.message} If your application trusts this identity provider, add its host to trustedProviderHosts of tenantAuth(), and not to trustedOrigins: people are sent to those. If its host is there, the address has a path or query that better-auth would change.`,
    );
  }),
};
