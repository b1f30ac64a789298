import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { appendQueryParams } from "@better-auth/core/utils/url";
import type { AuthContext, GenericEndpointContext } from "better-auth";
import {
  APIError,
  addOAuthServerContext,
  createAuthMiddleware,
  getOAuthState,
  isAPIError,
} from "better-auth/api";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import type { BeforeHook } from "../scope/hooks";
import { SCOPED } from "../scope/run";
import { createScope, currentScope, enterScope, settleByState } from "../scope/scope";
import { findTenantById } from "../tenants/store";
import { decrypt, fingerprint } from "./credentials";
import { listOAuthConfigs, type StoredOAuthConfig } from "./store";

/** What an OAuth state is bound to: it is good for exactly this and for nothing else (R6). */
interface Binding {
  tenantId: string;
  providerId: string;
  /** Which credentials the flow was started with. */
  credentials: string;
}

/** Where the binding travels: in the part of the state that no client can write to. */
const SERVER_CONTEXT_KEY = "tenantAuth";

const CALLBACK_PATH = "/callback/:id";

const builtIn = socialProviders as unknown as Record<
  string,
  (options: ProviderOptions) => OAuthProvider
>;

/**
 * The social providers as a tenant sees them: its own config where there is an enabled one, else
 * the global provider. They are functions, which better-auth calls when it wants the provider: in
 * a callback that is after it has read the state, which is what names the tenant. One query
 * serves all of them, and only the provider that is asked for is decrypted and built.
 */
export function tenantProviders(endpoint: Endpoint): OAuthProvider[] {
  const { context } = endpoint;
  if (tenantLists.has(context.socialProviders)) return context.socialProviders;
  const globals = new Map(context.socialProviders.map((provider) => [provider.id, provider]));
  let rows: Promise<StoredOAuthConfig[]> | undefined;

  const provide = async (id: string) => {
    const state = isCallback() ? await readBoundState() : undefined;
    const tenantId = currentScope()?.tenantId;
    if (!tenantId) return undefined;
    // The border would have kept the state of a deleted tenant back; a cookie lives on.
    if (state?.pastBorder && !(await findTenantById(context, tenantId))) return undefined;
    rows ??= listOAuthConfigs(context, tenantId);
    const row = (await rows).find((candidate) => candidate.providerId === id && candidate.enabled);
    const global = globals.get(id);
    const found = row
      ? await fromConfig(context, row, global)
      : global && { provider: fromGlobal(global), credentials: "global" };
    if (!found) return undefined;
    const binding = { tenantId, providerId: id, credentials: found.credentials };
    if (state) assertSameBinding(state.binding, binding);
    else await bindState(binding);
    return found.provider;
  };

  // better-auth asks one provider after the other, so the one that it is looking for stands first.
  const ids = new Set([...wantedIds(endpoint), ...globals.keys(), ...socialProviderList]);
  const list = [...ids].map((id) => {
    const provider = () => provide(id);
    return late(provider, {
      id,
      options: globals.get(id)?.options,
      createEndSessionURL: async (data) => (await provider())?.createEndSessionURL?.(data) ?? null,
    });
  });
  tenantLists.add(list);
  return list;
}

/** Lists that are a tenant's already: endpoints may call each other with the same context. */
const tenantLists = new WeakSet<OAuthProvider[]>();

/** A provider that better-auth gets by calling a function, and what it reads without calling it. */
function late(
  provide: () => Promise<OAuthProvider | undefined>,
  read: Partial<OAuthProvider>,
): OAuthProvider {
  const call = async () => (await provide().catch(redirectFromCallback)) ?? {};
  const properties = Object.getOwnPropertyDescriptors(read);
  return Object.defineProperties(call, properties) as unknown as OAuthProvider;
}

export type Endpoint = Pick<GenericEndpointContext, "context"> &
  Partial<Pick<GenericEndpointContext, "body" | "query" | "params">>;

function wantedIds({ body, query, params }: Endpoint): string[] {
  const named = [body?.provider, body?.providerId, query?.provider, query?.providerId, params?.id];
  return named.filter((id) => typeof id === "string");
}

