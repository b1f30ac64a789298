import type { AuthContext } from "better-auth";
import { type APIError, getOAuthState, isAPIError } from "better-auth/api";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { borderOf } from "../border/border";
import { tenantError } from "../errors";
import { boundedMap, errorRedirect, oncePerObject, resolved, withChanges } from "../framework";
import { assertReturned, startingFlows, stateMismatch } from "../naming/oauth-state";
import type { ResolvedOptions } from "../options";
import { currentEndpoint } from "../scope/endpoint";
import { keeperOf } from "../scope/instance";
import { getTenantId, notes, runInScope, settled } from "../scope/scope";
import { recentlySeen } from "../tenants/find";
import {
  type Confidential,
  decrypt,
  fingerprint,
  listOAuthConfigs,
  oldestFirst,
  type StoredOAuthConfig,
} from "./config-store";
import {
  byId,
  configuredOptions,
  isConfigured,
  lateRedirectURI,
  resolvedProviders,
} from "./configured";
import { explainingRefusals, type OAuthConfigKey } from "./log-lines";
import {
  authorityOf,
  certainIssuerOf,
  invalid,
  isAtForeignHost,
  mergeOptions,
  type OwnOptions,
  parseOwnOptions,
} from "./provider-options";
import { keepingTokens } from "./stored-tokens";
import { assertNamesTenant, TENANT_PARAMETER, tenantsIn } from "./trusted-addresses";

/** A provider for a tenant, and a word for the credentials that it uses. */
export interface TenantProvider {
  provider: OAuthProvider;
  credentials: string;
}

export const isBuiltIn = (id: string) => (socialProviderList as readonly string[]).includes(id);

type Create = (options: ProviderOptions) => OAuthProvider;

/**
 * One of better-auth's own providers, which sends people back to the tenants' callback; with a
 * tenant's id, to the address that is this tenant's alone.
 */
export function build(id: string, options: ProviderOptions, tenantId?: string): OAuthProvider {
  const create: unknown = isBuiltIn(id) ? Reflect.get(socialProviders, id) : undefined;
  const provider = (create as Create | undefined)?.(options);
  // A config of a provider that this version of better-auth does not have any more.
  if (!provider) throw tenantError("PROVIDER_NOT_FOUND");
  // better-auth reads from here whether people may sign up; Zoom's provider does not say.
  provider.options ??= options;
  // Both as better-auth does it for the global ones, or for providers with a callback of their own.
  provider.disableImplicitSignUp = options.disableImplicitSignUp;
  provider.callbackPath = callbackPath(id, tenantId);
  return provider;
}

/**
 * Where a provider sends people back to. Tenants share the address, except where a tenant brought
 * the provider's host: a hostile host could send people on to another tenant's provider, and would
 * be handed the code that comes back. With an address of its own, that code arrives at the wrong one.
 */
export function callbackPath(id: string, tenantId?: string): string {
  const path = `/tenant/callback/${id}`;
  return tenantId === undefined
    ? path
    : `${path}?${TENANT_PARAMETER}=${encodeURIComponent(tenantId)}`;
}

/**
 * Whether a callback with this `tenant` in its query came by the redirect URI that the provider was
 * started with: the config's own one if it has any, else better-auth's base URL and the callback path.
 */
export function arrivedAt(
  provider: OAuthProvider,
  id: string,
  tenant: string | undefined,
  overridden: string | null | undefined,
): boolean {
  if (overridden) return tenantsIn(overridden)[0] === tenant;
  return provider.callbackPath === callbackPath(id, tenant);
}

// Decrypted and built once for as long as the row says the same, whoever writes it and wherever;
// and for the same global provider, on which it depends: a plugin may put another in its place.
type Built = TenantProvider & { global: OAuthProvider | undefined };
const builtFor = oncePerObject((_instance: object) => new Map<string, Built>());
const keepBuilt = boundedMap<Built>(1000);

/**
 * The provider as the tenant has it: its own config if there is one, else the global provider. That
 * is not kept: it may be another thing in each tenant, and at any time.
 */
async function tenantProvider(
  ctx: AuthContext,
  row: StoredOAuthConfig | undefined,
  global: OAuthProvider | undefined,
  trustedHosts: string[],
): Promise<TenantProvider | undefined> {
  if (!row) return global && fromGlobal(ctx, global);
  const built = builtFor(keeperOf(ctx));
  const key = JSON.stringify(row);
  const kept = built.get(key);
  const found =
    kept && kept.global === global ? kept : await fromConfig(ctx, row, global, trustedHosts);
  keepBuilt(built, key, { ...found, global });
  return found;
}

/** The global provider, with all that plugins have done to it, sent back to the tenants' callback. */
async function fromGlobal(ctx: AuthContext, global: OAuthProvider): Promise<TenantProvider> {
  const { id } = global;
  lateRedirectURI(ctx, global);
  const options = await configuredOptions(ctx, id, global);
  // Inside a tenant there is no redirect URI any more; except for Zoom, and in frozen options.
  const provider =
    options.redirectURI && isConfigured(ctx, id)
      ? build(id, withChanges(options, { redirectURI: undefined }))
      : withChanges(global, { callbackPath: callbackPath(id) });
  return { provider, credentials: "global" };
}

