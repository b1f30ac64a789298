import type { AuthContext, BetterAuthOptions } from "better-auth";
import { type APIError, getOAuthState, isAPIError } from "better-auth/api";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { CALLBACK_PATH } from "../../core/constants";
import { currentEndpoint } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import { type BeforeHook, plainHook } from "../../core/hooks";
import { signFor } from "../../core/keys";
import { type Endpoint, getTenantId } from "../../core/request";
import { lookUpTenant } from "../../core/tenants/tenants";
import { boundedMap, errorRedirect, oncePerObject } from "../../core/utils";
import { refuseEarly } from "../policy/admission";
import { requiresVerification } from "../policy/overrides";
import {
  applicationProviders,
  noteAddedProviders,
  optionsOf,
  withMatchingTokens,
} from "./application-providers";
import {
  decrypt,
  listOAuthConfigs,
  type OAuthConfigKey,
  oldestFirst,
  type StoredOAuthConfig,
  type TenantClient,
} from "./config-store";
import { oauthError } from "./errors";
import { oauthOptions } from "./options";
import { withFreeMapping, withLimitedCalls } from "./provider-calls";
import {
  authorityOf,
  certainIssuerOf,
  invalid,
  isAtForeignHost,
  mergeOptions,
  type OwnOptions,
  parseOwnOptions,
} from "./provider-options";
import { withRedirectURI } from "./return-host";
import {
  assertBound,
  callbackOf,
  isTenantsState,
  redirectFromCallback,
  startingFlows,
  stateMismatch,
} from "./state";
import { requestedAccount } from "./tokens";
import { assertNamesTenant, tenantsIn } from "./trusted-addresses";

interface TenantProvider {
  provider: OAuthProvider;
  /** Identifies the credentials that the provider uses, without revealing them. */
  credentials: string;
  /** Prefix of its account ids, see `withAccountPrefix`. Undefined for providers of plugins. */
  prefix: string | undefined;
}

export const isBuiltIn = (id: string) => (socialProviderList as readonly string[]).includes(id);

type Create = (options: ProviderOptions) => OAuthProvider;

/** Creates a built-in provider that sends users back to the tenants' callback. */
export function build(id: string, options: ProviderOptions, tenantId?: string): OAuthProvider {
  const create = isBuiltIn(id) && (socialProviders as unknown as Record<string, Create>)[id];
  // The config may be for a provider that this version of better-auth no longer has.
  if (!create) throw oauthError("PROVIDER_NOT_FOUND");
  const provider = create(options);
  return {
    ...withMatchingTokens(provider),
    // better-auth reads here whether users may sign up. Zoom's provider does not expose its
    // options, so they are added: otherwise, a tenant's `disableSignUp` would not apply.
    options: provider.options ?? options,
    // better-auth sets this itself, but only for the application's providers.
    disableImplicitSignUp: options.disableImplicitSignUp,
    callbackPath: callbackPath(id, tenantId),
  };
}

/**
 * Returns the path that a provider sends users back to. Tenants share a path, unless the tenant
 * runs the provider's host. Such a host could redirect users to another tenant's provider, and
 * receive that provider's code from a shared callback. With a separate path, the code arrives at a
 * callback that refuses it (see `arrivedAt`).
 */
export function callbackPath(id: string, tenantId?: string): string {
  const path = `/tenant/callback/${id}`;
  return tenantId === undefined ? path : `${path}?tenant=${encodeURIComponent(tenantId)}`;
}

/** Returns whether a callback with this `tenant` parameter came by the redirect URI of its flow. */
export function arrivedAt(
  provider: Pick<OAuthProvider, "callbackPath">,
  id: string,
  tenant: string | undefined,
  overridden: string | null | undefined,
): boolean {
  if (overridden) return tenantsIn(overridden)[0] === tenant;
  return provider.callbackPath === callbackPath(id, tenant);
}

// Built providers by the content of their row. Any process may change the row, and then a new
// provider is built.
const builtBy = oncePerObject((_instance: object) => new Map<string, TenantProvider>());
const keepBuilt = boundedMap<TenantProvider>(1000);

async function tenantProvider(ctx: AuthContext, id: string, row: StoredOAuthConfig | undefined) {
  if (!row) return fromApplication(ctx, id);
  const built = builtBy(applicationProviders(ctx));
  const key = JSON.stringify(row);
  const found = built.get(key) ?? (await fromConfig(ctx, row));
  keepBuilt(built, key, found);
  return found;
}

