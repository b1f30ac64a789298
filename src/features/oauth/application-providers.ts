import { type AuthContext, BetterAuthError, type BetterAuthOptions } from "better-auth";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { currentEndpoint } from "../../core/endpoint";
import { isolationOf } from "../../core/isolation";
import { getTenantId } from "../../core/request";
import { claimsIn } from "../../core/utils";

/** Providers that the application and its plugins set up. */
interface ApplicationProviders {
  /** If two providers have the same id, better-auth uses the first. */
  byId: Map<string, OAuthProvider>;
  /** The options in `socialProviders`, also of disabled providers. */
  options: Map<string, ProviderOptions>;
  /** Ids of providers that plugins have added at startup, or add in a hook (genericOAuth). */
  ofPlugins: Set<string>;
}

/** The providers of each instance, keyed by the context that better-auth started with. */
const known = new WeakMap<AuthContext, ApplicationProviders>();

export function applicationProviders(ctx: AuthContext): ApplicationProviders {
  const found = known.get(isolationOf(ctx)?.ctx ?? ctx);
  if (!found) throw new Error("The providers of this instance are not known");
  return found;
}

/** Returns each provider's options. Calls those that are functions, like better-auth at startup. */
export async function configuredOptions({ socialProviders = {} }: BetterAuthOptions) {
  const entries = Object.entries(socialProviders).map(
    async ([id, given]) => [id, typeof given === "function" ? await given() : given] as const,
  );
  return new Map<string, ProviderOptions>((await Promise.all(entries)).filter(([, set]) => set));
}

/** Providers that `noteAddedProviders` has wrapped. */
const noted = new WeakSet<OAuthProvider>();

/** Records the application's providers after all plugins have added theirs. */
export function noteProviders(
  ctx: AuthContext,
  complete: BetterAuthOptions,
  options: Map<string, ProviderOptions>,
): void {
  for (const provider of ctx.socialProviders) assertPlain(provider);
  const ofGeneric = genericConfigs(complete);
  ctx.socialProviders = [...ctx.socialProviders];
  const byId = new Map<string, OAuthProvider>();
  const isEnabled = (id: string) =>
    options.has(id) && (options.get(id) as { enabled?: boolean }).enabled !== false;
  const isOfPlugin = (id: string) =>
    ctx.socialProviders.filter((one) => one.id === id).length > Number(isEnabled(id));
  const ofPlugins = new Set(ofGeneric.map(({ providerId }) => providerId));
  known.set(ctx, { byId, options, ofPlugins });
  noteAddedProviders(ctx);
  for (const id of byId.keys()) if (isOfPlugin(id)) ofPlugins.add(id);
  for (const [id, given] of options) hideRedirectURI(id, given);
  for (const one of ctx.socialProviders) hideRedirectURI(one.id, one.options);
  for (const config of ofGeneric) hideRedirectURI(config.providerId, config);
}

/**
 * Wraps and records providers that are not wrapped yet. Requests call this again, because
 * genericOAuth() may add a provider after startup.
 */
export function noteAddedProviders(ctx: AuthContext): void {
  const { byId } = applicationProviders(ctx);
  // Replaced in the same list, because running requests use it and need the check as well.
  for (const [index, provider] of ctx.socialProviders.entries()) {
    if (noted.has(provider)) continue;
    const one = withMatchingTokens(provider);
    noted.add(one);
    ctx.socialProviders[index] = one;
  }
  byId.clear();
  for (const one of ctx.socialProviders) if (!byId.has(one.id)) byId.set(one.id, one);
}

/** Refuses a provider that is not a plain object: the copies for tenants would lack its methods. */
function assertPlain(provider: OAuthProvider): void {
  if ([Object.prototype, null].includes(Object.getPrototypeOf(provider))) return;
  throw new BetterAuthError(
    `tenantAuth(): context.socialProviders contains a function or a class instance (${provider.id ?? "without an id"}). Write it as a plain object: { id, name, createAuthorizationURL, ... }.`,
  );
}

/**
 * Hides the option `redirectURI` of a provider while a tenant's request runs. The provider prefers
 * this option to the redirect URI of the flow. It leads to the platform's callback, so a tenant's
 * flow would end there.
 *
 * Guarded by "%s reads its redirect URI whenever it needs it, from its options" and "genericOAuth()
 * reads its redirect URI whenever it needs it, from the config".
 */
function hideRedirectURI(id: string, options: { redirectURI?: string } | undefined): void {
  const redirectURI = options?.redirectURI;
  if (!redirectURI) return;
  const get = () => (getTenantId() === null ? redirectURI : undefined);
  const property = { get, enumerable: true, configurable: true };
  if (Reflect.defineProperty(options, "redirectURI", property)) return;
  throw new BetterAuthError(
    `tenantAuth(): the options of the provider ${id} are frozen, and their redirectURI leads out of every tenant. Leave out the redirectURI, or do not freeze the options.`,
  );
}

/**
 * Returns the configs of genericOAuth(). Its providers do not expose their options, so a
 * `redirectURI` is hidden in the config.
 */
const genericConfigs = ({ plugins = [] }: BetterAuthOptions) =>
  plugins.flatMap(({ id, options }): { providerId: string; redirectURI?: string }[] =>
    id === "generic-oauth" ? (options?.config ?? []) : [],
  );

/**
 * Returns the application's options for a provider: those that the provider exposes, else those in
 * `socialProviders`. Zoom's provider exposes none before better-auth 1.7.24.
 */
export function optionsOf(ctx: AuthContext, id: string): ProviderOptions {
  const { byId, options } = applicationProviders(ctx);
  return byId.get(id)?.options ?? options.get(id) ?? {};
}

/**
 * Refuses a sign-in whose id token and access token belong to different users. Some providers
 * identify the user by the access token. An attacker could send their own id token with a victim's
 * access token, which any client at the same identity provider receives. In better-auth 1.7.24,
 * genericOAuth() reads the id token alone, but other providers still need this check.
 */
export function withMatchingTokens(provider: OAuthProvider): OAuthProvider {
  const getUserInfo: OAuthProvider["getUserInfo"] = async (tokens) => {
    const found = await provider.getUserInfo(tokens);
    const { context, body } = currentEndpoint() ?? {};
    const { idToken, accessToken, ...rest } = tokens;
    if (!found || !context || !body?.idToken || !accessToken) return found;
    // Facebook accepts an access token in place of an id token. Then there is nothing to compare.
    if (accessToken === idToken) return found;
    const { sub } = claimsIn(idToken);
    const profile = Object(found.data);
    // Leaves out the id token. `accountSubject` could read the subject from it, so the subjects
    // would always match.
    const askProvider = async () =>
      provider.accountSubject({ tokens: { ...rest, accessToken }, profile });
    const subject = profile.sub ?? (await askProvider().catch(() => undefined));
    if (sub !== undefined && `${subject}` === `${sub}`) return found;
    context.logger.error(
      `${provider.id}: the access token and the id token are of different users`,
    );
    return null;
  };
  return { ...provider, getUserInfo };
}

/**
 * Returns Google's id if One Tap has its own client id, because users can then sign in with Google
 * even if it is not in `socialProviders`.
 */
export const byOneTap = ({ options: { plugins } }: AuthContext) =>
  plugins?.some(({ id, options }) => id === "one-tap" && options?.clientId) ? ["google"] : [];
