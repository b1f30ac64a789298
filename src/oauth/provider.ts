import type { AuthContext, BetterAuthOptions } from "better-auth";
import { type APIError, getOAuthState, isAPIError } from "better-auth/api";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { CALLBACK_PATH } from "../constants";
import { tenantError } from "../errors";
import {
  type BeforeHook,
  boundedMap,
  errorRedirect,
  oncePerObject,
  silentHook,
} from "../framework";
import { tenantAuthOptions } from "../isolation/isolation";
import { signFor } from "../keys";
import { refuseEarly } from "../policy/admission";
import { currentEndpoint, type Endpoint } from "../request/endpoint";
import { getTenantId } from "../request/scope";
import { appliedPolicy, requiresVerification } from "../setup/overrides";
import { lookUpTenant } from "../tenants/cache";
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
  isTenantsState,
  redirectFromCallback,
  returned,
  startingFlows,
  stateMismatch,
} from "./state";
import { requestedAccount } from "./tokens";
import { assertNamesTenant, tenantsIn } from "./trusted-addresses";

interface TenantProvider {
  provider: OAuthProvider;
  /** Identifies the credentials that the provider uses, without revealing them. */
  credentials: string;
  /** What is in front of its account ids; undefined for providers of plugins. */
  prefix: string | undefined;
}

export const isBuiltIn = (id: string) => (socialProviderList as readonly string[]).includes(id);

type Create = (options: ProviderOptions) => OAuthProvider;

/** One of better-auth's own providers, which sends users back to `callbackPath`. */
export function build(id: string, options: ProviderOptions, tenantId?: string): OAuthProvider {
  const create = isBuiltIn(id) && (socialProviders as unknown as Record<string, Create>)[id];
  // A config may be for a provider that this version of better-auth no longer has.
  if (!create) throw tenantError("PROVIDER_NOT_FOUND");
  const provider = create(options);
  return {
    ...withMatchingTokens(provider),
    // better-auth reads from here whether users may sign up. Zoom's provider does not show them.
    options: provider.options ?? options,
    // better-auth sets this for the application's providers.
    disableImplicitSignUp: options.disableImplicitSignUp,
    callbackPath: callbackPath(id, tenantId),
  };
}

/**
 * Where a provider sends users back to. Tenants share the address, except if a tenant brought the
 * provider's host: a hostile host could send users on to another tenant's provider, and would
 * receive the code that comes back. With its own address, that code arrives at the wrong one.
 */
export function callbackPath(id: string, tenantId?: string): string {
  const path = `/tenant/callback/${id}`;
  return tenantId === undefined ? path : `${path}?tenant=${encodeURIComponent(tenantId)}`;
}

/** Whether a callback with this `tenant` came by the redirect URI that its flow was started with. */
export function arrivedAt(
  provider: Pick<OAuthProvider, "callbackPath">,
  id: string,
  tenant: string | undefined,
  overridden: string | null | undefined,
): boolean {
  if (overridden) return tenantsIn(overridden)[0] === tenant;
  return provider.callbackPath === callbackPath(id, tenant);
}

// Derived once per row: any process may change the row, and thereby the key.
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

/** The application's provider, with everything that plugins did to it. */
function fromApplication(ctx: AuthContext, id: string): TenantProvider | undefined {
  const { byId, ofPlugins } = applicationProviders(ctx);
  const found = byId.get(id);
  if (!found) return undefined;
  // Zoom's provider has a copy of its options, with the platform's redirect URI.
  const hasCopy = !found.options && !ofPlugins.has(id);
  const provider = hasCopy
    ? build(id, { ...optionsOf(ctx, id), redirectURI: undefined })
    : { ...found, callbackPath: callbackPath(id) };
  return { provider, credentials: "global", prefix: isBuiltIn(id) ? "" : undefined };
}

/** The providers that users can sign in with at a tenant. */
export async function offeredProviders(ctx: AuthContext, tenantId: string) {
  const rows = (await listOAuthConfigs(ctx, tenantId)).filter(({ enabled }) => enabled);
  const own = new Map(rows.toSorted(oldestFirst).map((row) => [row.providerId, row]));
  const ids = new Set([...applicationProviders(ctx).byId.keys(), ...own.keys()]);
  // A config that cannot be used is not offered, and the application's does not replace it.
  const offered = await Promise.all(
    [...ids].map((id) => tenantProvider(ctx, id, own.get(id)).catch(() => undefined)),
  );
  const providers = offered.flatMap((found) => found?.provider ?? []);
  return providers.map(({ id, name }) => ({ id, name }));
}

