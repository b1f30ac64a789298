import type { AuthContext } from "better-auth";
import * as z from "zod";
import { coreOptions } from "../../core/isolation";
import type { ResolvedCoreOptions } from "../../core/options";

/** Options of `tenantAuth()` for OAuth providers. */
export interface OAuthOptions {
  /**
   * Hosts that the server may call for identity providers of tenants besides the built-in
   * providers' public hosts, as `host`, `host:port` or `*.example.com`. List none that a tenant
   * must not reach. For hosts that users may be redirected to, use better-auth's `trustedOrigins`.
   * @default []
   */
  trustedProviderHosts?: string[];
  /**
   * Origin of one redirect URI for all tenants, such as `"https://example.com"`: the plugin
   * redirects each callback from there to the tenant's host where the flow started. A `redirectURI`
   * in a tenant's config overrides it.
   */
  redirectBaseURL?: string;
}

export const OAUTH_DEFAULTS = { trustedProviderHosts: [] } satisfies OAuthOptions;

const HOST_PATTERN = /^(\*\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?$/;

/** Returns whether a pattern is a normalized host, with an optional port or wildcard. */
function isHostPattern(pattern: string): boolean {
  const [, wildcard = "", name = ""] = HOST_PATTERN.exec(pattern) ?? [];
  const address = `https://${pattern.slice(wildcard.length)}`;
  const isDomain = /[a-z]$/.test(name);
  if (name === "" || (wildcard && !isDomain) || !URL.canParse(address)) return false;
  return new URL(address).origin === address;
}

const isOrigin = (text: string) =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

export const oauthChecks = {
  trustedProviderHosts: z.array(z.string().refine(isHostPattern, "expected a host")),
  redirectBaseURL: z
    .string()
    .refine(isOrigin, 'expected an origin without a path: "https://example.com"')
    .optional(),
};

export type ResolvedOAuthOptions = ResolvedCoreOptions &
  OAuthOptions &
  Required<Pick<OAuthOptions, keyof typeof OAUTH_DEFAULTS>>;

export const oauthOptions = (ctx: AuthContext) => coreOptions(ctx) as ResolvedOAuthOptions;