/** A provider with the tenant's credentials, which behaves like the global one of its name. */
async function fromConfig(ctx: AuthContext, row: StoredOAuthConfig, global?: OAuthProvider) {
  const clientId = await decrypt(ctx, row.clientId);
  const clientSecret = await decrypt(ctx, row.clientSecret);
  const redirectURI = row.redirectURI ?? undefined;
  const behaviour = withoutCredentials(global?.options ?? configuredOptions(ctx, row.providerId));
  const options = { ...behaviour, clientId, clientSecret, redirectURI };
  if (row.scopes) options.scope = row.scopes;
  return {
    provider: build(row.providerId, options),
    credentials: await fingerprint(ctx, [clientId, clientSecret, redirectURI]),
  };
}

/** The global provider, sent back to the tenants' callback instead of its own redirect URI. */
function fromGlobal(global: OAuthProvider): OAuthProvider {
  if (!Object.hasOwn(builtIn, global.id))
    return { ...global, callbackPath: callbackPath(global.id) };
  return build(global.id, { ...global.options, redirectURI: undefined });
}

function build(id: string, options: ProviderOptions): OAuthProvider {
  const provider = builtIn[id]?.(options);
  if (!provider) throw APIError.fromStatus("NOT_FOUND", { code: "PROVIDER_NOT_FOUND" });
  // Both as better-auth does it for the global ones, or for providers with a callback of their own.
  provider.disableImplicitSignUp = options.disableImplicitSignUp;
  provider.callbackPath = callbackPath(id);
  return provider;
}

const callbackPath = (id: string) => `/tenant/callback/${id}`;

/** A provider that is configured but switched off still says how it behaves. */
function configuredOptions(ctx: AuthContext, id: string): ProviderOptions {
  const configured = (ctx.options.socialProviders as Record<string, unknown> | undefined)?.[id];
  return typeof configured === "object" && configured !== null ? configured : {};
}

function withoutCredentials(options: ProviderOptions & { enabled?: boolean }): ProviderOptions {
  const { clientId, clientSecret, clientKey, redirectURI, enabled, ...behaviour } = options;
  return behaviour;
}

function isCallback(): boolean {
  return tryGetCurrentAuthEndpointContext()?.path === CALLBACK_PATH;
}

async function readBoundState() {
  const state = await getOAuthState();
  const binding = state?.serverContext?.[SERVER_CONTEXT_KEY] as Binding | undefined;
  const scope = currentScope();
  // A state in a cookie or in secondary storage did not come through the border: it names the
  // tenant here.
  const pastBorder = scope?.awaitsState !== undefined && binding !== undefined;
  if (pastBorder) settleByState(scope, binding.tenantId);
  return { binding, pastBorder };
}

async function bindState(binding: Binding) {
  await addOAuthServerContext({ [SERVER_CONTEXT_KEY]: binding });
  const scope = currentScope();
  if (scope) scope.startsOAuth = true;
}

/** Refuses a state of another tenant or provider, and one whose config has changed since. */
function assertSameBinding(started: Binding | undefined, now: Binding) {
  const same =
    started?.tenantId === now.tenantId &&
    started.providerId === now.providerId &&
    started.credentials === now.credentials;
  if (!same) throw APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });
}

/** In a callback an error is a redirect to where the flow wanted its errors; elsewhere an answer. */
async function redirectFromCallback(error: unknown): Promise<never> {
  const endpoint = tryGetCurrentAuthEndpointContext();
  if (!isAPIError(error) || !endpoint?.redirect || !isCallback()) throw error;
  const { onAPIError } = endpoint.context.options;
  const fallback = onAPIError?.errorURL ?? `${endpoint.context.baseURL}/error`;
  const errorURL = (await getOAuthState())?.errorURL ?? fallback;
  const code = String(error.body?.code ?? "internal_server_error").toLowerCase();
  throw endpoint.redirect(appendQueryParams(errorURL, new URLSearchParams({ error: code })));
}

/**
 * The other way round: better-auth's own callback is the platform's, whatever tenant the request
 * names or has a session of. A state that a tenant started is refused there: in the database it is
 * out of reach, and in a cookie or in secondary storage it is looked at.
 */
export const keepCallbackOnPlatform: BeforeHook = {
  matcher: ({ path, context }) => path === CALLBACK_PATH && !(SCOPED in context),

  handler: createAuthMiddleware(async ({ context }) => {
    enterScope(createScope(null));
    const { oauthConfig, options, socialProviders } = context;
    if (oauthConfig.storeStateStrategy !== "cookie" && !options.secondaryStorage) return;
    context.socialProviders = socialProviders.map((provider) =>
      late(async () => {
        const { binding } = await readBoundState();
        if (binding) throw APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });
        return provider;
      }, provider),
    );
  }),
};
