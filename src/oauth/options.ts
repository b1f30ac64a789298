import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { getTenantId } from "../scope/scope";

type Configured = ProviderOptions | (() => unknown) | undefined;
type LateOptions = (() => Promise<unknown>) & { configured: Configured };

/**
 * Some of better-auth's plugins (One Tap) read the options of a provider instead of the provider.
 * better-auth allows them to be functions, so inside a tenant they answer the tenant's.
 */
export function bindProviderOptions(ctx: AuthContext): void {
  const configured = { ...ctx.options.socialProviders } as Record<string, Configured>;
  const entries = socialProviderList.map((id) => [id, lateOptions(id, configured[id])]);
  ctx.options.socialProviders = { ...configured, ...Object.fromEntries(entries) };
}

function lateOptions(id: string, configured: Configured): LateOptions {
  const options = async () => {
    if (getTenantId() === null) {
      return typeof configured === "function" ? await configured() : configured;
    }
    const { socialProviders = [] } = tryGetCurrentAuthEndpointContext()?.context ?? {};
    const provider = socialProviders.find((candidate) => candidate.id === id) as unknown;
    const late = provider as (() => Promise<Partial<OAuthProvider>>) | undefined;
    return (await late?.())?.options;
  };
  return Object.assign(options, { configured });
}

/** How the application has configured a provider, be it switched on or off. */
export async function configuredOptions(
  ctx: AuthContext,
  id: string,
  global: OAuthProvider | undefined,
): Promise<ProviderOptions> {
  // Most of better-auth's providers show their options; Zoom does not.
  if (global?.options) return global.options;
  const configured = configuredBy(ctx, id);
  return ((typeof configured === "function" ? await configured() : configured) ?? {}) as object;
}

/** Whether the provider of this name is better-auth's own, set up by the application. */
export function isConfigured(ctx: AuthContext, id: string): boolean {
  return configuredBy(ctx, id) !== undefined;
}

function configuredBy(ctx: AuthContext, id: string): Configured {
  return (ctx.options.socialProviders as Record<string, LateOptions> | undefined)?.[id]?.configured;
}
