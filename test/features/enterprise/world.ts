import { type SCIMOptions, scim } from "@better-auth/scim";
import { type SSOOptions, sso } from "@better-auth/sso";
import type { BetterAuthPlugin } from "better-auth";
import { expect } from "vitest";
import { runInTenant } from "../../../src/index";
import { requestIn, type SamlAnswer, type SamlProvider } from "../../../src/testing/makers/saml";
import type { Browser } from "../../support/browser";
import type { DatabaseKind } from "../../support/database";
import { startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import {
  createWorld,
  type Send,
  shareMade,
  type Where,
  type World,
  type WorldOptions,
} from "../../support/world";

export const CLIENT_SECRET = "a client secret nobody may see";

/** Whom the identity providers know. */
export const ADA = "ada@acme.example";

type Provider = Awaited<ReturnType<typeof startIdentityProvider>>;

export interface SSOWorldOptions extends WorldOptions {
  sso?: SSOOptions | ((provider: Provider) => SSOOptions);
  /** An identity provider that is there already. */
  provider?: Provider;
}

export type SSOWorld = Awaited<ReturnType<typeof createSSOWorld>>;

export const hostOf = ({ issuer }: Provider) => new URL(issuer).host;

/** What to register for a client at an identity provider, which is told of it. */
export function oidc(provider: Provider, providerId: string, more: object = {}) {
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
      tokenEndpointAuthentication: "client_secret_post" as const,
      pkce: true,
    },
    ...more,
  };
}

/** A provider that the application itself has for everybody: no row says whose it is. */
export function sharedOidc(provider: Provider, providerId: string) {
  const { domain, issuer, oidcConfig } = oidc(provider, providerId);
  const discoveryEndpoint = `${issuer}/none`;
  return { providerId, domain, oidcConfig: { ...oidcConfig, issuer, discoveryEndpoint } };
}

/** A plugin, and those that a test adds. */
const withPlugins =
  (plugin: BetterAuthPlugin, others: WorldOptions["plugins"] = []) =>
  (send: Send) => [plugin, ...(typeof others === "function" ? others(send) : others)];

/** The options of an instance with sso(), whose administrators of tenants may manage providers at a host. */
export function withSSO(provider: Provider, options: Omit<SSOWorldOptions, "provider">) {
  const { sso: given, plugins, tenant, ...rest } = options;
  const ssoPlugin = sso(typeof given === "function" ? given(provider) : given);
  return {
    ...rest,
    tenant: {
      scopedModels: ["ssoProvider"],
      tenantRoles: { admin: ["sso:*" as const] },
      trustedProviderHosts: [hostOf(provider)],
      ...tenant,
    },
    plugins: withPlugins(ssoPlugin, plugins),
  };
}

/** A provider by its id, or something else that leads to one. */
type By = string | Record<string, string>;

/** A world with an identity provider that speaks OpenID Connect on a real port, and knows Ada. */
export async function createSSOWorld(options: SSOWorldOptions = {}) {
  const { provider = await startIdentityProvider(), ...rest } = options;
  provider.addPerson("ada", { email: ADA });
  const world = await createWorld(withSSO(provider, rest));

  /** The administrator of a place registers a provider; its id unless there is more to say. */
  async function register(where: Where, body: string | object) {
    const admin = await world.as("admin", where);
    const registration = typeof body === "string" ? oidc(provider, body) : body;
    const answer = await admin.post("/sso/register", registration);
    expect(answer.status, JSON.stringify(answer.data)).toBe(200);
    return answer;
  }

  /** Starts at a place, by a provider or by something else that leads to one. */
  const start = (where: Where, by: By, browser: Browser = world.at("platform")) => {
    const pages = { callbackURL: "/welcome", errorCallbackURL: "/failed" };
    const body = { ...pages, ...(typeof by === "string" ? { providerId: by } : by) };
    return browser.post<{ url: string }>("/sign-in/sso", body, { headers: world.naming(where) });
  };

  /** The address that leads back, once somebody has agreed at the provider. */
  async function underWay(
    where: Where,
    by: By,
    browser: Browser = world.at("platform"),
    username = "ada",
  ) {
    const { data, status } = await start(where, by, browser);
    expect(status, JSON.stringify(data)).toBe(200);
    return { browser, url: data.url, back: new URL(await provider.authorize(data.url, username)) };
  }

  return {
    ...world,
    provider,
    register,
    start,
    underWay,
    oidc: (providerId: string, more?: object) => oidc(provider, providerId, more),

    /** Starts, goes to the provider and back; the callback names no tenant. */
    async ssoSignIn(
      where: Where,
      by: By,
      username = "ada",
      browser: Browser = world.at("platform"),
    ) {
      const { back } = await underWay(where, by, browser, username);
      const { location } = await browser.get(back.href);
      return { browser, location, who: await world.whoIs(browser) };
    },

    /** A tenant of a test's own, with a provider and somebody who manages it. */
    async newTenant(more: object = {}) {
      const { id, slug } = await world.createTenant();
      const providerId = `${slug}-okta`;
      await register(id, oidc(provider, providerId, more));
      return { id, slug, providerId, admin: await world.as("admin", id) };
    },
  };
}

