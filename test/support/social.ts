import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import type { OAuthProvider } from "better-auth/oauth2";
import type { Answer, Browser } from "./browser";
import { startIdentityProvider } from "./identity-provider";
import { createInstance, type Instance, type InstanceOptions } from "./instance";
import { createStorage } from "./stores";
import { createWorld, queryOf, type SessionAnswer, shareMade, type WorldOptions } from "./world";

type SocialProviders = NonNullable<BetterAuthOptions["socialProviders"]>;
type GitLab = Partial<
  Exclude<SocialProviders["gitlab"], undefined | ((...args: never) => unknown)>
>;

export interface SocialOptions extends InstanceOptions {
  /** On top of the global gitlab provider; false leaves only its issuer, switched off. */
  gitlab?: GitLab | false;
  socialProviders?: SocialProviders;
  /** Where the state of a flow is kept between its start and its callback. */
  stateStrategy?: (typeof STATE_STRATEGIES)[number];
}

export type SocialWorldOptions = WorldOptions & Omit<SocialOptions, keyof InstanceOptions>;

export const STATE_STRATEGIES = ["database", "cookie", "secondary storage"] as const;

/** Credentials of the application itself, which tenants without a config share. */
export const GLOBAL = { clientId: "global-client", clientSecret: "global-secret" };

type StartAnswer = Answer<{ url: string; redirect: boolean }>;

type IdentityProvider = Awaited<ReturnType<typeof startIdentityProvider>>;

async function startProvider() {
  const idp = await startIdentityProvider();
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  idp.addPerson("alice");
  idp.addPerson("bob");
  return idp;
}

function withProvider<Options extends SocialOptions | SocialWorldOptions>(
  options: Options,
  idp: IdentityProvider,
) {
  const { gitlab, socialProviders, stateStrategy, ...rest } = options;
  return {
    ...rest,
    auth: {
      ...rest.auth,
      account: {
        storeStateStrategy: stateStrategy === "cookie" ? "cookie" : "database",
        ...rest.auth?.account,
      },
      ...(stateStrategy === "secondary storage" && {
        secondaryStorage: createStorage(),
        // Only so that tests can count them; what is in the storage comes first.
        session: { storeSessionInDatabase: true },
      }),
      socialProviders: {
        gitlab: {
          ...GLOBAL,
          issuer: idp.issuer,
          ...(gitlab === false ? { enabled: false } : gitlab),
        },
        ...socialProviders,
      },
    },
  };
}

/** An instance whose `gitlab` is the fake identity provider, where Alice and Bob have accounts. */
export async function createSocialInstance(options: SocialOptions = {}) {
  const idp = await startProvider();
  const instance = await createInstance(withProvider(options, idp));
  return { ...instance, ...atProvider(instance, idp, (id) => id) };
}

/** A world whose `gitlab` is the fake identity provider, where Alice and Bob have accounts. */
export async function createSocialWorld(options: SocialWorldOptions = {}) {
  const idp = await startProvider();
  const world = await createWorld(withProvider(options, idp));
  const { whoIs: _, signIn: signInAtProvider, ...parts } = atProvider(world, idp, world.idOf);
  return { ...world, ...parts, signInAtProvider };
}

/** One such world for all tests of a file. */
export const shareSocialWorld = (options: SocialWorldOptions = {}): SocialWorld =>
  shareMade((database) => createSocialWorld({ ...options, database }));

export type SocialWorld = Awaited<ReturnType<typeof createSocialWorld>>;

/** A plugin that changes the application's list of providers. */
export const changingProviders = (
  change: (all: OAuthProvider[]) => object[],
): BetterAuthPlugin => ({
  id: "changing-providers",
  init: ({ socialProviders }) => ({
    context: { socialProviders: change(socialProviders) as OAuthProvider[] },
  }),
});

/** Goes to a provider and comes back with a code. */
export async function comeBack(browser: Browser, provider: string) {
  const body = { provider, callbackURL: "/welcome", errorCallbackURL: "/failed" };
  const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
  const { redirect_uri, state } = queryOf(data.url);
  return browser.get(`${redirect_uri}?code=1&state=${state}`);
}

/** What a tenant's config may say besides. */
interface Config {
  providerId?: string;
  clientId?: string;
  clientSecret?: string;
  scopes?: string[];
  redirectURI?: string;
  enabled?: boolean;
  options?: Record<string, unknown>;
}
type Body = Record<string, unknown>;

/** What people and tenants do at the identity provider. */
function atProvider(
  instance: Pick<Instance, "api">,
  idp: IdentityProvider,
  idOf: (where: string | null) => string | null,
) {
  /** Starts at a tenant, or on the platform with null. */
  function start(browser: Browser, where: string | null, body: Body = {}): Promise<StartAnswer> {
    const tenantId = idOf(where);
    const pages = { callbackURL: "/welcome", errorCallbackURL: "/failed" };
    const common = { provider: "gitlab", ...pages, ...body };
    return tenantId === null
      ? browser.post("/sign-in/social", common)
      : browser.post("/tenant/sign-in/social", { tenantId, ...common });
  }

  /** Starts, agrees at the provider, and stops just before the way back. */
  async function authorize(
    browser: Browser,
    where: string | null,
    body?: Body,
    username = "alice",
  ) {
    const { data, status } = await start(browser, where, body);
    if (status !== 200) throw new Error(`start: ${JSON.stringify(data)}`);
    return idp.authorize(data.url, username);
  }

  return {
    idp,
    start,
    authorize,

    /** Gives a tenant credentials of its own, which the identity provider knows. */
    async configure(where: string, config: Config = {}) {
      const tenantId = idOf(where) ?? "";
      const complete = {
        providerId: "gitlab",
        clientId: `client-${tenantId}`,
        clientSecret: `secret-${tenantId}`,
        ...config,
      };
      idp.registerClient(complete.clientId, complete.clientSecret);
      await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...complete } });
      return complete;
    },

    /** The whole way: start, agree, come back. */
    async signIn(...way: Parameters<typeof authorize>) {
      return way[0].get(await authorize(...way));
    },

    /** Who the browser is, in the tenant or on the platform. */
    async whoIs(browser: Browser, tenantId: string | null) {
      const headers: Record<string, string> = tenantId === null ? {} : { "x-tenant-id": tenantId };
      const { data } = await browser.get<SessionAnswer | null>("/get-session", { headers });
      return data;
    },
  };
}
