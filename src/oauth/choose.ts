import type { AuthContext } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";
import { build, callbackPath, type TenantProvider } from "./build";
import { configuredOptions, isConfigured } from "./options";
import type { StoredOAuthConfig } from "./store";

/** The provider as the tenant has it: its own config if there is one, else the global provider. */
export async function tenantProvider(
  ctx: AuthContext,
  row: StoredOAuthConfig | undefined,
  global: OAuthProvider | undefined,
  trustedHosts: string[],
): Promise<TenantProvider | undefined> {
  if (!row) return global && fromGlobal(ctx, global);
  ownProviders ??= import("./own-provider");
  return (await ownProviders).fromConfig(ctx, row, global, trustedHosts);
}

/**
 * Loaded with the first config: the table of all providers is large, and most servers that start
 * (on the edge, for one request) never need it. Kept, because Node takes its time to find a module
 * again.
 */
let ownProviders: Promise<typeof import("./own-provider")> | undefined;

/** The global provider, sent back to the tenants' callback instead of its own redirect URI. */
async function fromGlobal(ctx: AuthContext, global: OAuthProvider): Promise<TenantProvider> {
  const { id } = global;
  const { redirectURI, ...options } = await configuredOptions(ctx, id, global);
  // Only a redirect URI has to be built out of it. What a plugin has put there cannot be built.
  const provider =
    redirectURI && isConfigured(ctx, id)
      ? build(id, options)
      : { ...global, callbackPath: callbackPath(id) };
  return { provider, credentials: "global" };
}