/** One such world for all tests of a file or of a database. */
export const shareSSOWorld = (options: SSOWorldOptions = {}, kind?: DatabaseKind): SSOWorld =>
  shareMade((database) => createSSOWorld({ ...options, database }), kind);

/** For people who have been there before, with a password. */
export const identity: SCIMOptions["identity"] = {
  resolveUser: async ({ resource }, { database }) => {
    const where = [{ field: "email", value: resource.primaryEmail }];
    const user = await database.findOne<{ id: string }>({ model: "user", where });
    return user ? { action: "link", userId: user.id, profile: "preserve" } : { action: "create" };
  },
};

export const SCIM_MODELS = [
  "scimManagedConnection",
  "scimManagedCredential",
  "scimManagedConnectionEvent",
  "scimConnectionBinding",
  "scimIdentityTombstone",
  "scimSubject",
  "scimUser",
  "scimProjectionGrant",
  "scimGroup",
  "scimGroupMember",
];

type SCIMWorldOptions = WorldOptions & { scim?: Partial<SCIMOptions> };

interface SCIMResource {
  id: string;
  active: boolean;
  displayName: string;
  Resources: SCIMResource[];
  totalResults: number;
}

type SCIMWorld = Awaited<ReturnType<typeof createSCIMWorld>>;

/** What the directory of a tenant says: with its token, and no word about a tenant. */
class Directory {
  constructor(
    readonly token: string,
    readonly browser: Browser,
  ) {}

  add = (name: string, more: object = {}) =>
    this.browser.post<SCIMResource>("/scim/v2/Users", { ...person(name), ...more });
  addGroup = (displayName: string, ...members: string[]) =>
    this.browser.post<SCIMResource>("/scim/v2/Groups", {
      schemas: ["urn:ietf:params:scim:schemas:core:2.0:Group"],
      displayName,
      members: members.map((value) => ({ value })),
    });
  get = (path: string, query: Record<string, string> = {}) =>
    this.browser.get<SCIMResource>(`/scim/v2/${path}`, { query });
  delete = (path: string) =>
    this.browser.send<{ detail: string }>(`/scim/v2/${path}`, { method: "DELETE" });
  patch = (path: string, field: string, value: unknown, op = "replace") =>
    this.browser.send<SCIMResource>(`/scim/v2/${path}`, {
      method: "PATCH",
      body: {
        schemas: ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
        Operations: [{ op, path: field, value }],
      },
    });
}

const person = (name: string) => ({
  schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"],
  userName: `${name}@example.com`,
  externalId: `external-${name}`,
  name: { givenName: name, familyName: "Example" },
  emails: [{ value: `${name}@example.com`, primary: true }],
});

const scimPlugin = (options: Partial<SCIMOptions> = {}) =>
  scim({
    connections: [],
    managedConnections: { credentialHashSecret: "a secret that hashes the tokens of directories" },
    ...options,
  });

/** The directories of the tenants of a world that has the plugin for them. */
function directoriesIn(world: World) {
  const api = world.api as typeof world.api & ReturnType<typeof scimPlugin>["endpoints"];

  const directory = (token: string, headers: Record<string, string> = {}) =>
    new Directory(
      token,
      world.browser({
        authorization: `Bearer ${token}`,
        "content-type": "application/scim+json",
        ...headers,
      }),
    );

  /** A managed connection, made by the application for a tenant. */
  async function connect(where: Where) {
    const tenantId = String(world.idOf(where));
    const scopes = ["users.read", "users.write", "groups.read", "groups.write"] as const;
    const owner = {
      provisioningDomainId: `domain-of-${tenantId}`,
      actorId: "the application",
    };
    const { token, connection } = await runInTenant(tenantId, () =>
      api.createSCIMManagedConnection({
        body: {
          ...owner,
          creationRequestId: `connection-of-${tenantId}-${Math.random()}`,
          scopes: scopes.map((scope) => `scim.${scope}` as const),
          expiresAt: new Date(Date.now() + 3_600_000),
        },
      }),
    );
    const body = { ...owner, connectionId: connection.connectionId };
    const decommission = () =>
      runInTenant(tenantId, () => api.decommissionSCIMManagedConnection({ body }));
    return Object.assign(directory(token), { decommission });
  }

  return { directory, connect };
}