/** Returns the application's provider, with all changes that plugins made to it. */
function fromApplication(ctx: AuthContext, id: string): TenantProvider | undefined {
  const { byId, ofPlugins } = applicationProviders(ctx);
  const found = byId.get(id);
  if (!found) return undefined;
  // A provider without `options`, such as Zoom's, has copied the platform's redirect URI. Tenants get
  // a provider that is built without it.
  const hasCopy = !found.options && !ofPlugins.has(id);
  const provider = hasCopy
    ? build(id, { ...optionsOf(ctx, id), redirectURI: undefined })
    : { ...found, callbackPath: callbackPath(id) };
  return { provider, credentials: "global", prefix: isBuiltIn(id) ? "" : undefined };
}

export async function offeredProviders(ctx: AuthContext, tenantId: string) {
  const rows = (await listOAuthConfigs(ctx, tenantId)).filter(({ enabled }) => enabled);
  const own = new Map(rows.toSorted(oldestFirst).map((row) => [row.providerId, row]));
  const ids = new Set([...applicationProviders(ctx).byId.keys(), ...own.keys()]);
  // An unusable config hides the provider: the application's provider does not replace it.
  const offered = await Promise.all(
    [...ids].map((id) => tenantProvider(ctx, id, own.get(id)).catch(() => undefined)),
  );
  const providers = offered.flatMap((found) => found?.provider ?? []);
  return providers.map(({ id, name }) => ({ id, name }));
}

async function fromConfig(ctx: AuthContext, row: StoredOAuthConfig): Promise<TenantProvider> {
  const { redirectURI = null, scopes = null } = row;
  const { clientId, clientSecret, options } = await decrypt(ctx, row);
  // Checked again, because the list of trusted hosts may have changed since the config was stored.
  const { trustedProviderHosts } = oauthOptions(ctx);
  const own = parseOwnOptions(row.providerId, options, trustedProviderHosts);
  const built = fromClient(ctx, row, { clientId, clientSecret, redirectURI, scopes }, own);
  const parts = JSON.stringify([clientId, clientSecret, redirectURI, scopes, options]);
  return { ...built, credentials: await signFor("oauth-credentials", parts, ctx) };
}

/** Builds a provider with the tenant's client. It otherwise behaves like the application's. */
export function fromClient(
  ctx: AuthContext,
  { tenantId, providerId: id }: OAuthConfigKey,
  { clientId, clientSecret, redirectURI, scopes }: Omit<TenantClient, "options">,
  own: OwnOptions,
): Omit<TenantProvider, "credentials"> {
  // A provider that another plugin added under this id may be another identity provider, with other
  // account ids. A built-in provider in its place could sign users in as each other.
  if (applicationProviders(ctx).ofPlugins.has(id)) throw oauthError("UNSUPPORTED_PROVIDER");
  const scope = scopes ? { scope: scopes } : {};
  const client = { clientId, clientSecret, redirectURI: redirectURI ?? undefined, ...scope };
  const application = optionsOf(ctx, id);
  const options = mergeOptions(id, client, own, application);
  const broughtHost = isAtForeignHost(id, own);
  if (broughtHost) assertNamesTenant(redirectURI, tenantId);
  try {
    const provider = withLimitedCalls(
      build(id, withFreeMapping(options), broughtHost ? tenantId : undefined),
    );
    // better-auth compares this with the issuer in the provider's callback (RFC 9207).
    provider.issuer ??= certainIssuerOf(id, options);
    const authority = authorityOf(id, options);
    const isSame = authority === authorityOf(id, application);
    return isSame ? { provider, prefix: "" } : withAccountPrefix(`${authority || id}#`, provider);
  } catch (error) {
    // better-auth refused the options: the provider requires one that is not in the provider table.
    if (isAPIError(error)) throw error;
    throw invalid("This provider cannot be set up with these options");
  }
}

/**
 * Adds a prefix to account ids. better-auth identifies users by provider and account id, but at
 * another host the same id is another user. Without the prefix, these two could sign in as each
 * other after a tenant has changed the host.
 */
function withAccountPrefix(prefix: string, provider: OAuthProvider) {
  const accountSubject: OAuthProvider["accountSubject"] = async (context) =>
    `${prefix}${await provider.accountSubject(context)}`;
  return { provider: { ...provider, accountSubject }, prefix };
}

