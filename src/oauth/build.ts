import { APIError } from "better-auth/api";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";

/** A provider for a tenant, and a word for the credentials that it uses. */
export interface TenantProvider {
  provider: OAuthProvider;
  credentials: string;
}

const builtIn = socialProviders as unknown as Record<
  string,
  (options: ProviderOptions) => OAuthProvider
>;

export const isBuiltIn = (id: string) => (socialProviderList as readonly string[]).includes(id);

/** One of better-auth's own providers, whose callback is the tenants'. */
export function build(id: string, options: ProviderOptions): OAuthProvider {
  const provider = builtIn[id]?.(options);
  // A config of a provider that this version of better-auth does not have any more.
  if (!provider) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.PROVIDER_NOT_FOUND);
  // better-auth reads from here whether people may sign up; Zoom's provider does not say.
  provider.options ??= options;
  // Both as better-auth does it for the global ones, or for providers with a callback of their own.
  provider.disableImplicitSignUp = options.disableImplicitSignUp;
  provider.callbackPath = callbackPath(id);
  return provider;
}

export const callbackPath = (id: string) => `/tenant/callback/${id}`;
