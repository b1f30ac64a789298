import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { AfterHook } from "../framework";
import { isTrustedAddress } from "../oauth/trusted-addresses";
import type { ResolvedOptions } from "../options";
import { isCarriedBy } from "../request/addresses";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId } from "../request/scope";

/*
 * better-auth has one list for two questions: where people may be sent to, and where the endpoints
 * of an identity provider may be. Whoever can put a page at a provider's host would get the tokens of
 * reset links there. So `trustedProviderHosts` answers the second question, and never the first.
 */

/** The paths where better-auth asks about endpoints of providers, and about pages. */
export const isAboutSSO = (path: string | undefined) => /^\/(sign-in\/sso$|sso\/)/.test(path ?? "");

/**
 * Decides which endpoints of providers the SSO plugin may call. A page to go to is asked about with
 * settings (may it be a path?), an endpoint of a provider without, and an origin is compared with
 * the list itself.
 *
 * Whatever is trusted here skips better-auth's check for private networks. The pages that the
 * application trusts are not enough: with `*.example.com` among them, a tenant's administrator could
 * make the server call `vault.internal.example.com`.
 *
 * Guarded by "sso() asks about endpoints of providers without settings, and about pages with them".
 */
export function trustProviderHosts(
  ctx: AuthContext,
  { trustedProviderHosts }: ResolvedOptions,
): void {
  const isTrustedPage = ctx.isTrustedOrigin;
  ctx.isTrustedOrigin = function isTrustedOrigin(this: AuthContext, address, settings) {
    const isPage = () => isTrustedPage.call(this, address, settings);
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    if (settings || !endpoint || !isAboutSSO(endpoint.path)) return isPage();
    if (!URL.canParse(address)) return false;
    // A page that the request names has to be trusted as a page, however it is asked about.
    if (isCarriedBy(endpoint, address) && !isPage()) return false;
    return isTrustedAddress(new URL(address).origin, [], trustedProviderHosts);
  };
}

/**
 * The address of a SAML provider is whatever its administrator has written. A page that goes where
 * the answer says would run a script of theirs.
 */
export const refuseScriptAddress: AfterHook = {
  matcher: ({ path }) => path === "/sign-in/sso",

  handler: createAuthMiddleware(async ({ context: { returned, logger } }) => {
    const { url } = (returned ?? {}) as { url?: unknown };
    if (typeof url !== "string" || isAPIError(returned) || /^https?:/i.test(url)) return;
    logger.error(
      `The identity provider of tenant ${getTenantId() ?? "(platform)"} has a sign-in address that is not http or https: ${url.slice(0, 100)}`,
    );
    throw new APIError("BAD_REQUEST", {
      code: "INVALID_PROVIDER_ADDRESS",
      message: "The sign-in address of this identity provider is not one of http or https",
    });
  }),
};

/**
 * The metadata of SAML may be what a tenant's administrator has written. It is answered to anybody,
 * at the address where everybody else is signed in, and a browser would run the scripts in it there.
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

/** better-auth tells people to add the host to `trustedOrigins`, where it does not belong. */
export const explainRefusedProvider: AfterHook = {
  matcher: ({ path }) => isAboutSSO(path),

  handler: createAuthMiddleware(async ({ path, context: { returned, logger } }) => {
    if (!isAPIError(returned) || !REFUSALS.includes(String(returned.body?.code))) return;
    logger.error(
      `${path}: ${returned.message} If your application trusts this identity provider, add its host to trustedProviderHosts of tenantAuth(), and not to trustedOrigins: people are sent to those.`,
    );
  }),
};