/** Returns the provider for a flow that starts or comes back in the tenant of the request. */
async function providerForFlow(endpoint: Endpoint, id: string) {
  const { context } = endpoint;
  const tenantId = getTenantId() ?? "";
  const tenant = await lookUpTenant(context, tenantId);
  // The tenant may be suspended: its callbacks get here, and so do flows that server code starts.
  if (tenant && tenant.status !== "active") throw tenantError("TENANT_SUSPENDED");
  const rows = await configsOf(context, tenantId);
  const row = rows.find((candidate) => candidate.providerId === id && candidate.enabled);
  const found = await tenantProvider(context, id, row);
  if (!found) return undefined;
  const { provider, credentials, prefix } = found;
  assertIssuedHere(endpoint, prefix);
  const binding = { tenantId, providerId: id, credentials };
  const callback = callbackOf(endpoint);
  if (!callback?.state) return startingFlows(context, provider, binding);
  await assertBound(binding);
  if (!arrivedAt(provider, id, callback.tenant, row?.redirectURI)) throw stateMismatch();
  await askPolicyOfCallback(endpoint);
  const own = withRedirectURI(context, provider);
  return explainingRefusals(context, own, binding, row !== undefined);
}

/**
 * Refuses to use an account's tokens if its tenant has moved the provider to another host since.
 * Otherwise, the new host would receive tokens of the old host.
 */
function assertIssuedHere(endpoint: Endpoint, prefix: string | undefined): void {
  const account = prefix === undefined ? undefined : requestedAccount(endpoint);
  if (account === undefined) return;
  const { accountId = "#" } = account ?? {};
  if (prefix ? accountId.startsWith(prefix) : !accountId.includes("#")) return;
  throw oauthError(
    "PROVIDER_NOT_FOUND",
    "This account is from another host than the provider has now. Link it again.",
  );
}

/**
 * Refuses a sign-in that the policy forbids. The session would be refused too, but only after
 * better-auth has linked the account and changed the profile. A flow that links an account is not
 * refused, because it creates no session.
 */
async function askPolicyOfCallback(endpoint: Endpoint): Promise<void> {
  const { link, errorURL } = (await getOAuthState()) ?? {};
  if (link) return;
  await refuseEarly(endpoint).catch((error: APIError) => {
    throw errorRedirect(endpoint.context, String(error.body?.code), errorURL, error.message);
  });
}

// The configs that a request has read, by tenant: one query serves all providers of an endpoint.
const readBy = oncePerObject((_: AuthContext) => new Map<string, Promise<StoredOAuthConfig[]>>());

function configsOf(context: AuthContext, tenantId: string): Promise<StoredOAuthConfig[]> {
  const rows = readBy(context).get(tenantId) ?? listOAuthConfigs(context, tenantId);
  readBy(context).set(tenantId, rows);
  return rows;
}

/** Logs what to check if a provider refuses a code: better-auth's own log line lacks the tenant. */
export function explainingRefusals(
  ctx: AuthContext,
  provider: OAuthProvider,
  { tenantId, providerId }: OAuthConfigKey,
  isOwn: boolean,
): OAuthProvider {
  const place = isOwn
    ? "the tenant's OAuth config, with tenant.oauthConfig.check"
    : `socialProviders.${providerId}: the tenant has no enabled config`;
  return {
    ...provider,
    validateAuthorizationCode: async (data) =>
      provider.validateAuthorizationCode(data).catch((error) => {
        ctx.logger.error(
          `The sign-in at tenant ${tenantId} with ${providerId} failed: the provider did not accept the code (${reasonOf(error)}). Check the client id, the client secret and the redirect URI in ${place}.`,
        );
        throw error;
      }),
  };
}

/** Returns the OAuth error code of a response. The rest of the response may contain secrets. */
function reasonOf(refusal: unknown): string {
  const { status, error } = (refusal ?? {}) as { status?: unknown; error?: unknown };
  if (typeof error === "string" && /^[a-z_]{1,40}$/.test(error)) return error;
  return typeof status === "number" ? `status ${status}` : "no answer";
}

/**
 * Returns a provider that better-auth calls as a function when it needs it. `shown` contains the
 * properties that better-auth reads without a call.
 *
 * Guarded by "a social provider may be a function, which is called when it is wanted".
 */
