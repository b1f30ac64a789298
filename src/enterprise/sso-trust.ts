import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { AfterHook } from "../framework";
import { isCarriedBy } from "../naming/addresses";
import { isTrustedAddress } from "../oauth/trusted-addresses";
import type { ResolvedOptions } from "../options";
import { currentEndpoint } from "../scope/endpoint";
import { getTenantId } from "../scope/scope";

/*
 * better-auth has one list for two questions: where people may be sent to, and where the endpoints
 * of an identity provider may be. Whoever can put a page at a provider's host would get the tokens of
 * reset links there. So `trustedProviderHosts` answers the second question, and never the first.
 */

/** Where better-auth asks about endpoints of providers. At SAML's addresses it asks about pages alone. */
const ASKING = [
  "/sso/register",
  "/sso/update-provider",
  "/sign-in/sso",
  "/sso/callback/:providerId",
];

/**
 * Adds to better-auth's own check what the SSO plugin may call, and nothing else. A page to go to is
 * asked about with settings (may it be a path?), an endpoint of a provider without, and an origin is
 * compared with the list itself. Whatever a request names as a page is none of a provider's either.
 *
 * Guarded by "sso() asks about endpoints of providers without settings, and about pages with them".
 */
export function trustProviderHosts(
  ctx: AuthContext,
  { trustedProviderHosts }: ResolvedOptions,
): void {
  const isTrusted = ctx.isTrustedOrigin;
  ctx.isTrustedOrigin = function isTrustedOrigin(this: AuthContext, address, settings) {
    if (isTrusted.call(this, address, settings)) return true;
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    if (settings || !endpoint || !ASKING.includes(endpoint.path ?? "")) return false;
    if (!URL.canParse(address) || isCarriedBy(endpoint, address)) return false;
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
  matcher: ({ path }) => ASKING.includes(path ?? ""),

  handler: createAuthMiddleware(async ({ path, context: { returned, logger } }) => {
    if (!isAPIError(returned) || !REFUSALS.includes(String(returned.body?.code))) return;
    logger.error(
      `${path}: ${returned.message} If your application trusts this identity provider, add its host to trustedProviderHosts of tenantAuth(), and not to trustedOrigins: people are sent to those.`,
    );
  }),
};
