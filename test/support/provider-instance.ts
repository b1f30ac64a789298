import type { BetterAuthOptions } from "better-auth";
import { socialProviderList } from "better-auth/social-providers";
import { createDatabase } from "./database";
import { createInstance } from "./instance";
import {
  type ProviderAnswers,
  type ProviderClient,
  type ProviderId,
  providerAnswers,
} from "./provider-answers";
import { providerVariants, TRUSTED_HOSTS } from "./provider-variants";

/** A provider under the name that a table prints, with the options that its answers belong to. */
export interface ProviderRow {
  name: string;
  provider: ProviderId;
  answers: ProviderAnswers;
  /** The default is in the first round; the first variant of each provider in the next one. */
  round: number;
}

/** Every provider that the installed better-auth has, as it is without options. */
export const defaultRows: ProviderRow[] = socialProviderList.map((provider) => ({
  name: provider,
  provider,
  answers: providerAnswers[provider],
  round: 0,
}));

/** In a round each provider comes once, so that one application can be configured like that. */
export const variantRows: ProviderRow[] = providerVariants.map((variant, index) => {
  const before = providerVariants.slice(0, index);
  const round = 1 + before.filter(({ provider }) => provider === variant.provider).length;
  return { ...variant, round };
});

/** The credentials that somebody has at a provider. */
export const clientOf = (who: string, provider: string): ProviderClient => ({
  clientId: `${who}-id-at-${provider}`,
  clientSecret: `${who}-secret-at-${provider}`,
});

export type ProviderInstance = Awaited<ReturnType<typeof createProviderInstance>>;

/**
 * An instance for all tests of a file, which therefore have to close it: each has tenants and a
 * person of its own. The application has credentials for the given providers.
 */
export async function createProviderInstance(
  globals: ProviderRow[],
  auth: Partial<BetterAuthOptions> = {},
) {
  const database = await createDatabase("sqlite");
  const entries = globals.map(({ provider, answers }) => {
    const { clientId, clientSecret } = clientOf("global", provider);
    // TikTok has a client key, and no client id.
    const id = provider === "tiktok" ? { clientKey: clientId } : { clientId };
    return [provider, { ...id, clientSecret, ...answers.options }];
  });
  const instance = await createInstance({
    database,
    tenant: { trustedProviderHosts: TRUSTED_HOSTS },
    auth: { socialProviders: Object.fromEntries(entries), ...auth },
  });
  const { quote } = database;

  return {
    ...instance,
    /** A tenant that nobody ever signs in at. */
    neighbour: await instance.createTenant("neighbour"),

    /** Gives a tenant credentials of its own. */
    async configure(
      tenantId: string,
      { provider, answers }: ProviderRow,
      client: ProviderClient,
      config: { enabled?: boolean; scopes?: string[]; redirectURI?: string } = {},
    ) {
      const options = answers.options && { options: answers.options };
      await instance.api.registerTenantOAuthConfig({
        body: { tenantId, providerId: provider, ...client, ...options, ...config },
      });
    },

    /** What a tenant has in a table, and with an empty id the platform. */
    rowsOf: (table: string, tenantId: string) =>
      database.query(`select * from ${quote(table)} where ${quote("tenantId")} = ?`, [tenantId]),
  };
}
