import { type AuthContext, BetterAuthError, type BetterAuthOptions } from "better-auth";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { claimsIn } from "../framework";
import { isolationOf } from "../isolation/isolation";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId } from "../request/scope";

/** The application's own providers. */
interface ApplicationProviders {
  /** If two providers have the same id, better-auth uses the first. */
  byId: Map<string, OAuthProvider>;
  /** What `socialProviders` says about better-auth's own providers, enabled or not. */
  options: Map<string, ProviderOptions>;
  /** Ids of providers that plugins brought, or will bring. */
  ofPlugins: Set<string>;
}

/** By the context that better-auth started with. */
const known = new WeakMap<AuthContext, ApplicationProviders>();

export function applicationProviders(ctx: AuthContext): ApplicationProviders {
  const found = known.get(isolationOf(ctx)?.ctx ?? ctx);
  if (!found) throw new Error("The providers of this instance are not known");
  return found;
}

/** The options of a provider may be a function, which better-auth calls when it starts. */
export async function configuredOptions({ socialProviders = {} }: BetterAuthOptions) {
  const entries = Object.entries(socialProviders).map(
    async ([id, given]) => [id, typeof given === "function" ? await given() : given] as const,
  );
  return new Map<string, ProviderOptions>((await Promise.all(entries)).filter(([, set]) => set));
}

/** Providers that are as the application gets them from here. */
const noted = new WeakSet<OAuthProvider>();

/** Takes down the providers once all plugins have brought theirs. */
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

/** Also called later: genericOAuth() adds a provider that did not answer at startup. */
export function noteAddedProviders(ctx: AuthContext): void {
  const { byId } = applicationProviders(ctx);
  // In place: requests that are running have the same list.
  for (const [index, provider] of ctx.socialProviders.entries()) {
    if (noted.has(provider)) continue;
    const one = withMatchingTokens(provider);
    noted.add(one);
    ctx.socialProviders[index] = one;
  }
  byId.clear();
  for (const one of ctx.socialProviders) if (!byId.has(one.id)) byId.set(one.id, one);
}

/** Providers are copied for tenants, and a copy of anything else would lack its methods. */
function assertPlain(provider: OAuthProvider): void {
  if ([Object.prototype, null].includes(Object.getPrototypeOf(provider))) return;
  throw new BetterAuthError(
    `tenantAuth(): context.socialProviders contains a function or a class instance (${provider.id ?? "without an id"}). Write it as a plain object: { id, name, createAuthorizationURL, ... }.`,
  );
}

/**
 * A provider with a `redirectURI` in its options sends users there, whatever it is told. That is the
 * platform's callback, so tenants do not see it.
 *
 * Guarded by "%s reads its redirect URI whenever it needs it, from its options", and the same of
 * genericOAuth().
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

/** Providers of genericOAuth() do not show the options that they read. */
const genericConfigs = ({ plugins = [] }: BetterAuthOptions) =>
  plugins.flatMap(({ id, options }): { providerId: string; redirectURI?: string }[] =>
    id === "generic-oauth" ? (options?.config ?? []) : [],
  );

/** How the application has set up a provider. Zoom's provider shows no options in 1.7.7, but in 1.7.24. */
export function optionsOf(ctx: AuthContext, id: string): ProviderOptions {
  const { byId, options } = applicationProviders(ctx);
  return byId.get(id)?.options ?? options.get(id) ?? {};
}

/**
 * A sign-in with an id token may send an access token along, and some providers identify the user by
 * that one. Without this check, a user could send their own id token with the access token of
 * another user, which any client at the same identity provider receives. In 1.7.24, genericOAuth()
 * reads the id token alone. better-auth's other providers still ask with the access token.
 */
export function withMatchingTokens(provider: OAuthProvider): OAuthProvider {
  const getUserInfo: OAuthProvider["getUserInfo"] = async (tokens) => {
    const found = await provider.getUserInfo(tokens);
    const { context, body } = currentEndpoint() ?? {};
    const { idToken, accessToken, ...rest } = tokens;
    if (!found || !context || !body?.idToken || !accessToken) return found;
    // Facebook accepts an access token in the place of an id token.
    if (accessToken === idToken) return found;
    const { sub } = claimsIn(idToken);
    const profile = Object(found.data);
    // `accountSubject` could read the subject from the id token, so it does not get that one.
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
