import type { AuthContext, BetterAuthOptions } from "better-auth";
import type { OAuthProvider, ProviderOptions } from "better-auth/oauth2";
import { socialProviderList } from "better-auth/social-providers";
import { CALLBACK_PATH } from "../constants";
import { type BeforeHook, silentHook } from "../framework";
import { isolationOf } from "../isolation/isolation";
import type { ResolvedOptions } from "../options";
import { currentEndpoint, type Endpoint } from "../request/endpoint";
import { currentScope, getTenantId } from "../request/scope";
import { requiresVerification } from "../setup/overrides";
import { applicationProviders } from "./application-providers";
import { providerForFlow } from "./provider";
import { isTenantsState, redirectFromCallback, stateMismatch } from "./state";
import { requestedAccount } from "./tokens";

/**
 * A social provider that better-auth gets by calling a function when it needs the provider, and what
 * it reads without calling it.
 *
 * Guarded by "a social provider may be a function, which is called when it is wanted".
 */
const callable = (
  call: () => Promise<Partial<OAuthProvider>>,
  shown: Partial<OAuthProvider>,
): OAuthProvider => Object.defineProperties(call, Object.getOwnPropertyDescriptors(shown)) as never;

/**
 * Gives the endpoint the providers of its tenant: the tenant's enabled config for each, else the
 * application's. They are functions, so that a changed config is effective immediately, and so that
 * the tenant of a session can be resolved before the first one is needed.
 */
export function useTenantProviders(ctx: AuthContext, options: ResolvedOptions): BeforeHook {
  const { byId } = applicationProviders(ctx);
  const ids = new Set([...byId.keys(), ...socialProviderList]);
  const inTenants = [...ids].map((id) => tenantEntry(id, byId.get(id), options));
  const atCallback = ctx.socialProviders.map(callbackEntry);
  return {
    matcher: () => true,
    handler: silentHook(({ context, path }) => {
      const scope = currentScope();
      const isPlatform = scope.tenantId === null;
      if (!isPlatform) context.socialProviders = inTenants;
      else if (path === CALLBACK_PATH) context.socialProviders = atCallback;
      return undefined;
    }),
  };
}

function tenantEntry(
  id: string,
  application: OAuthProvider | undefined,
  options: ResolvedOptions,
): OAuthProvider {
  const call = async () => {
    const endpoint = currentEndpoint();
    if (!endpoint || !(await isInTenant(endpoint))) return application ?? {};
    const wanted = wantedId(endpoint);
    if (wanted !== undefined && wanted !== id) return {};
    try {
      return (await providerForFlow(endpoint, id, options)) ?? {};
    } catch (error) {
      // A config that cannot be used must not keep users from the other providers.
      if (wanted === undefined) return {};
      return redirectFromCallback(error);
    }
  };
  return callable(call, {
    id,
    name: application?.name ?? id,
    // better-auth reads from here whether a new user has to verify the email of a provider.
    get options() {
      const isRequired = requiresVerification();
      return { ...application?.options, ...(isRequired && { requireEmailVerification: true }) };
    },
    // The address is part of a response, which has no id tokens inside a tenant.
    createEndSessionURL: async ({ idToken, ...data }) => {
      const endpoint = currentEndpoint();
      const isWithheld = endpoint && (await isInTenant(endpoint));
      const given = isWithheld ? data : { idToken, ...data };
      return (await application?.createEndSessionURL?.(given)) ?? null;
    },
  });
}

async function isInTenant({ context }: Endpoint): Promise<boolean> {
  const isolation = isolationOf(context);
  return isolation !== undefined && getTenantId() !== null;
}

/** The id of the provider that an endpoint looks for, where its request says so. */
const wantedId = (endpoint: Endpoint): string | undefined =>
  endpoint.body?.provider ?? endpoint.params?.id ?? requestedAccount(endpoint)?.providerId;

/**
 * better-auth's own callback is the platform's. It refuses a state that a tenant started: such a
 * state may be in a cookie, and not in the tenant's rows.
 */
function callbackEntry(application: OAuthProvider): OAuthProvider {
  const call = async () => {
    return (await isTenantsState()) ? redirectFromCallback(stateMismatch()) : application;
  };
  return callable(call, application);
}

/**
 * One Tap reads the options of Google instead of its provider. better-auth allows these to be a
 * function, which returns the tenant's options inside a tenant.
 */
export function withTenantOptions(
  { plugins, socialProviders }: BetterAuthOptions,
  configured: Map<string, ProviderOptions>,
  options: ResolvedOptions,
): BetterAuthOptions["socialProviders"] {
  if (!plugins?.some(({ id }) => id === "one-tap")) return socialProviders ?? {};
  const google = async () => {
    const endpoint = currentEndpoint();
    if (!endpoint || !(await isInTenant(endpoint))) return configured.get("google");
    return (await providerForFlow(endpoint, "google", options))?.options;
  };
  return { ...socialProviders, google } as BetterAuthOptions["socialProviders"];
}
