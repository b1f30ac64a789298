import type { AuthContext, HookEndpointContext } from "better-auth";
import { createAuthMiddleware, isAPIError } from "better-auth/api";
import { type AfterHook, type BeforeHook, parseJSON, textOf } from "../framework";
import type { Guard, Row } from "../isolation/isolation";
import { isTrustedAddress } from "../oauth/trusted-addresses";
import type { ResolvedOptions } from "../options";
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
 * Decides which endpoints of providers the SSO plugin may call. It asks about a redirect with
 * settings (may it be a path?), and about a provider's endpoint without.
 *
 * A trusted endpoint skips better-auth's check for private networks, so `trustedOrigins` are not
 * enough: with `*.example.com` among them, a tenant's administrator could make the server call
 * `vault.internal.example.com`.
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
    if (settings || !endpoint || !isSSO(endpoint.path)) return isPage();
    if (!URL.canParse(address)) return false;
    // An address from the request may be a redirect that is asked about without settings.
    if (isCarriedBy(endpoint, address) && !isPage()) return false;
    return isTrustedAddress(new URL(address).origin, [], trustedProviderHosts);
  };
}

/*
 * R9: if the resolver goes by the host, a host that it was not asked about is trusted nowhere.
 * better-auth asks about a provider's addresses in synchronous code, which cannot wait for the
 * resolver. So their hosts are resolved before.
 */

/** Resolves the hosts in stored providers, and in the relay state of a SAML flow. */
export const resolveStoredHosts =
  (options: ResolvedOptions): Guard =>
  ({ call, model }, next) => {
    const endpoint = currentEndpoint() as HookEndpointContext | undefined;
    const isRelayState = model === "verification" && endpoint?.path?.startsWith("/sso/saml2/");
    if (!options.resolveTenantId || !(isRelayState || model === SSO_PROVIDER)) return undefined;
    return next(call).then(async (found) => {
      const rows = isRelayState ? [found].flat() : providersInUse(found);
      if (endpoint) await askForHosts(endpoint, options, rows.map(valuesOf), "what is stored");
      return found;
    });
  };

const valuesOf = (row: unknown) =>
  Object.values(Object(row)).map((value) => parseJSON(value) ?? value);

/**
 * The providers that better-auth continues with; of a list, those for the domain of the sign-in.
 * There may be hundreds of others, and the resolver may query a database for each host.
 */
function providersInUse(found: unknown): unknown[] {
  if (!Array.isArray(found)) return [found];
  const { path, body } = currentEndpoint() ?? {};
  if (path !== "/sign-in/sso") return [];
  const { domain, email } = (body ?? {}) as { domain?: unknown; email?: unknown };
  const wanted = textOf(domain) || (textOf(email).split("@")[1] ?? "");
  const name = `.${wanted.trim().toLowerCase()}`;
  return found.filter((row: Row) => {
    // Rows from before the plugin may hold URLs, of which better-auth takes the host.
    const hosts = String(row.domain)
      .toLowerCase()
      .split(/[\s,/:@?#]+/);
    return hosts.some((host) => host !== "" && name.endsWith(`.${host}`));
  });
}

/**
 * Resolves the hosts that come from no row: of the application's own providers, of a relay state,
 * and of a provider that is about to be registered, with the endpoints that it has.
 */
export const resolveGivenHosts = (options: ResolvedOptions): BeforeHook => ({
  matcher: ({ path }) => options.resolveTenantId !== undefined && isSSO(path),

  handler: createAuthMiddleware(async (given) => {
    const ctx = given as HookEndpointContext;
    const { path, query, body, context } = ctx;
    const resolve = (value: unknown) => askForHosts(ctx, options, value, "the caller");
    if (path === "/sso/register" || path === "/sso/update-provider") await resolve(body);
    if (path === "/sso/register") await resolve(await discoveryDocument(ctx));
    await askForHosts(ctx, options, sharedProviders(context), "what is stored");
    await resolve([query?.RelayState, body?.RelayState]);
  }),
});

const TIMEOUT = 10_000;

/**
 * The document that better-auth is about to read: endpoints may be at another host than the issuer,
 * as Google's are. Read as better-auth does (SSRF): only from a trusted address, and without
 * following redirects.
 */
async function discoveryDocument({ body, context }: HookEndpointContext): Promise<unknown> {
  const { issuer, oidcConfig } = body ?? {};
  if (!oidcConfig || oidcConfig.skipDiscovery) return undefined;
  const address =
    textOf(oidcConfig.discoveryEndpoint) ||
    `${textOf(issuer).replace(/\/$/, "")}/.well-known/openid-configuration`;
  if (!/^https?:/.test(address) || !context.isTrustedOrigin(address)) return undefined;
  try {
    const signal = AbortSignal.timeout(TIMEOUT);
    return await (await fetch(address, { redirect: "manual", signal })).json();
  } catch {
    // better-auth reads it again, and reports what is wrong.
    return undefined;
  }
}

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
