import type { AuthContext, BetterAuthOptions } from "better-auth";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { borderOf } from "../border/border";
import { descriptorOf, isShown, resolved, showAs } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { getTenantId } from "../scope/scope";
import { settle } from "../scope/settle";

type Configured = ProviderOptions | (() => unknown) | undefined;
type LateOptions = (() => Promise<unknown>) & { configured: Configured };

/**
 * Some of better-auth's plugins (One Tap) read the options of a provider instead of the provider.
 * better-auth allows them to be functions, so inside a tenant they answer the tenant's.
 */
export function lateProviderOptions({ socialProviders }: BetterAuthOptions) {
  const configured = { ...socialProviders } as Record<string, Configured>;
  const entries = socialProviderList.map((id) => [id, lateOptions(id, configured[id])]);
  return { ...configured, ...Object.fromEntries(entries) } as BetterAuthOptions["socialProviders"];
}

function lateOptions(id: string, configured: Configured): LateOptions {
  const options = async () => {
    const { context } = currentEndpoint() ?? {};
    const border = context && borderOf(context);
    const isInTenant = border && (await settle(border.readSession)).tenantId !== null;
    if (!isInTenant) return typeof configured === "function" ? await configured() : configured;
    const provider = context.socialProviders.find((candidate) => candidate.id === id) as unknown;
    const late = provider as (() => Promise<Partial<OAuthProvider>>) | undefined;
    return (await late?.())?.options;
  };
  return Object.assign(options, { configured });
}

/**
 * A provider with a `redirectURI` in its options sends people back there, whatever it is told. That
 * is the platform's callback: inside a tenant there is none, and the tenants' is taken. So nothing
 * has to be built anew, and what a plugin has done to a provider holds in tenants as well.
 *
 * Guarded by "%s reads its redirect URI whenever it needs it, from its options", and the same of
 * genericOAuth().
 */
export function lateRedirectURI(ctx: AuthContext, { id, options }: OAuthProvider): void {
  // Zoom shows none, and has a copy of its own. A plugin may show others than it goes by.
  for (const given of options ? [options, configuredBy(ctx, id)] : []) {
    if (given && typeof given === "object") hasLateRedirectURI(given);
  }
}

/** The same at start, and for providers of genericOAuth(), which do not show what they go by. */
export function lateRedirectURIs(ctx: AuthContext, options: BetterAuthOptions): void {
  for (const provider of globalProviders(ctx)) lateRedirectURI(ctx, provider);
  for (const config of genericConfigs(options)) {
    if (hasLateRedirectURI(config)) continue;
    ctx.logger.warn(
      `The config of genericOAuth() for ${config.providerId} is frozen, and its redirectURI leads out of every tenant. Leave out the redirectURI, or do not freeze the config.`,
    );
  }
}

/**
 * Makes it so, once for all instances that share the options. False where they are frozen. The
 * application may have a getter of its own, or one in a class.
 */
function hasLateRedirectURI(options: { redirectURI?: string }): boolean {
  const { get, value } = descriptorOf(options, "redirectURI") ?? {};
  if (!(get || value) || isShown(options, "redirectURI")) return true;
  return showAs(options, "redirectURI", (given) => (getTenantId() === null ? given : undefined));
}

interface GenericConfig {
  providerId: string;
  clientId?: string;
  discoveryUrl?: string;
  redirectURI?: string;
}

/** Providers of genericOAuth() do not show their client, and are missing while they are away. */
export const genericConfigs = ({ plugins = [] }: BetterAuthOptions): GenericConfig[] =>
  plugins
    .filter(({ id }) => id === "generic-oauth")
    .flatMap((plugin) => plugin.options?.config ?? []);

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

/** On the list of providers, which shows others inside a tenant. */
export const GLOBALS = Symbol.for("better-auth-tenant:global-providers");

/** The providers that the application has configured, whatever scope asks. */
const globalProviders = ({ socialProviders }: AuthContext): OAuthProvider[] =>
  (socialProviders as { [GLOBALS]?: OAuthProvider[] })[GLOBALS] ?? socialProviders;

/** The same where all of them matter, as better-auth gets them. One that fails stays a function. */
export const resolvedProviders = (ctx: AuthContext): Promise<OAuthProvider[]> =>
  Promise.all(
    globalProviders(ctx).map(async (given) => (await resolved(given).catch(() => given)) ?? given),
  );

/** Of two providers with one name, better-auth takes the first. */
export function byId(providers: OAuthProvider[]): Map<string, OAuthProvider> {
  const found = new Map<string, OAuthProvider>();
  // A function that fails does not say its name.
  for (const provider of providers.filter(({ id }) => id)) {
    if (!found.has(provider.id)) found.set(provider.id, provider);
  }
  return found;
}
