import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { build, type TenantProvider } from "./build";
import { type Confidential, decrypt, fingerprint } from "./credentials";
import { configuredOptions } from "./options";
import {
  authorityOf,
  invalid,
  mergeOptions,
  type OwnOptions,
  parseOwnOptions,
} from "./provider-options";
import type { StoredOAuthConfig } from "./store";

/** A tenant's client at a provider. */
export interface TenantClient extends Confidential {
  scopes?: string[] | null | undefined;
  redirectURI?: string | null | undefined;
}

/** A provider with the tenant's credentials, which behaves like the global one of its name. */
export async function fromConfig(
  ctx: AuthContext,
  row: StoredOAuthConfig,
  global: OAuthProvider | undefined,
  trustedHosts: string[],
): Promise<TenantProvider> {
  const { providerId, redirectURI, scopes } = row;
  const { clientId, clientSecret, options } = await decrypt(ctx, row);
  // The list of trusted hosts may have changed since the config was stored.
  const own = parseOwnOptions(providerId, options, trustedHosts);
  const client = { clientId, clientSecret, redirectURI, scopes };
  const [provider, credentials] = await Promise.all([
    fromClient(ctx, providerId, client, own, global),
    fingerprint(ctx, [clientId, clientSecret, redirectURI, scopes, options]),
  ]);
  return { provider, credentials };
}

/** The same from a client whose own options have been checked. */
export async function fromClient(
  ctx: AuthContext,
  id: string,
  { clientId, clientSecret, redirectURI, scopes }: Omit<TenantClient, "options">,
  own: OwnOptions,
  global: OAuthProvider | undefined,
): Promise<OAuthProvider> {
  const client = { clientId, clientSecret, redirectURI: redirectURI ?? undefined };
  const configured = await configuredOptions(ctx, id, global);
  const options = mergeOptions(id, client, own, configured);
  if (scopes) options.scope = scopes;
  try {
    const provider = build(id, options);
    const authority = authorityOf(id, options);
    return authority === authorityOf(id, configured)
      ? provider
      : withSubjectsOf(authority, provider);
  } catch (error) {
    // A provider that wants something that is not in our table.
    if (isAPIError(error)) throw error;
    throw invalid("This provider cannot be set up with these options");
  }
}

/**
 * better-auth knows people by provider and id. Where somebody else gives out the ids than at the
 * application's own provider, the same id is another person: on the day that a tenant moves from
 * the one to the other, nobody may become somebody else.
 */
function withSubjectsOf(authority: string, provider: OAuthProvider): OAuthProvider {
  const subject = provider.accountSubject;
  return {
    ...provider,
    accountSubject: async (context) => `${authority || provider.id}#${await subject(context)}`,
  };
}
