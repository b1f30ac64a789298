import { isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { borderOf } from "../border/border";
import { CALLBACK_PATH } from "../constants";
import { lateProvider, lazy } from "../framework";
import { oauthState } from "../naming/stand-ins";
import type { ResolvedOptions } from "../options";
import { currentEndpoint, type Endpoint } from "../scope/endpoint";
import { currentScope, getTenantId } from "../scope/scope";
import { settle } from "../scope/settle";
import { byId, GLOBALS } from "./configured";
import { sharedClients } from "./shared-tokens";

/**
 * The social providers, read late from the scope: the global ones on the platform; in a tenant its
 * own config where there is an enabled one, else the global provider. In a tenant they are
 * functions, which better-auth calls when it needs the provider. While nobody knows yet where the
 * request runs they are functions too, and the scope is settled when the first one is called.
 */
export function lateProviders(globals: OAuthProvider[], options: ResolvedOptions): OAuthProvider[] {
  const lists = createLists(globals, options);
  const onPlatform = globals.map(refusingTenantStates);
  const withIdToken = globals.map((global) => lateProvider(() => forIdTokens(global), global));
  const current = (): OAuthProvider[] => {
    const scope = currentScope();
    const endpoint = currentEndpoint();
    if (scope.kind === "settled" && scope.tenantId === null) {
      if (endpoint?.path === CALLBACK_PATH) return onPlatform;
      return endpoint?.body?.idToken ? withIdToken : globals;
    }
    // Outside of requests there is nobody who could settle it: that is the platform.
    if (scope.kind === "pending" && !endpoint) return globals;
    const wanted = endpoint && wantedIds(endpoint).find((id) => lists.has(id));
    return lists.get(wanted ?? NONE) ?? [];
  };
  return new Proxy(globals, {
    get: (_, key) => {
      if (key === GLOBALS) return globals;
      const list = current();
      const value = Reflect.get(list, key);
      // Bound to one list: the scope may be settled while better-auth goes through it.
      return typeof value === "function" ? value.bind(list) : value;
    },
    has: (_, key) => Reflect.has(current(), key),
  });
}

/** As whoever sends an id token along gets it. */
async function forIdTokens(provider: OAuthProvider): Promise<OAuthProvider> {
  const { context, body } = currentEndpoint() ?? {};
  if (!context || !body?.idToken) return provider;
  return (await sharedClients()).aboutOnePerson(context, provider);
}

const NONE = "";

/** better-auth asks one provider after the other: a list for each that it could be looking for. */
function createLists(configured: OAuthProvider[], options: ResolvedOptions) {
  const globals = byId(configured);
  const ids = [...new Set([...globals.keys(), ...socialProviderList])];
  const providers = ids.map((id) => lateTenantProvider(id, globals.get(id), options));
  return new Map(
    [NONE, ...ids].map((wanted) => {
      const first = ({ id }: OAuthProvider) => Number(id === wanted);
      return [wanted, providers.toSorted((a, b) => first(b) - first(a))];
    }),
  );
}

/** Loaded with the first social sign-in in a tenant. */
const tenantProviders = lazy(() => import("./provider"));

function lateTenantProvider(
  id: string,
  global: OAuthProvider | undefined,
  options: ResolvedOptions,
): OAuthProvider {
  const provide = async () => {
    const endpoint = currentEndpoint();
    const border = endpoint && borderOf(endpoint.context);
    if (!border || (await settle(border.readSession)).tenantId === null) return global;
    return (await tenantProviders()).provide(endpoint.context, id, global, options);
  };
  const provider = late(id, provide, {
    id,
    options: global?.options,
    createEndSessionURL: async (data) => {
      const provider = await provide();
      const { context } = currentEndpoint() ?? {};
      const { idToken, ...rest } = data;
      // The address is an answer, with an id token in it: see `keepSharedTokens`.
      const isAnswer = context && getTenantId() !== null;
      const { isSignIn } = isAnswer
        ? await (await sharedClients()).asSignIn(context, id, { idToken })
        : { isSignIn: false };
      const given = isSignIn ? rest : data;
      return (await provider?.createEndSessionURL?.(given)) ?? null;
    },
  });
  // better-auth asks here whether an address that a provider has not verified has to be.
  return Object.defineProperty(provider, "options", {
    get: () => {
      const { context } = currentEndpoint() ?? {};
      const required = context && borderOf(context)?.policy.requiresVerification();
      return required ? { ...global?.options, requireEmailVerification: true } : global?.options;
    },
  });
}

function wantedIds({ body, query, params }: Endpoint): string[] {
  const named = [body?.provider, body?.providerId, query?.provider, query?.providerId, params?.id];
  return named.filter((id) => typeof id === "string");
}

/** A provider that fails in words of ours, when it is the one that was asked for. */
function late(
  id: string,
  provide: () => Promise<OAuthProvider | undefined>,
  read: Partial<OAuthProvider>,
): OAuthProvider {
  const call = async () => {
    const endpoint = currentEndpoint();
    const isWanted = endpoint && wantedIds(endpoint).includes(id);
    const failed = async (error: unknown) =>
      isWanted ? (await oauthState()).redirectFromCallback(error) : unusable(id, error);
    const provider = await provide().catch(failed);
    return provider ? forIdTokens(provider) : {};
  };
  return lateProvider(call, read);
}

/**
 * Where better-auth looks through all providers for one of them, a config that cannot be used must
 * not keep people from the others. It fails when it turns out to be the one.
 */
function unusable(id: string, error: unknown): OAuthProvider {
  if (!isAPIError(error)) throw error;
  return new Proxy({} as OAuthProvider, {
    get: (_, key) => {
      if (key === "id") return id;
      if (key === "then") return undefined;
      throw error;
    },
  });
}

/**
 * better-auth's own callback is the platform's. A state that a tenant started is refused there: in
 * the database and in secondary storage it is out of reach, and in a cookie it is looked at.
 */
function refusingTenantStates(provider: OAuthProvider): OAuthProvider {
  const provide = async () => {
    const { isTenantsState, redirectFromCallback, stateMismatch } = await oauthState();
    return (await isTenantsState()) ? redirectFromCallback(stateMismatch()) : provider;
  };
  return lateProvider(provide, provider);
}