async function fromConfig(ctx: AuthContext, row: StoredOAuthConfig): Promise<TenantProvider> {
  const { redirectURI = null, scopes = null } = row;
  const { clientId, clientSecret, options } = await decrypt(ctx, row);
  // The list of trusted hosts may have changed since the config was stored.
  const { trustedProviderHosts } = tenantAuthOptions(ctx);
  const own = parseOwnOptions(row.providerId, options, trustedProviderHosts);
  const built = fromClient(ctx, row, { clientId, clientSecret, redirectURI, scopes }, own);
  const parts = JSON.stringify([clientId, clientSecret, redirectURI, scopes, options]);
  return { ...built, credentials: await signFor("oauth-credentials", parts, ctx) };
}

/** A provider with the tenant's client, which behaves like the application's provider. */
export function fromClient(
  ctx: AuthContext,
  { tenantId, providerId: id }: OAuthConfigKey,
  { clientId, clientSecret, redirectURI, scopes }: Omit<TenantClient, "options">,
  own: OwnOptions,
): Omit<TenantProvider, "credentials"> {
  // The account ids of a plugin's provider may be those of another identity provider.
  if (applicationProviders(ctx).ofPlugins.has(id)) throw tenantError("UNSUPPORTED_PROVIDER");
  const scope = scopes ? { scope: scopes } : {};
  const client = { clientId, clientSecret, redirectURI: redirectURI ?? undefined, ...scope };
  const application = optionsOf(ctx, id);
  const options = mergeOptions(id, client, own, application);
  const broughtHost = isAtForeignHost(id, own);
  if (broughtHost) assertNamesTenant(redirectURI, tenantId);
  try {
    const provider = build(id, options, broughtHost ? tenantId : undefined);
    // better-auth compares it with the issuer that a provider sends with the code (RFC 9207).
    provider.issuer ??= certainIssuerOf(id, options);
    const authority = authorityOf(id, options);
    const isSame = authority === authorityOf(id, application);
    return isSame ? { provider, prefix: "" } : withAccountPrefix(`${authority || id}#`, provider);
  } catch (error) {
    // A provider that requires something that is not in our table.
    if (isAPIError(error)) throw error;
    throw invalid("This provider cannot be set up with these options");
  }
}

/**
 * better-auth knows users by provider and account id. At another host, the same id is another user:
 * without the prefix, they could sign in as each other after a tenant has moved to that host.
 */
function withAccountPrefix(prefix: string, provider: OAuthProvider) {
  const accountSubject: OAuthProvider["accountSubject"] = async (context) =>
    `${prefix}${await provider.accountSubject(context)}`;
  return { provider: { ...provider, accountSubject }, prefix };
}

/** The provider for the tenant of the running request, for a flow that starts or comes back. */
async function providerForFlow(endpoint: Endpoint, id: string) {
  const { context } = endpoint;
  const tenantId = getTenantId() ?? "";
  const tenant = await lookUpTenant(context, tenantId);
  // Callbacks of suspended tenants get here, and flows that the server's own code starts.
  if (tenant && tenant.status !== "active") throw tenantError("TENANT_SUSPENDED");
  const rows = await configsOf(context, tenantId);
  const row = rows.find((candidate) => candidate.providerId === id && candidate.enabled);
  const found = await tenantProvider(context, id, row);
  if (!found) return undefined;
  const { provider, credentials, prefix } = found;
  assertIssuedHere(endpoint, prefix);
  const binding = { tenantId, providerId: id, credentials };
  const callback = returned.get();
  if (!callback?.state) return startingFlows(context, provider, binding);
  await assertBound(binding);
  if (!arrivedAt(provider, id, callback.tenant, row?.redirectURI)) throw stateMismatch();
  await askPolicyOfCallback(endpoint);
  const own = withRedirectURI(context, provider);
  return explainingRefusals(context, own, binding, row !== undefined);
}

/**
 * A tenant may have moved a provider to its own host since a user got their tokens. Without this
 * check, that host would receive the tokens of the host before.
 */
function assertIssuedHere(endpoint: Endpoint, prefix: string | undefined): void {
  const account = prefix === undefined ? undefined : requestedAccount(endpoint);
  if (account === undefined) return;
  const { accountId = "#" } = account ?? {};
  if (prefix ? accountId.startsWith(prefix) : !accountId.includes("#")) return;
  throw tenantError(
    "PROVIDER_NOT_FOUND",
    "This account is from another host than the provider has now. Link it again.",
  );
}

