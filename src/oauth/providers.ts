import { isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { borderOf } from "../border/border";
import { CALLBACK_PATH } from "../constants";
import {
  givenOf,
  lateProvider,
  lazy,
  oncePerObject,
  resolved,
  viewOf,
  withChanges,
} from "../framework";
import { oauthState } from "../naming/stand-ins";
import type { ResolvedOptions } from "../options";
import { currentEndpoint, type Endpoint } from "../scope/endpoint";
import { currentScope, getTenantId } from "../scope/scope";
import { settle } from "../scope/settle";
import { GLOBALS } from "./configured";
import { sharedClients } from "./shared-tokens";

/**
 * The social providers, read late from the scope: the global ones on the platform; in a tenant its
 * own config where there is an enabled one, else the global provider. In a tenant they are
 * functions, which better-auth calls when it needs the provider. While nobody knows yet where the
 * request runs they are functions too, and the scope is settled when the first one is called.
 */
export function lateProviders(given: OAuthProvider[], options: ResolvedOptions): OAuthProvider[] {
  // Somebody may have made the list of what they have read, in whichever scope.
  const read = given.flatMap((provider) => givenOf(provider) ?? []);
  const globals = given.every((provider, index) => provider === read[index]) ? given : read;
  const inTenants = listInTenants(globals, options);
  const onPlatform = oncePerObject((global: OAuthProvider) =>
    viewOf(global, refusingTenantStates(global)),
  );
  const withIdToken = oncePerObject((global: OAuthProvider) =>
    viewOf(
      global,
      lateProvider(async () => forIdTokens(await resolved(global)), global),
    ),
  );
  const current = (): OAuthProvider[] => {
    const scope = currentScope();
    const endpoint = currentEndpoint();
    if (scope.kind === "settled" && scope.tenantId === null) {
      if (endpoint?.path === CALLBACK_PATH) return globals.map(onPlatform);
      return endpoint?.body?.idToken ? globals.map(withIdToken) : globals;
    }
    // Outside of requests there is nobody who could settle it: that is the platform.
    if (scope.kind === "pending" && !endpoint) return globals;
    return inTenants(endpoint ? wantedIds(endpoint) : []);
  };
  // Not around the list itself, which may be frozen and could show nothing else then.
  const list = new Proxy([] as OAuthProvider[], {
    get: (_, key) => {
      if (key === GLOBALS) return globals;
      const shown = CHANGES_A_LIST.test(String(key)) ? globals : current();
      const value = Reflect.get(shown, key);
      // Bound to one list: the scope may be settled while better-auth goes through it.
      const isMethod = typeof value === "function" && !Object.hasOwn(shown, key);
      return isMethod ? value.bind(shown) : value;
    },
    set: (_, key, value) => Reflect.set(globals, key, givenOf(value) ?? value),
    has: (_, key) => Reflect.has(current(), key),
    ownKeys: () => Reflect.ownKeys(current()),
    getOwnPropertyDescriptor: (_, key) => {
      const found = Reflect.getOwnPropertyDescriptor(current(), key);
      return found && { ...found, writable: true, configurable: key !== "length" };
    },
  });
  return viewOf(globals, list);
}

/** As whoever sends an id token along gets it. */
async function forIdTokens(provider: OAuthProvider): Promise<OAuthProvider> {
  const { context, body } = currentEndpoint() ?? {};
  if (!context || !body?.idToken) return provider;
  return (await sharedClients()).aboutOnePerson(context, provider);
}

/** A provider that somebody adds at run time, in whichever scope, is the application's. */
const CHANGES_A_LIST = /^(pop|push|reverse|shift|sort|splice|unshift)$/;

/**
 * The application's providers, and all others that a tenant could have a config for. better-auth asks
 * one after the other: first come those that it could be looking for.
 */
function listInTenants(globals: OAuthProvider[], options: ResolvedOptions) {
  const others = socialProviderList.map((id) => ({
    id,
    late: viewOf(undefined, lateTenantProvider(id, undefined, options)),
  }));
  const lateGlobal = oncePerObject((global: OAuthProvider) =>
    viewOf(global, lateTenantProvider(global.id, global, options)),
  );
  return (wanted: string[]): OAuthProvider[] => {
    const own = globals.map((global) => ({ id: global.id, late: lateGlobal(global) }));
    const taken = own.map(({ id }) => id);
    const all = [...own, ...others.filter(({ id }) => !taken.includes(id))];
    const first = all.filter(({ id }) => wanted.includes(id));
    return [...first, ...all.filter((provider) => !first.includes(provider))].map(
      ({ late }) => late,
    );
  };
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
    const isInTenant = border && (await settle(border.readSession)).tenantId !== null;
    const provider = global && (await resolved(global));
    if (!isInTenant) return provider;
    return (await tenantProviders()).provide(
      endpoint.context,
      provider?.id ?? id,
      provider,
      options,
    );
  };
  return late(id, provide, {
    id,
    // better-auth asks here whether an address that a provider has not verified has to be.
    get options() {
      const { context } = currentEndpoint() ?? {};
      const required = context && borderOf(context)?.policy.requiresVerification();
      const given = global?.options;
      return required ? withChanges(given ?? {}, { requireEmailVerification: true }) : given;
    },
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
    has: () => true,
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
    return (await isTenantsState()) ? redirectFromCallback(stateMismatch()) : resolved(provider);
  };
  return lateProvider(provide, provider);
}
