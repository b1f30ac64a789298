import { webcrypto } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import { type SCIMOptions, scim } from "@better-auth/scim";
import { type SSOOptions, sso } from "@better-auth/sso";
import * as x509 from "@peculiar/x509";
import * as saml from "samlify";
import { expect } from "vitest";
import { runInTenant } from "../../src/index";
import type { Browser } from "../support/browser";
import type { DatabaseKind } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL } from "../support/instance";
import { createWorld, type Send, shareMade, type Where, type WorldOptions } from "../support/world";

export const CLIENT_SECRET = "a client secret nobody may see";

/** Whom the identity providers know. */
export const ADA = "ada@acme.example";

type Provider = Awaited<ReturnType<typeof startIdentityProvider>>;

export interface SSOWorldOptions extends WorldOptions {
  sso?: SSOOptions | ((provider: Provider) => SSOOptions);
  trustedOrigins?: string[];
  /** An identity provider that is there already. */
  provider?: Provider;
}

export type SSOWorld = Awaited<ReturnType<typeof createSSOWorld>>;

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

/** The options of an instance with sso(), whose administrators of tenants may manage providers. */
export function withSSO(provider: Provider, options: Omit<SSOWorldOptions, "provider">) {
  const { sso: given, trustedOrigins = [], plugins = [], auth, tenant, ...rest } = options;
  const ssoPlugin = sso(typeof given === "function" ? given(provider) : given);
  return {
    ...rest,
    auth: { ...auth, trustedOrigins: [provider.issuer, ...trustedOrigins] },
    tenant: {
      scopedModels: ["ssoProvider"],
      tenantRoles: { admin: ["sso:*" as const] },
      ...tenant,
    },
    plugins: (send: Send) => [
      ssoPlugin,
      ...(typeof plugins === "function" ? plugins(send) : plugins),
    ],
  };
}

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
  const start = (
    where: Where,
    by: string | Record<string, string>,
    browser: Browser = world.at("platform"),
  ) =>
    browser.post<{ url: string }>(
      "/sign-in/sso",
      {
        callbackURL: "/welcome",
        errorCallbackURL: "/failed",
        ...(typeof by === "string" ? { providerId: by } : by),
      },
      { headers: world.naming(where) },
    );

  /** The address that leads back, once somebody has agreed at the provider. */
  async function underWay(
    where: Where,
    by: string | Record<string, string>,
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
      by: string | Record<string, string>,
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

interface SCIMWorldOptions extends WorldOptions {
  scim?: Partial<SCIMOptions>;
}

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

  add = (name: string) => this.browser.post<SCIMResource>("/scim/v2/Users", person(name));
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

/** A world whose tenants can have directories. */
export async function createSCIMWorld(options: SCIMWorldOptions = {}) {
  const { scim: scimOptions, plugins = [], tenant, ...rest } = options;
  const plugin = scim({
    connections: [],
    managedConnections: { credentialHashSecret: "a secret that hashes the tokens of directories" },
    ...scimOptions,
  });
  const world = await createWorld({
    ...rest,
    plugins: (send) => [plugin, ...(typeof plugins === "function" ? plugins(send) : plugins)],
    tenant: { scopedModels: SCIM_MODELS, ...tenant },
  });
  const api = world.api as typeof world.api & (typeof plugin)["endpoints"];

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
    const { token } = await runInTenant(tenantId, () =>
      api.createSCIMManagedConnection({
        body: {
          creationRequestId: `connection-of-${tenantId}-${Math.random()}`,
          provisioningDomainId: `domain-of-${tenantId}`,
          actorId: "the application",
          scopes: scopes.map((scope) => `scim.${scope}` as const),
          expiresAt: new Date(Date.now() + 3_600_000),
        },
      }),
    );
    return directory(token);
  }

  return {
    ...world,
    directory,
    connect,

    /** The addresses of a place's people. */
    emails: async (where: Where) =>
      (await world.rowsIn(where, "user")).map(({ email }) => email).sort(),
  };
}

/** One such world for all tests of a database. */
export const shareSCIMWorld = (options: SCIMWorldOptions = {}, kind?: DatabaseKind): SCIMWorld =>
  shareMade((database) => createSCIMWorld({ ...options, database }), kind);

/*
 * A stand-in identity provider that speaks SAML, made with the library that better-auth's package
 * itself uses. Its responses are really signed.
 */

x509.cryptoProvider.set(webcrypto as Crypto);

const RSA = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 2048,
};

async function makeKeys(name: string) {
  const keys = await webcrypto.subtle.generateKey(RSA, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: `CN=${name}`,
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
    signingAlgorithm: RSA,
    keys,
  });
  const exported = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  const privateKey = x509.PemConverter.encode(exported, "PRIVATE KEY");
  return { privateKey, certificate: certificate.toString("pem") };
}

export type SamlProvider = Awaited<ReturnType<typeof createSamlProvider>>;

export async function createSamlProvider(name: string) {
  const entityID = `https://${name}.idp.example/metadata`;
  return {
    name,
    entityID,
    entryPoint: `https://${name}.idp.example/sso`,
    keys: await makeKeys(name),
  };
}

