import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware, isAPIError } from "better-auth/api";
import { type AfterHook, type BeforeHook, parseJSON } from "../framework";
import type { Guard, Isolation } from "../isolation/isolation";
import { isTrustedAddress } from "../oauth/trusted-addresses";
import { askForHosts, isCarriedBy } from "../request/addresses";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId } from "../request/scope";
import { badRequest, SSO_PROVIDER, sharedProviders } from "./sso-providers";

/*
 * better-auth has one list for two questions: where users may be redirected to, and where endpoints
 * of identity providers may be. An attacker with a page at a provider's host would receive the
 * tokens of reset links there. So `trustedProviderHosts` answers the second question only.
 */

const isSSO = (path: string | undefined) => /^\/(sign-in\/sso$|sso\/)/.test(path ?? "");

/**
 * Decides which endpoints of providers the SSO plugin may call: `trustedProviderHosts` alone. It asks
 * about a redirect with settings (may it be a path?), and about a provider's endpoint without.
 *
 * A trusted endpoint skips better-auth's check for private networks, so `trustedOrigins` are not
 * enough: with `*.example.com` among them, a tenant's administrator could make the server call
 * `vault.internal.example.com`.
 *
 * Guarded by "sso() asks about endpoints of providers without settings, and about pages with them".
 */
export function trustProviderHosts({ ctx, options }: Isolation): void {
  const isTrustedPage = ctx.isTrustedOrigin;
  ctx.isTrustedOrigin = function isTrustedOrigin(this: AuthContext, address, settings) {
    const isPage = () => isTrustedPage.call(this, address, settings);
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    if (settings || !endpoint || !isSSO(endpoint.path)) return isPage();
    if (!URL.canParse(address)) return false;
    // An address from the request may be a redirect that is asked about without settings.
    if (isCarriedBy(endpoint, address) && !isPage()) return false;
    return isTrustedAddress(new URL(address).origin, [], options.trustedProviderHosts);
  };
}

/*
 * R9: if the resolver goes by the host, a page at a host that it was not asked about is trusted
 * nowhere. better-auth asks about the pages of a SAML flow in synchronous code, which cannot wait for
 * the resolver. So their hosts are resolved before.
 */

const isSAML = ({ path }: HookEndpointContext) => path?.startsWith("/sso/saml2/") === true;

/** Resolves the hosts of pages that are stored: in the relay state, and in the provider. */
export const resolveStoredHosts: Guard = ({ call, model }, next) => {
  const endpoint = currentEndpoint() as HookEndpointContext | undefined;
  const hasPages = model === "verification" || model === SSO_PROVIDER;
  if (!endpoint || !hasPages || !isSAML(endpoint)) return undefined;
  return next(call).then(async (found) => {
    const rows = [found].flat().map(valuesOf);
    await askForHosts(endpoint, rows, "what is stored");
    return found;
  });
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

/** A page that follows the response would run a script that a tenant's administrator wrote. */
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
 * A tenant's administrator may have written the SAML metadata, which anyone can open at the host
 * where all tenants sign in: a browser must not run scripts in it.
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

/** better-auth's message says to add the host to `trustedOrigins`, which would be unsafe. */
export const explainRefusedProvider: AfterHook = {
  matcher: ({ path }) => isSSO(path),

  handler: createAuthMiddleware(async ({ path, context: { returned, logger } }) => {
    if (!isAPIError(returned) || !REFUSALS.includes(String(returned.body?.code))) return;
    logger.error(
      `${path}: ${returned.message} If your application trusts this identity provider, add its host to trustedProviderHosts of tenantAuth(), and not to trustedOrigins: people are sent to those.`,
    );
  }),
};