/**
 * A session by a method that the policy does not allow would be refused as well, but after
 * better-auth has linked the account and changed the profile. A user who links one is signed in.
 */
async function askPolicyOfCallback(endpoint: Endpoint): Promise<void> {
  const { link, errorURL } = (await getOAuthState()) ?? {};
  if (link) return;
  await refuseEarly(endpoint).catch((error: APIError) => {
    throw errorRedirect(endpoint.context, String(error.body?.code), errorURL, error.message);
  });
}

// One query for all the providers that an endpoint asks for.
const readBy = oncePerObject((_: AuthContext) => new Map<string, Promise<StoredOAuthConfig[]>>());

function configsOf(context: AuthContext, tenantId: string): Promise<StoredOAuthConfig[]> {
  const rows = readBy(context).get(tenantId) ?? listOAuthConfigs(context, tenantId);
  readBy(context).set(tenantId, rows);
  return rows;
}

/** Logs what to do if a provider refuses a code: better-auth's own line lacks the tenant. */
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

/** The OAuth error code of a response. The rest of a response may contain secrets. */
function reasonOf(refusal: unknown): string {
  const { status, error } = (refusal ?? {}) as { status?: unknown; error?: unknown };
  if (typeof error === "string" && /^[a-z_]{1,40}$/.test(error)) return error;
  return typeof status === "number" ? `status ${status}` : "no answer";
}

/**
 * A provider that better-auth gets by calling a function when it needs it, and the properties that it
 * reads without calling it.
 *
 * Guarded by "a social provider may be a function, which is called when it is wanted".
 */
const callable = (
  call: () => Promise<Partial<OAuthProvider>>,
  shown: Partial<OAuthProvider>,
): OAuthProvider => Object.defineProperties(call, Object.getOwnPropertyDescriptors(shown)) as never;

/**
 * Gives the endpoint the providers of its tenant: the tenant's enabled config for each, else the
 * application's. They are functions, so that a changed config is effective immediately.
 */
export function giveTenantProviders(ctx: AuthContext): BeforeHook {
  const { byId } = applicationProviders(ctx);
  let inTenants: OAuthProvider[] = [];
  let atCallback: OAuthProvider[] = [];
  let known = -1;
  return {
    matcher: () => true,
    handler: silentHook(({ context, path }) => {
      if (known !== ctx.socialProviders.length) {
        known = ctx.socialProviders.length;
        noteAddedProviders(ctx);
        const ids = new Set([...byId.keys(), ...socialProviderList]);
        inTenants = [...ids].map((id) => tenantEntry(id, byId.get(id)));
        atCallback = ctx.socialProviders.map(callbackEntry);
      }
      // A list of its own for each request: what a plugin adds to it stays there.
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
      // A config that cannot be used must not keep users from the other providers.
      return wanted === undefined ? {} : redirectFromCallback(error);
    }
  };
  return callable(call, {
    id,
    name: application?.name ?? id,
    get options() {
      return optionsShown(application);
    },
    // The address is part of a response, which has no id tokens inside a tenant.
    createEndSessionURL: async ({ idToken: _, ...data }) =>
      (await application?.createEndSessionURL?.(data)) ?? null,
  });
}

/** better-auth reads from here whether a new user has to verify the email of a provider. */
function optionsShown(application: OAuthProvider | undefined): ProviderOptions {
  const policy = appliedPolicy.get();
  const isRequired = policy && requiresVerification(policy);
  const options = application?.options ?? {};
  return isRequired ? { ...options, requireEmailVerification: true } : options;
}

/** The id of the provider that an endpoint looks for, if its request says so. */
const wantedId = (endpoint: Endpoint): string | undefined =>
  endpoint.body?.provider ?? endpoint.params?.id ?? requestedAccount(endpoint)?.providerId;

/**
 * better-auth's own callback is the platform's. It refuses a state that a tenant started: such a
 * state may be in a cookie, and not in the tenant's rows.
 */
function callbackEntry(application: OAuthProvider): OAuthProvider {
  const call = async () => {
    if (await isTenantsState()) return redirectFromCallback(stateMismatch());
    const endpoint = currentEndpoint();
    const isWanted = endpoint?.params?.id === application.id;
    if (isWanted && appliedPolicy.get()) await askPolicyOfCallback(endpoint);
    return application;
  };
  const entry = callable(call, application);
  return Object.defineProperty(entry, "options", { get: () => optionsShown(application) });
}

/**
 * One Tap reads the options of Google instead of its provider. better-auth allows these to be a
 * function, which returns the tenant's options inside a tenant.
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