/** A world whose tenants can have directories. */
export async function createSCIMWorld(options: SCIMWorldOptions = {}) {
  const { scim: scimOptions, plugins, tenant, ...rest } = options;
  const world = await createWorld({
    ...rest,
    plugins: withPlugins(scimPlugin(scimOptions), plugins),
    tenant: { scopedModels: SCIM_MODELS, ...tenant },
  });

  return {
    ...world,
    ...directoriesIn(world),

    /** The addresses of a place's people. */
    emails: async (where: Where) =>
      (await world.rowsIn(where, "user")).map(({ email }) => email).sort(),
  };
}

/** A world whose tenants can have directories and identity providers. */
export async function createEnterpriseWorld(
  options: Omit<SSOWorldOptions, "plugins"> & SCIMWorldOptions = {},
) {
  const { scim: scimOptions, plugins, tenant, ...rest } = options;
  const world = await createSSOWorld({
    ...rest,
    plugins: withPlugins(scimPlugin(scimOptions), plugins),
    tenant: { scopedModels: ["ssoProvider", ...SCIM_MODELS], ...tenant },
  });
  return { ...world, ...directoriesIn(world) };
}

export type EnterpriseWorld = Awaited<ReturnType<typeof createEnterpriseWorld>>;

/** One such world for all tests of a database. */
export const shareEnterpriseWorld = (
  options: Parameters<typeof createEnterpriseWorld>[0] = {},
  kind?: DatabaseKind,
): EnterpriseWorld =>
  shareMade((database) => createEnterpriseWorld({ ...options, database }), kind);

/** The same for a world with directories alone. */
export const shareSCIMWorld = (options: SCIMWorldOptions = {}, kind?: DatabaseKind): SCIMWorld =>
  shareMade((database) => createSCIMWorld({ ...options, database }), kind);

export const acsOf = (providerId: string, base = BASE_URL) =>
  `${base}/sso/saml2/sp/acs/${providerId}`;
export const audienceOf = (providerId: string) => `https://app.example/${providerId}`;

/** What a tenant registers for a provider that speaks SAML, and logs people out as well. */
export const samlRegistration = (
  providerId: string,
  { entityID, certificate }: Pick<SamlProvider, "entityID" | "certificate">,
  more: object = {},
) => ({
  providerId,
  issuer: audienceOf(providerId),
  domain: "acme.example",
  samlConfig: {
    entryPoint: entityID,
    cert: certificate,
    wantAssertionsSigned: true,
    callbackUrl: "/welcome",
    idpMetadata: {
      entityID,
      singleLogoutService: ["POST", "Redirect"].map((binding) => ({
        Binding: `urn:oasis:names:tc:SAML:2.0:bindings:HTTP-${binding}`,
        Location: entityID,
      })),
    },
    mapping: { email: "email", name: "email" },
    ...more,
  },
});

/** The form that an identity provider makes a browser post: from its own site, naming no tenant. */
export const post = (
  browser: Browser,
  address: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
) =>
  browser.post(address, new URLSearchParams(fields).toString(), {
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: "https://acme.idp.example",
      ...headers,
    },
  });

/** What the provider sends of somebody who has not asked for it. */
export const unasked = (
  provider: SamlProvider,
  providerId: string,
  email = ADA,
  acs = acsOf(providerId),
  edit?: (assertion: string) => string,
) => provider.respond({ acs, audience: audienceOf(providerId), inResponseTo: "", email }, edit);

/** A provider that the application itself has for everybody, by SAML. */
export function sharedSaml(providerId: string, provider: SamlProvider) {
  const { samlConfig, issuer, ...rest } = samlRegistration(providerId, provider);
  return { ...rest, samlConfig: { ...samlConfig, issuer, spMetadata: { entityID: issuer } } };
}

/** Somebody has started with a provider that speaks SAML, and it is about to answer. */
export async function samlUnderWay(
  world: SSOWorld,
  where: Where,
  providerId: string,
  provider: SamlProvider,
  more: Partial<SamlAnswer> = {},
  edit?: (assertion: string) => string,
) {
  const browser = world.at("platform");
  const started = await world.start(where, providerId, browser);
  expect(started.status, JSON.stringify(started.data)).toBe(200);
  const { id: inResponseTo, relayState: RelayState = "" } = await requestIn(started.data.url);
  const [acs, audience] = [acsOf(providerId), audienceOf(providerId)];
  const given = { acs, audience, inResponseTo, email: ADA, ...more };
  const SAMLResponse = await provider.respond(given, edit);
  return { browser, form: { SAMLResponse, RelayState }, inResponseTo };
}