/** What a response is made of; what is left out is as it should be. */
export interface SamlResponse {
  /** The provider that it is for, as the application knows it. */
  providerId: string;
  /** The id of the request that it answers; none for a sign-in that the provider starts. */
  inResponseTo?: string;
  email?: string;
  emailVerified?: boolean;
  assertionId?: string;
  /** Another provider, which signs in this one's name. */
  signedBy?: SamlProvider;
}

export const acsOf = (providerId: string) => `${BASE_URL}/sso/saml2/sp/acs/${providerId}`;
const audienceOf = (providerId: string) => `https://app.example/${providerId}`;
export const sloOf = (providerId: string) => `${BASE_URL}/sso/saml2/sp/slo/${providerId}`;

const at = (binding: string, Location: string) => ({
  Binding: `urn:oasis:names:tc:SAML:2.0:bindings:${binding}`,
  Location,
});

const attribute = (name: string) => ({
  name,
  valueTag: name,
  nameFormat: "urn:oasis:names:tc:SAML:2.0:attrname-format:basic",
  valueXsiType: "xs:string",
});

/** Both sides of what is said, as the library wants them. */
export const parties = (
  { entityID, entryPoint }: SamlProvider,
  providerId: string,
  { certificate, privateKey }: SamlProvider["keys"],
) => ({
  idp: saml.IdentityProvider({
    entityID,
    signingCert: certificate,
    privateKey,
    isAssertionEncrypted: false,
    requestSignatureAlgorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    singleSignOnService: [at("HTTP-POST", entryPoint)],
    singleLogoutService: [at("HTTP-POST", entryPoint)],
    loginResponseTemplate: {
      context: saml.SamlLib.defaultLoginResponseTemplate.context,
      attributes: [attribute("email"), attribute("displayName"), attribute("verified")],
    },
  }),
  sp: saml.ServiceProvider({
    entityID: audienceOf(providerId),
    wantAssertionsSigned: true,
    wantLogoutRequestSigned: true,
    assertionConsumerService: [at("HTTP-POST", acsOf(providerId))],
    singleLogoutService: [at("HTTP-POST", sloOf(providerId))],
  }),
});

/** Fills a template of the library's. */
export const filledWith =
  (values: Record<string, string>, change = (text: string) => text) =>
  (template: string) => ({
    id: values.ID,
    context: change(saml.SamlLib.replaceTagsByValue(template, values)),
  });

/** What a provider makes a browser post, in base64. */
export async function respond(provider: SamlProvider, response: SamlResponse): Promise<string> {
  const { providerId, inResponseTo = "", email = ADA } = response;
  const [acs, audience] = [acsOf(providerId), audienceOf(providerId)];
  const { idp, sp } = parties(provider, providerId, (response.signedBy ?? provider).keys);
  const now = new Date().toISOString();
  const soon = new Date(Date.now() + 300_000).toISOString();
  const values = {
    ID: `_response-${webcrypto.randomUUID()}`,
    AssertionID: response.assertionId ?? `_assertion-${webcrypto.randomUUID()}`,
    Destination: acs,
    Audience: audience,
    SubjectRecipient: acs,
    Issuer: provider.entityID,
    IssueInstant: now,
    AssertionConsumerServiceURL: acs,
    EntityID: audience,
    StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success",
    ConditionsNotBefore: now,
    ConditionsNotOnOrAfter: soon,
    SubjectConfirmationDataNotOnOrAfter: soon,
    NameIDFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    NameID: email,
    InResponseTo: inResponseTo,
    AuthnStatement: "",
    attrEmail: email,
    attrDisplayName: "Ada",
    attrVerified: String(response.emailVerified ?? false),
  };
  const withoutEmptyAnswer = (text: string) =>
    inResponseTo ? text : text.replace(/ InResponseTo="[^"]*"/g, "");
  const { context } = await idp.createLoginResponse(sp, {} as never, "post", { email }, {
    customTagReplacement: filledWith(values, withoutEmptyAnswer),
  } as never);
  return context;
}

/** The id of the request that a sign-in has started with. */
export function requestIn(address: string) {
  const { searchParams } = new URL(address);
  const request = Buffer.from(searchParams.get("SAMLRequest") ?? "", "base64");
  const [, id = ""] = /\bID="([^"]+)"/.exec(inflateRawSync(request).toString()) ?? [];
  return { id, relayState: searchParams.get("RelayState") ?? "" };
}

/** What a tenant registers for a provider, which logs people out as well. */
export const samlRegistration = (
  providerId: string,
  { name, entityID, entryPoint, keys }: SamlProvider,
  more: object = {},
) => ({
  providerId,
  issuer: audienceOf(providerId),
  domain: `${name}.example`,
  samlConfig: {
    entryPoint,
    cert: keys.certificate,
    wantAssertionsSigned: true,
    callbackUrl: "/welcome",
    idpMetadata: {
      entityID,
      singleLogoutService: [at("HTTP-POST", entryPoint), at("HTTP-Redirect", entryPoint)],
    },
    mapping: { email: "email", name: "displayName", emailVerified: "verified" },
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