const callable = (
  call: () => Promise<Partial<OAuthProvider>>,
  shown: Partial<OAuthProvider>,
): OAuthProvider => Object.defineProperties(call, Object.getOwnPropertyDescriptors(shown)) as never;

/**
 * Gives the endpoint its tenant's providers: the tenant's enabled config for each, else the
 * application's. They are functions, so that a changed config takes effect immediately.
 */
export function giveTenantProviders(ctx: AuthContext): BeforeHook {
  let inTenants: OAuthProvider[] = [];
  let atCallback: OAuthProvider[] = [];
  let known = -1;
  return {
    matcher: () => true,
    handler: plainHook(({ context, path }) => {
      if (known !== ctx.socialProviders.length) {
        const { byId } = applicationProviders(ctx);
        known = ctx.socialProviders.length;
        noteAddedProviders(ctx);
        const ids = new Set([...byId.keys(), ...socialProviderList]);
        inTenants = [...ids].map((id) => tenantEntry(id, byId.get(id)));
        atCallback = ctx.socialProviders.map(callbackEntry);
      }
      // A new list for each request, so that what other plugins add to it stays in that request.
      if (getTenantId() !== null) context.socialProviders = [...inTenants];
      else if (path === CALLBACK_PATH) context.socialProviders = [...atCallback];
      return undefined;
    }),
  };
}

function tenantEntry(id: string, application: OAuthProvider | undefined): OAuthProvider {
  const call = async () => {
    const endpoint = currentEndpoint();
    if (!endpoint || getTenantId() === null) return application ?? {};
    const wanted = wantedId(endpoint);
    if (wanted !== undefined && wanted !== id) return {};
    try {
      return (await providerForFlow(endpoint, id)) ?? {};
    } catch (error) {
      // If the endpoint reads all providers, it skips an unusable one. An error would keep users
      // from the other providers.
      return wanted === undefined ? {} : redirectFromCallback(error);
    }
  };
  return callable(call, {
    id,
    name: application?.name ?? id,
    get options() {
      return optionsShown(application);
    },
    // Leaves out the id token. The URL becomes part of a response, and responses in a tenant
    // contain no id tokens (see `withholdTokens`).
    createEndSessionURL: async ({ idToken: _, ...data }) =>
      (await application?.createEndSessionURL?.(data)) ?? null,
  });
}

/**
 * Returns the options that better-auth reads without a call. They say that new users must verify
 * their email, if the tenant's policy requires it.
 */
function optionsShown(application: OAuthProvider | undefined): ProviderOptions {
  const options = application?.options ?? {};
  return requiresVerification() ? { ...options, requireEmailVerification: true } : options;
}

/** Returns the id of the provider that an endpoint looks for, if the request names it. */
const wantedId = (endpoint: Endpoint): string | undefined =>
  endpoint.body?.provider ?? endpoint.params?.id ?? requestedAccount(endpoint)?.providerId;

/**
 * Wraps a provider for better-auth's own callback, which is the platform's. Refuses states of
 * tenants. If better-auth keeps states in cookies, isolation does not apply to them, so a tenant's
 * state could sign in on the platform.
 */
function callbackEntry(application: OAuthProvider): OAuthProvider {
  const call = async () => {
    if (await isTenantsState()) return redirectFromCallback(stateMismatch());
    const endpoint = currentEndpoint();
    const isWanted = endpoint?.params?.id === application.id;
    if (isWanted) await askPolicyOfCallback(endpoint);
    return application;
  };
  const entry = callable(call, application);
  return Object.defineProperty(entry, "options", { get: () => optionsShown(application) });
}

/**
 * Makes `socialProviders.google` return the tenant's options inside a tenant. One Tap reads these
 * options instead of the provider, and better-auth accepts a function there.
 */
export function withTenantOptions(
  { plugins, socialProviders }: BetterAuthOptions,
  configured: Map<string, ProviderOptions>,
): BetterAuthOptions["socialProviders"] {
  if (!plugins?.some(({ id }) => id === "one-tap")) return socialProviders ?? {};
  const google = async () => {
    const endpoint = currentEndpoint();
    if (!endpoint || getTenantId() === null) return configured.get("google");
    return (await providerForFlow(endpoint, "google"))?.options;
  };
  return { ...socialProviders, google } as BetterAuthOptions["socialProviders"];
}
