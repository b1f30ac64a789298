import type { BetterAuthOptions } from "better-auth";
import { expect } from "vitest";
import type { Answer, Browser } from "./browser";
import { startIdentityProvider } from "./identity-provider";
import { createInstance, type InstanceOptions } from "./instance";
import { fakeGoogleAndGitHub } from "./providers";

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

export const STATE_STRATEGIES = ["database", "cookie", "secondary storage"] as const;

/** Credentials of the application itself, which tenants without a config share. */
export const GLOBAL = { clientId: "global-client", clientSecret: "global-secret" };

type StartAnswer = Answer<{ url: string; redirect: boolean }>;

/** An instance whose `gitlab` is the fake identity provider, where Alice and Bob have accounts. */
export async function createSocialInstance(options: SocialOptions = {}) {
  const { gitlab, socialProviders, stateStrategy, ...rest } = options;
  const idp = await startIdentityProvider();
  idp.registerClient(GLOBAL.clientId, GLOBAL.clientSecret);
  idp.addPerson("alice");
  idp.addPerson("bob");
  const instance = await createInstance({
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
  });

  /** Starts at a tenant, or on the platform with null. */
  function start(
    browser: Browser,
    tenantId: string | null,
    body: Record<string, unknown> = {},
  ): Promise<StartAnswer> {
    const path = tenantId === null ? "/sign-in/social" : "/tenant/sign-in/social";
    const tenant = tenantId === null ? {} : { tenantId };
    return browser.post(path, {
      provider: "gitlab",
      callbackURL: "/welcome",
      errorCallbackURL: "/failed",
      ...tenant,
      ...body,
    });
  }

  /** Starts, agrees at the provider, and stops just before the way back. */
  async function authorize(
    browser: Browser,
    tenantId: string | null,
    body?: Record<string, unknown>,
    username = "alice",
  ) {
    const { data, status } = await start(browser, tenantId, body);
    if (status !== 200) throw new Error(`start: ${JSON.stringify(data)}`);
    return idp.authorize(data.url, username);
  }

  return {
    ...instance,
    idp,
    start,
    authorize,

    /** Gives a tenant credentials of its own, which the identity provider knows. */
    async configure(
      tenantId: string,
      config: {
        providerId?: string;
        clientId?: string;
        clientSecret?: string;
        scopes?: string[];
        redirectURI?: string;
        enabled?: boolean;
      } = {},
    ) {
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
    async signIn(
      browser: Browser,
      tenantId: string | null,
      body?: Record<string, unknown>,
      username?: string,
    ) {
      return browser.get(await authorize(browser, tenantId, body, username));
    },

    /** Who the browser is, in the tenant or on the platform. */
    async whoIs(browser: Browser, tenantId: string | null) {
      const headers: Record<string, string> = tenantId === null ? {} : { "x-tenant-id": tenantId };
      const { data } = await browser.get<SessionAnswer | null>("/get-session", { headers });
      return data;
    },
  };
}

function createStorage() {
  const values = new Map<string, string>();
  const take = (key: string) => {
    const value = values.get(key) ?? null;
    values.delete(key);
    return value;
  };
  return {
    get: (key: string) => values.get(key) ?? null,
    set: (key: string, value: string) => void values.set(key, value),
    delete: (key: string) => void values.delete(key),
    getAndDelete: take,
    increment: (key: string) => {
      const count = Number(values.get(key) ?? 0) + 1;
      values.set(key, String(count));
      return count;
    },
  };
}

/**
 * A tenant, and Alice, who has agreed at the provider and is about to come back to it; with what
 * has to be true when that is refused.
 */
export async function createAliceOnHerWay({
  stateStrategy,
  config = true,
}: Pick<SocialOptions, "stateStrategy"> & {
  /** Whether the tenant has credentials of its own. */
  config?: boolean;
}) {
  const internet = fakeGoogleAndGitHub();
  const app = await createSocialInstance({ stateStrategy, socialProviders: { google: GLOBAL } });
  const tenant = await app.createTenant();
  if (config) await app.configure(tenant.id);
  const browser = app.browser();
  const url = await app.authorize(browser, tenant.id);

  const atProvider = () => [...app.idp.exchanges(), ...internet.exchanges()].length;
  const providerId = app.database.quote("providerId");
  /** Everybody who signed up with a password has one session; any other one is too many. */
  const signedIn = async () => ({
    accounts: await app.rows("account", `${providerId} <> 'credential'`),
    users: await app.rows("user", `${app.database.quote("email")} = 'alice@example.com'`),
    sessions:
      (await app.rows("session")) - (await app.rows("account", `${providerId} = 'credential'`)),
  });

  return {
    app,
    tenant,
    browser,
    url,
    query: queryOf(url),

    /** A redirect with an error, nobody signed in, and no code sent to any provider. */
    async expectRefused(answer: Answer, error: string | RegExp = /./) {
      expect(answer.status).toBe(302);
      expect(answer.location).toMatch(/^(\/failed|http:\/\/localhost:3000\/api\/auth\/error)\?/);
      expect(queryOf(answer.location)).toEqual(
        expect.objectContaining({ error: expect.stringMatching(error) }),
      );
      expect(atProvider()).toBe(0);
      expect(await signedIn()).toEqual({ accounts: 0, users: 0, sessions: 0 });
      expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    },
  };
}

interface SessionAnswer {
  session: { tenantId: string | null; token: string; userId: string };
  user: { id: string; email: string; name: string; tenantId: string | null };
}

/** The query of the URL that an answer leads to. */
export function queryOf(url: string | null): Record<string, string> {
  return Object.fromEntries(new URL(url ?? "", "http://localhost").searchParams);
}
