import type { GenericEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import type { BeforeHook } from "../scope/hook";
import { SCOPED } from "../scope/run";
import { createScope, currentScope, enterScope } from "../scope/scope";
import { findTenantById } from "../tenants/store";
import { fromConfig, fromGlobal } from "./build";
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
 * a callback that is after it has read the state, which is what names the tenant. One query
 * serves all of them, and only the provider that is asked for is decrypted and built.
 */
export function tenantProviders(endpoint: Endpoint): OAuthProvider[] {
  const { context } = endpoint;
  if (tenantLists.has(context.socialProviders)) return context.socialProviders;
  const globals = new Map(context.socialProviders.map((provider) => [provider.id, provider]));
  let rows: Promise<StoredOAuthConfig[]> | undefined;

  const provide = async (id: string) => {
    const state = isCallback() ? await readBinding() : undefined;
    const tenantId = currentScope()?.tenantId;
    if (!tenantId) return undefined;
    // The border would have kept the state of a deleted tenant back; a cookie lives on.
    if (state?.pastBorder && !(await findTenantById(context, tenantId))) return undefined;
    rows ??= listOAuthConfigs(context, tenantId);
    const row = (await rows).find((candidate) => candidate.providerId === id && candidate.enabled);
    const global = globals.get(id);
    const found = row ? await fromConfig(context, row, global) : global && fromGlobal(global);
    if (!found) return undefined;
    const binding = { tenantId, providerId: id, credentials: found.credentials };
    if (state) assertSameBinding(state.binding, binding);
    else await bindState(binding);
    return found.provider;
  };

  // better-auth asks one provider after the other, so the one that it is looking for stands first.
  const ids = new Set([...wantedIds(endpoint), ...globals.keys(), ...socialProviderList]);
  const list = [...ids].map((id) =>
    late(() => provide(id), {
      id,
      options: globals.get(id)?.options,
      createEndSessionURL: async (data) => (await provide(id))?.createEndSessionURL?.(data) ?? null,
    }),
  );
  tenantLists.add(list);
  return list;
}

/** Lists that are a tenant's already: endpoints may call each other with the same context. */
const tenantLists = new WeakSet<OAuthProvider[]>();

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

  handler: createAuthMiddleware(async ({ context }) => {
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
