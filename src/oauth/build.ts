import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviders } from "better-auth/social-providers";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { decrypt, fingerprint } from "./credentials";
import { configuredOptions } from "./options";
import type { StoredOAuthConfig } from "./store";

/** A provider for a tenant, and a word for the credentials that it uses. */
export interface TenantProvider {
  provider: OAuthProvider;
  credentials: string;
}

const builtIn = socialProviders as unknown as Record<
  string,
  (options: ProviderOptions) => OAuthProvider
>;

/** A provider with the tenant's credentials, which behaves like the global one of its name. */
export async function fromConfig(
  ctx: AuthContext,
  row: StoredOAuthConfig,
  global: OAuthProvider | undefined,
): Promise<TenantProvider> {
  const clientId = await decrypt(ctx, row.clientId);
  const clientSecret = await decrypt(ctx, row.clientSecret);
  const redirectURI = row.redirectURI ?? undefined;
  const behaviour = withoutCredentials(global?.options ?? configuredOptions(ctx, row.providerId));
  const options = { ...behaviour, clientId, clientSecret, redirectURI };
  if (row.scopes) options.scope = row.scopes;
  return {
    provider: build(row.providerId, options),
    credentials: await fingerprint(ctx, [clientId, clientSecret, redirectURI]),
  };
}

/** The global provider, sent back to the tenants' callback instead of its own redirect URI. */
export function fromGlobal(global: OAuthProvider): TenantProvider {
  const provider = Object.hasOwn(builtIn, global.id)
    ? build(global.id, { ...global.options, redirectURI: undefined })
    : { ...global, callbackPath: callbackPath(global.id) };
  return { provider, credentials: "global" };
}

function build(id: string, options: ProviderOptions): OAuthProvider {
  const provider = builtIn[id]?.(options);
  // A config of a provider that this version of better-auth does not have any more.
  if (!provider) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.PROVIDER_NOT_FOUND);
  // Both as better-auth does it for the global ones, or for providers with a callback of their own.
  provider.disableImplicitSignUp = options.disableImplicitSignUp;
  provider.callbackPath = callbackPath(id);
  return provider;
}

const callbackPath = (id: string) => `/tenant/callback/${id}`;

function withoutCredentials(options: ProviderOptions & { enabled?: boolean }): ProviderOptions {
  const { clientId, clientSecret, clientKey, redirectURI, enabled, ...behaviour } = options;
  return behaviour;
}
