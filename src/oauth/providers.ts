import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import type { AuthContext, GenericEndpointContext } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { keepNewest } from "../newest";
import type { ResolvedOptions } from "../options";
import { type BeforeHook, silentHook } from "../scope/hook";
import { SCOPED } from "../scope/run";
import { createScope, currentScope, enterScope } from "../scope/scope";
import { tenantExists } from "../tenants/find";
import type { TenantProvider } from "./build";
import { tenantProvider } from "./choose";
import {
  assertSameBinding,
  bindState,
  CALLBACK_PATH,
  isCallback,
  readBinding,
  redirectFromCallback,
  stateMismatch,
} from "./state";
import { listOAuthConfigs, type StoredOAuthConfig } from "./store";

export type Endpoint = Pick<GenericEndpointContext, "context"> &
  Partial<Pick<GenericEndpointContext, "body" | "query" | "params">>;

/**
 * The social providers as a tenant sees them: its own config where there is an enabled one, else
 * the global provider. They are functions, which better-auth calls when it wants the provider: in
 * a callback that is after it has read the state, which is what names the tenant. Only the provider
 * that is asked for is decrypted and built.
 */
export function tenantProviders(endpoint: Endpoint, options: ResolvedOptions): OAuthProvider[] {
  const globals = endpoint.context.socialProviders;
  if (tenantLists.has(globals)) return globals;
  const lists = listsOf.get(globals) ?? createLists(globals, options);
  listsOf.set(globals, lists);
  const wanted = wantedIds(endpoint).find((id) => lists.has(id));
  return lists.get(wanted ?? NONE) ?? [];
}

/** The functions know the tenant when they are called, so all requests of an instance share them. */
const listsOf = new WeakMap<OAuthProvider[], Map<string, OAuthProvider[]>>();

/** Lists that are a tenant's already: endpoints may call each other with the same context. */
const tenantLists = new WeakSet<OAuthProvider[]>();

const NONE = "";

/** better-auth asks one provider after the other: a list for each that it could be looking for. */
function createLists(configured: OAuthProvider[], options: ResolvedOptions) {
  const globals = byId(configured);
  const ids = [...new Set([...globals.keys(), ...socialProviderList])];
  const providers = ids.map((id) => lateTenantProvider(id, globals.get(id), options));
  return new Map(
    [NONE, ...ids].map((wanted) => {
      const first = ({ id }: OAuthProvider) => Number(id === wanted);
      const list = providers.toSorted((a, b) => first(b) - first(a));
      tenantLists.add(list);
      return [wanted, list];
    }),
  );
}

const keepBuilt = keepNewest<TenantProvider>(100);

function lateTenantProvider(
  id: string,
  global: OAuthProvider | undefined,
  { trustedProviderHosts }: ResolvedOptions,
): OAuthProvider {
  // Decrypted and built once for as long as the row says the same, whoever writes it and wherever.
  const built = new Map<string, TenantProvider>();

  const provide = async () => {
    const state = isCallback() ? await readBinding() : undefined;
    const tenantId = currentScope()?.tenantId;
    const { context } = tryGetCurrentAuthEndpointContext() ?? {};
    if (!tenantId || !context) return undefined;
    // The border would have kept the state of a deleted tenant back; a cookie lives on.
    if (state?.pastBorder && !(await tenantExists(context, tenantId))) return undefined;
    const rows = await configsOf(context, tenantId);
    const row = rows.find((candidate) => candidate.providerId === id && candidate.enabled);
    const key = JSON.stringify(row ?? null);
    const found =
      built.get(key) ?? (await tenantProvider(context, row, global, trustedProviderHosts));
    if (!found) return undefined;
    keepBuilt(built, key, found);
    const binding = { tenantId, providerId: id, credentials: found.credentials };
    if (state) assertSameBinding(state.binding, binding);
    else await bindState(binding);
    return found.provider;
  };
  return late(provide, {
    id,
    options: global?.options,
    createEndSessionURL: async (data) => (await provide())?.createEndSessionURL?.(data) ?? null,
  });
}

/** Of two providers with one name, better-auth takes the first. */
export function byId(providers: OAuthProvider[]): Map<string, OAuthProvider> {
  const found = new Map<string, OAuthProvider>();
  for (const provider of providers) {
    if (!found.has(provider.id)) found.set(provider.id, provider);
  }
  return found;
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

function wantedIds({ body, query, params }: Endpoint): string[] {
  const named = [body?.provider, body?.providerId, query?.provider, query?.providerId, params?.id];
  return named.filter((id) => typeof id === "string");
}

/** A provider that better-auth gets by calling a function, and what it reads without calling it. */
function late(
  provide: () => Promise<OAuthProvider | undefined>,
  read: Partial<OAuthProvider>,
): OAuthProvider {
  const call = async () => (await provide().catch(redirectFromCallback)) ?? {};
  const { name: _, ...properties } = read; // A function has a name already, for good.
  return Object.assign(call, properties) as unknown as OAuthProvider;
}

/**
 * The other way round: better-auth's own callback is the platform's, whatever tenant the request
 * names or has a session of. A state that a tenant started is refused there: in the database it is
 * out of reach, and in a cookie or in secondary storage it is looked at.
 */
export const keepCallbackOnPlatform: BeforeHook = {
  matcher: ({ path, context }) => path === CALLBACK_PATH && !(SCOPED in context),

  handler: silentHook(async ({ context }) => {
    enterScope(createScope(null));
    const { oauthConfig, options, socialProviders } = context;
    if (oauthConfig.storeStateStrategy !== "cookie" && !options.secondaryStorage) return;
    context.socialProviders = socialProviders.map((provider) =>
      late(async () => {
        if ((await readBinding()).binding) throw stateMismatch();
        return provider;
      }, provider),
    );
  }),
};
