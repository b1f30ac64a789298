import type { BetterAuthOptions } from "better-auth";
import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { configuredOptions, noteProviders } from "./application-providers";
import { giveTenantProviders, withTenantOptions } from "./provider";
import { socialProvidersOf } from "./services";
import { claimOfCallback } from "./state";
import { takeStatePrefix } from "./state-prefix";
import { noteAccounts, withholdTokens } from "./tokens";

/** Gives each tenant its OAuth configs, and binds sign-in flows to their tenant. */
export async function oauth({ ctx }: Isolation): Promise<Extension> {
  const providerOptions = await configuredOptions(ctx.options);
  const provide = giveTenantProviders(ctx);
  return {
    name: "oauth",
    extractFromQuery: { "/tenant/callback/:id": takeStatePrefix },
    claim: async (ctx, phase) => (phase === "path" ? claimOfCallback(ctx) : undefined),
    hooks: { entered: [provide], afterEndpoint: [withholdTokens] },
    guards: [noteAccounts],
    models: { own: ["tenantOauthConfig"] },
    provides: { socialProviders: socialProvidersOf(ctx) },
    install(complete: BetterAuthOptions) {
      noteProviders(ctx, complete, providerOptions);
      complete.socialProviders = withTenantOptions(complete, providerOptions);
    },
  };
}
