import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { callbackPath, isBuiltIn } from "./build";
import { fromClient, type TenantClient } from "./own-provider";
import { invalid, parseOwnOptions } from "./provider-options";
import { assertRedirectURI } from "./redirect-uri";

/** A client as a manager describes it. */
export type ClientInput = Partial<TenantClient> & { clientId: string; clientSecret: string };

/** Checks everything that can be checked without asking the provider; answers what to store. */
export async function readClient(
  ctx: AuthContext,
  id: string,
  { clientId, clientSecret, scopes = null, redirectURI = null, options = null }: ClientInput,
  { trustedProviderHosts }: ResolvedOptions,
) {
  if (!isBuiltIn(id)) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.UNSUPPORTED_PROVIDER);
  }
  assertRedirectURI(redirectURI);
  const own = parseOwnOptions(id, options, trustedProviderHosts);
  const client = { clientId, clientSecret, scopes, redirectURI, options: options && own };
  const global = ctx.socialProviders.find((provider) => provider.id === id);
  const provider = await fromClient(ctx, id, client, own, global);
  const authorization = await authorizationURL(provider, redirectURIOf(ctx, id, redirectURI));
  return { client, provider, authorization };
}

/** The address that has to be registered at the provider. */
export function redirectURIOf(ctx: AuthContext, id: string, own: string | null | undefined) {
  return own ?? ctx.baseURL + callbackPath(id);
}

/** Where people would be sent to. Some providers find out only here that they miss something. */
async function authorizationURL(provider: OAuthProvider, redirectURI: string): Promise<URL> {
  try {
    const flow = { state: "-", codeVerifier: VERIFIER, redirectURI };
    return await provider.createAuthorizationURL(flow);
  } catch {
    throw invalid("This provider cannot be set up with these options");
  }
}

/** Stands where a flow would have a random one. */
export const VERIFIER = "-".repeat(43);
