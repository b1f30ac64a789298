import { type SSOOptions, sso } from "@better-auth/sso";
import type { Answer, Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";

export const CLIENT_SECRET = "a client secret nobody may see";

type Start = (
  tenantId: string | null,
  by: Record<string, string>,
  browser: Browser,
) => Promise<Answer<{ url: string }>>;

interface OIDCRegistration {
  providerId: string;
  issuer: string;
  domain: string;
  oidcConfig: {
    clientId: string;
    clientSecret: string;
    skipDiscovery: boolean;
    authorizationEndpoint: string;
    tokenEndpoint: string;
    userInfoEndpoint: string;
    jwksEndpoint: string;
    tokenEndpointAuthentication: "client_secret_post";
    pkce: boolean;
  };
}

interface Place {
  id: string;
  slug: string;
  admin: SignedUp;
  member: SignedUp;
}

type SignedUp = Awaited<ReturnType<Instance["signUp"]>>;

export interface SSOWorld extends Omit<Instance, "operator"> {
  provider: Awaited<ReturnType<typeof startIdentityProvider>>;
  acme: Place;
  globex: Place;
  operator: Browser;
  operatorUser: SignedUp["user"];
  makeAdmin(userId: string): Promise<unknown>;
  oidc(providerId: string, more?: Record<string, unknown>): OIDCRegistration;
  start: Start;
  signIn(
    tenantId: string | null,
    by: Record<string, string>,
    username: string,
    browser?: Browser,
  ): Promise<{
    started: Answer<{ url: string }>;
    answer: Answer<unknown>;
    browser: Browser;
    back?: string;
  }>;
}

export interface SSOWorldOptions extends InstanceOptions {
  sso?: SSOOptions;
  trustedOrigins?: string[];
  /** A world over the same database: its tenants and its identity provider are there already. */
  existing?: SSOWorld;
}

/**
 * Two tenants, each with an administrator and somebody ordinary; an operator of the platform; and
 * an identity provider that speaks OpenID Connect on a real port.
 */
export async function createSSOWorld(options: SSOWorldOptions = {}): Promise<SSOWorld> {
  const { sso: ssoOptions, tenant, auth, plugins = [], trustedOrigins = [], existing } = options;
  const provider = existing?.provider ?? (await startIdentityProvider());
  const instance = await createInstance({
    ...options,
    auth: { ...auth, trustedOrigins: [provider.issuer, ...trustedOrigins] },
    plugins: [sso(ssoOptions), ...plugins],
    tenant: {
      scopedModels: ["ssoProvider"],
      tenantRoles: { admin: ["sso:*"] },
      ...tenant,
    },
  });
  const { database } = instance;

  const makeAdmin = (userId: string) =>
    database.query(`update ${database.quote("user")} set role = 'admin' where id = ?`, [userId]);

  async function furnish(slug: string) {
    const { id } = await instance.createTenant(slug);
    const admin = await instance.signUp(id, `admin@${slug}.example`);
    await makeAdmin(admin.user.id);
    const member = await instance.signUp(id, `member@${slug}.example`);
    return { id, slug, admin, member };
  }

  const acme = existing?.acme ?? (await furnish("acme"));
  const globex = existing?.globex ?? (await furnish("globex"));
  const operator = existing
    ? { browser: existing.operator, user: existing.operatorUser }
    : await instance.operator();

  /** What to register for a client at the identity provider. */
  function oidc(providerId: string, more: Record<string, unknown> = {}): OIDCRegistration {
    const clientId = `client-of-${providerId}`;
    provider.registerClient(clientId, CLIENT_SECRET);
    return {
      providerId,
      issuer: provider.issuer,
      domain: "acme.example",
      oidcConfig: {
        clientId,
        clientSecret: CLIENT_SECRET,
        skipDiscovery: true,
        authorizationEndpoint: `${provider.issuer}/oauth/authorize`,
        tokenEndpoint: `${provider.issuer}/oauth/token`,
        userInfoEndpoint: `${provider.issuer}/api/v4/user`,
        jwksEndpoint: `${provider.issuer}/jwks`,
        tokenEndpointAuthentication: "client_secret_post",
        pkce: true,
      },
      ...more,
    };
  }

  /** Starts in a tenant or on the platform, and goes to the identity provider and back. */
  async function signIn(
    tenantId: string | null,
    by: Record<string, string>,
    username: string,
    browser: Browser = instance.browser(),
  ) {
    const started = await start(tenantId, by, browser);
    if (started.status !== 200) return { started, browser, answer: started };
    const back = await provider.authorize(started.data.url, username);
    const answer = await browser.get(back);
    return { started, browser, answer, back };
  }

  const start: Start = (tenantId, by, browser) =>
    browser.post<{ url: string }>(
      "/sign-in/sso",
      { callbackURL: "/welcome", errorCallbackURL: "/failed", ...by },
      { headers: named(tenantId) },
    );

  return {
    ...instance,
    provider,
    acme,
    globex,
    operator: operator.browser,
    operatorUser: operator.user,
    makeAdmin,
    oidc,
    start,
    signIn,
  };
}

export const named = (tenantId: string | null): Record<string, string> =>
  tenantId === null ? {} : { "x-tenant-id": tenantId };

interface WhoAmI {
  user: { id: string; email: string; tenantId: string | null };
}

/** Who the browser is signed in as, wherever that is. */
export async function whoIs(browser: Browser): Promise<WhoAmI["user"] | undefined> {
  return (await browser.get<WhoAmI | null>("/get-session")).data?.user;
}