/** The providers that a sign-in at the tenant would find: its own, else the global one. */
export async function offeredProviders(ctx: AuthContext, tenantId: string, trustedHosts: string[]) {
  const rows = (await listOAuthConfigs(ctx, tenantId)).filter(({ enabled }) => enabled);
  const own = new Map(rows.toSorted(oldestFirst).map((row) => [row.providerId, row]));
  const globals = byId(await resolvedProviders(ctx));
  const ids = [...new Set([...globals.keys(), ...own.keys()])];
  // A config that cannot be used is not offered, and the global one does not stand in for it.
  const built = await Promise.all(
    ids.map(async (id) => {
      try {
        const global = await resolved(globals.get(id));
        return await tenantProvider(ctx, own.get(id), global, trustedHosts);
      } catch {
        return undefined;
      }
    }),
  );
  return built.flatMap((found) =>
    found ? [{ id: found.provider.id, name: found.provider.name }] : [],
  );
}

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
    fromClient(ctx, row, client, own, global),
    fingerprint(ctx, [clientId, clientSecret, redirectURI, scopes, options]),
  ]);
  return { provider, credentials };
}

/** The same from a client whose own options have been checked. */
export async function fromClient(
  ctx: AuthContext,
  { tenantId, providerId: id }: OAuthConfigKey,
  { clientId, clientSecret, redirectURI, scopes }: Omit<TenantClient, "options">,
  own: OwnOptions,
  global: OAuthProvider | undefined,
): Promise<OAuthProvider> {
  // Nobody knows whose the ids are that it gives out, nor where people's tokens are from.
  if (await isOfPlugin(ctx, id)) throw tenantError("UNSUPPORTED_PROVIDER");
  const scope = scopes ? { scope: scopes } : {};
  const client = { clientId, clientSecret, redirectURI: redirectURI ?? undefined, ...scope };
  const configured = await configuredOptions(ctx, id, global);
  const options = mergeOptions(id, client, own, () => global?.options ?? configured);
  const broughtHost = isAtForeignHost(id, own);
  if (broughtHost) assertNamesTenant(redirectURI, tenantId);
  try {
    const provider = build(id, options, broughtHost ? tenantId : undefined);
    // better-auth compares it with the issuer that a provider sends along with the code (RFC 9207).
    provider.issuer ??= certainIssuerOf(id, options);
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

/** Whether a plugin has brought a provider of this name, alone or beside the application's own. */
async function isOfPlugin(ctx: AuthContext, id: string): Promise<boolean> {
  // On the platform: inside a tenant, one may be made of what the tenant shows, and ask us again.
  const all = await runInScope(settled(null), () => resolvedProviders(ctx));
  const named = all.filter((provider) => provider.id === id);
  const options = (await configuredOptions(ctx, id, undefined)) as { enabled?: boolean };
  const isAsConfigured = isConfigured(ctx, id) && options.enabled !== false;
  return named.length > Number(isAsConfigured);
}

/**
 * better-auth knows people by provider and id. Where somebody else gives out the ids than at the
 * application's own provider, the same id is another person: on the day that a tenant moves from
 * the one to the other, nobody may become somebody else.
 */
function withSubjectsOf(authority: string, provider: OAuthProvider): OAuthProvider {
  const subject = provider.accountSubject;
  const prefix = `${authority || provider.id}#`;
  const changed = withChanges(provider, {
    accountSubject: async (context) => `${prefix}${await subject(context)}`,
  });
  prefixes.set(changed, prefix);
  return changed;
}

/** What is in front of the subjects of such a provider. */
const prefixes = new WeakMap<OAuthProvider, string>();

/** A provider as the tenant of the running request has it: for a flow that starts or comes back. */
export async function provide(
  context: AuthContext,
  id: string,
  global: OAuthProvider | undefined,
  { trustedProviderHosts }: ResolvedOptions,
): Promise<OAuthProvider | undefined> {
  const tenantId = getTenantId() ?? "";
  const tenant = await recentlySeen(context, tenantId);
  // A callback gets here, and flows that the server's own code starts.
  if (tenant && tenant.status !== "active") throw tenantError("TENANT_SUSPENDED");
  const rows = await configsOf(context, tenantId);
  const row = rows.find((candidate) => candidate.providerId === id && candidate.enabled);
  const found = await tenantProvider(context, row, global, trustedProviderHosts);
  if (!found) return undefined;
  const { provider, credentials } = found;
  const binding = { tenantId, since: tenant?.since, providerId: id, credentials };
  const { returned } = notes();
  if (!returned?.state) {
    // A tenant has no config for a provider of a plugin, so nothing is in front of its subjects.
    const own = isBuiltIn(id)
      ? keepingTokens(context, provider, prefixes.get(provider) ?? "")
      : provider;
    return startingFlows(context, own, binding);
  }
  await assertReturned(context, binding);
  if (!arrivedAt(provider, id, returned.tenant, row?.redirectURI)) throw stateMismatch();
  await askPolicyOfCallback(context);
  return explainingRefusals(context, provider, binding, row !== undefined);
}

/**
 * A session by a way that the policy does not allow would be refused as well, but after better-auth
 * has linked the account and written the profile. Whoever links one is signed in already.
 */
async function askPolicyOfCallback(context: AuthContext): Promise<void> {
  const { link, errorURL } = (await getOAuthState()) ?? {};
  const endpoint = currentEndpoint();
  if (link || !endpoint) return;
  await borderOf(context)
    ?.policy.refuseEarly(endpoint)
    .catch((error: APIError) => {
      throw errorRedirect(context, String(error.body?.code), errorURL, error.message);
    });
}

// One query serves all the providers that an endpoint asks for.
const read = new WeakMap<object, { tenantId: string; rows: Promise<StoredOAuthConfig[]> }>();

function configsOf(context: AuthContext, tenantId: string): Promise<StoredOAuthConfig[]> {
  const known = read.get(context);
  if (known?.tenantId === tenantId) return known.rows;
  const rows = listOAuthConfigs(context, tenantId);
  read.set(context, { tenantId, rows });
  return rows;
}
