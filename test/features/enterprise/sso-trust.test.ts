import dns from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { oauthPopup } from "better-auth/plugins";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import { makeDiscovery, startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import { fakeNetwork } from "../../support/providers";
import { expectRefused, type Hosts, outcome, SUBDOMAINS } from "../../support/world";
import {
  ADA,
  CLIENT_SECRET,
  createSSOWorld,
  hostOf,
  oidc,
  post,
  samlRegistration,
  shareSSOWorld,
  unasked,
} from "./world";

/*
 * A host of `trustedProviderHosts` is where identity providers are, and no place that anybody is sent
 * to or comes from: not in a tenant, and not on the platform.
 */

const provider = await startIdentityProvider();
const { issuer } = provider;
const idp = await createSamlProvider("https://idp.example");
const PAGE = `${issuer}/page`;
provider.rules.discovery = makeDiscovery(issuer);

/** Nothing is known of it but where it says what it is. */
function discovered(providerId: string, at = issuer) {
  provider.registerClient(providerId, CLIENT_SECRET);
  const oidcConfig = { clientId: providerId, clientSecret: CLIENT_SECRET, pkce: true };
  return { providerId, issuer: at, domain: "acme.example", oidcConfig };
}

/** What an application asks better-auth by itself, while its own and better-auth's endpoints run. */
const asked: boolean[] = [];
const asking = {
  id: "asking",
  endpoints: { leave: createAuthEndpoint("/leave", { method: "GET" }, async () => ({})) },
  hooks: {
    before: [
      {
        matcher: ({ path }: { path?: string }) => path === "/leave" || path === "/sign-in/sso",
        handler: createAuthMiddleware(async ({ context }) => {
          asked.push(context.isTrustedOrigin(PAGE));
          asked.push(context.isTrustedOrigin(PAGE, { allowRelativePaths: false }));
        }),
      },
    ],
  },
};

const WAYS: [way: string, place: "acme" | "platform", hosts?: Hosts][] = [
  ["a tenant by header", "acme"],
  ["a tenant by host", "acme", SUBDOMAINS],
  ["the platform", "platform"],
  ["the platform by host", "platform", SUBDOMAINS],
];

describe.each(WAYS)("the host of an identity provider, in %s", (_, place, hosts) => {
  const world = shareSSOWorld({
    provider,
    ...(hosts && { hosts }),
    sso: { saml: { enableSingleLogout: true, allowIdpInitiated: true } },
    tenant: {
      ...(hosts && { resolveTenantId: hosts.resolveTenantId }),
      trustedProviderHosts: [hostOf(provider), "idp.example"],
    },
    plugins: [asking, oauthPopup()],
  });
  beforeAll(async () => {
    await world.register(place, discovered("okta"));
    await world.register(place, samlRegistration("saml", idp, { callbackUrl: PAGE }));
  });

  it("is asked for its endpoints, signs users in, and may be changed", async () => {
    const { browser, back } = await world.underWay(place, "okta", world.at(place));
    expect((await browser.get(back.href)).location).toBe("/welcome");
    const here = { email: ADA, tenantId: world.ids[place] };
    expect(await world.whoIs(browser, place)).toMatchObject(here);
    await world.register(place, discovered("other"));
    const oidcConfig = { clientSecret: CLIENT_SECRET, tokenEndpoint: `${issuer}/token` };
    const body = { providerId: "other", oidcConfig };
    const admin = await world.as("admin", place);
    expect((await admin.post("/sso/update-provider", body)).status).toBe(200);
  });

  it.each([
    ["/request-password-reset", "redirectTo", "INVALID_REDIRECT_URL"],
    ["/sign-in/email", "callbackURL", "INVALID_CALLBACK_URL"],
    ["/sign-in/sso", "callbackURL", "INVALID_CALLBACK_URL"],
    ["/sign-in/sso", "errorCallbackURL", "INVALID_ERROR_CALLBACK_URL"],
    ["/sign-in/sso", "newUserCallbackURL", "INVALID_NEW_USER_CALLBACK_URL"],
    ["/sso/register", "callbackURL", "INVALID_CALLBACK_URL"],
  ])("takeover: is none that %s leads to, with its %s", async (path, name, code) => {
    const { email } = await world.as("admin", place);
    const body = { callbackURL: "/", email, password: "x", ...discovered("more"), [name]: PAGE };
    await world.unchanged(async () => {
      expectRefused(await world.at(place).post(path, body), 403, code);
    });
  });

  it("takeover: is no origin of requests or popups", async () => {
    const admin = await world.as("admin", place);
    const headers = { origin: issuer };
    for (const [path, body] of [
      ["/update-user", { name: "Changed" }],
      ["/sso/register", discovered("more")],
      ["/sign-in/sso", { providerId: "okta", callbackURL: "/" }],
    ] as const) {
      expect(outcome(await admin.post(path, body, { headers }))).toEqual([403, "INVALID_ORIGIN"]);
    }
    const query = { provider: "google", popupOrigin: issuer };
    const popup = await admin.get("/oauth-popup/start", { query });
    const code = place === "platform" ? "INVALID_ORIGIN" : "PLATFORM_ONLY";
    expect(outcome(popup)).toEqual([403, code]);
  });

  it("takeover: is none that SAML leads to, with a relay state or what was registered", async () => {
    const admin = world.at(place, await world.as("admin", place));
    const query = { RelayState: PAGE };
    const [acs, slo] = ["acs", "slo"].map(
      (name) => `${world.context.baseURL}/sso/saml2/sp/${name}/saml`,
    );
    const SAMLResponse = await unasked(idp, "saml", ADA, acs);
    for (const { status, location } of [
      await admin.get(`${acs}`, { query }),
      await admin.get(`${slo}`, { query }),
      await post(world.at(place), `${acs}`, { SAMLResponse, ...query }),
    ]) {
      expect([status, location]).toEqual([302, expect.not.stringContaining(hostOf(provider))]);
    }
  });

  it("is one of a provider's only for better-auth, and only if the request names no such page", async () => {
    const before = asked.length;
    await world.at(place).get("/leave");
    for (const more of [{}, { query: { returnURL: PAGE } }, { headers: { origin: issuer } }]) {
      const body = { providerId: "okta", callbackURL: "/" };
      await world.at(place).post("/sign-in/sso", body, more);
    }
    const never = [false, false];
    expect(asked.slice(before)).toEqual([...never, true, false, ...never, ...never]);
  });

  it.each(["http://idp.example", "https://idp.example:8443", "https://a.idp.example"])(
    "is no other one: %s",
    async (at) => {
      const admin = await world.as("admin", place);
      const refused = await admin.post("/sso/register", discovered("more", at));
      expectRefused(refused, 400, "discovery_untrusted_origin");
      expect(world.logs.at(-1)).toContain("add its host to trustedProviderHosts");
    },
  );
});

describe("where tenants have hosts", () => {
  const second = issuer.replace("127.0.0.1", "localhost");
  const { oidcConfig, ...everybodys } = discovered("everybodys");
  const world = shareSSOWorld({
    provider,
    hosts: SUBDOMAINS,
    auth: { baseURL: "http://example.com", trustedOrigins: ["http://*.example.com"] },
    sso: {
      saml: { enableSingleLogout: true },
      defaultSSO: [
        {
          ...everybodys,
          oidcConfig: {
            ...oidcConfig,
            issuer,
            discoveryEndpoint: `${issuer}/.well-known/openid-configuration`,
          },
        },
      ],
    },
    tenant: { trustedProviderHosts: [hostOf(provider), new URL(second).host] },
  });

  it.each(["acme", "platform"] as const)(
    "the application's own provider says at %s where its endpoints are, also at a second host",
    async (place) => {
      for (const at of [issuer, second]) {
        provider.rules.discovery = {
          ...provider.rules.discovery,
          token_endpoint: `${at}/oauth/token`,
        };
        const { status, data } = await world.start(place, "everybodys");
        expect([status, JSON.stringify(data)]).toEqual([200, expect.stringContaining(issuer)]);
      }
    },
  );

  it("who signs out at a provider comes back to the tenant's own host, and to no other's", async () => {
    const admin = await world.as("admin", "acme");
    await admin.post("/sso/register", samlRegistration("acme-saml", idp));
    for (const [page, leadsThere] of [
      ["http://acme.example.com/bye", true],
      ["http://globex.example.com/bye", false],
    ] as const) {
      const query = { RelayState: page };
      const { location } = await world.at("platform").get("/sso/saml2/sp/slo/acme-saml", { query });
      expect([page, location?.startsWith(page)]).toEqual([page, leadsThere]);
    }
  });
});

/** A plugin that has a word on every answer: in a hook, and when the answer is made. */
const headers: BetterAuthPlugin = {
  id: "headers",
  hooks: {
    after: [
      {
        matcher: () => true,
        handler: createAuthMiddleware(async ({ setHeader }) => {
          setHeader("content-security-policy", "default-src *");
        }),
      },
    ],
  },
  onResponse: async (answer) => {
    const headers = new Headers(answer.headers);
    headers.set("x-seen", "yes");
    return { response: new Response(answer.body, { status: answer.status, headers }) };
  },
};

describe("takeover: what an administrator of a tenant writes runs in no browser", () => {
  const world = shareSSOWorld({ plugins: [headers] });
  const registerProvider = async (providerId: string, more: object) =>
    (await world.as("admin", "globex")).post(
      "/sso/register",
      samlRegistration(providerId, idp, more),
    );

  it("as the metadata of SAML, to which a link can lead any user", async () => {
    const script = '<script xmlns="http://www.w3.org/1999/xhtml">alert(document.domain)</script>';
    const metadata = `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://app.example/x">${script}<md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://app.example/acs" isDefault="true" index="0"/></md:SPSSODescriptor></md:EntityDescriptor>`;
    expect((await registerProvider("globex-xml", { spMetadata: { metadata } })).status).toBe(200);
    for (const place of ["platform", "globex"] as const) {
      const { headers, status } = await world
        .at(place)
        .get("/sso/saml2/sp/metadata", { query: { providerId: "globex-xml" } });
      expect(status).toBe(200);
      expect(headers.get("content-type")).toBe("application/xml");
      expect(headers.get("x-seen")).toBe("yes");
      expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-disposition")).toBe("attachment");
    }
  });

  it("as the address where a user signs in", async () => {
    const script = "javascript:alert(document.domain)//";
    const service = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
    const services = [{ Binding: service, Location: ` ${script}` }];
    const configs = [
      { entryPoint: script },
      { entryPoint: "data:text/html,hello" },
      { idpMetadata: { entityID: "https://idp.example", singleSignOnService: services } },
    ];
    for (const [index, config] of configs.entries()) {
      expect((await registerProvider(`globex-${index}`, config)).status).toBe(200);
      const started = await world.start("globex", `globex-${index}`);
      expectRefused(started, 400, "INVALID_PROVIDER_ADDRESS");
    }
  });
});

const APP = new URL(BASE_URL);

/** All the ways in which an application says that an address is its own, or one for its pages. */
const OWN: [option: string, auth: (origin: URL) => Partial<BetterAuthOptions>][] = [
  ["trustedOrigins", ({ origin }) => ({ trustedOrigins: [origin] })],
  ["a function for trustedOrigins", ({ origin }) => ({ trustedOrigins: async () => [origin] })],
  ["baseURL", ({ origin }) => ({ baseURL: origin, trustedOrigins: [APP.origin] })],
  [
    "allowedHosts",
    ({ host }) => ({
      baseURL: { allowedHosts: [APP.host, host], protocol: "http", fallback: APP.origin },
    }),
  ],
];

describe.each(OWN)("SSRF: an address that is the application's own by %s", (_, auth) => {
  const elsewhere = async (trusted: boolean) => {
    const vault = await startIdentityProvider();
    const at = vault.issuer;
    const endpoints = { authorization_endpoint: `${at}/oauth/authorize`, jwks_uri: `${at}/jwks` };
    vault.rules.discovery = { issuer: at, token_endpoint: `${at}/oauth/token`, ...endpoints };
    const trustedProviderHosts = trusted ? [hostOf(vault)] : [];
    const world = await createSSOWorld({
      provider: vault,
      auth: auth(new URL(at)),
      tenant: { trustedProviderHosts, tenantRoles: { admin: ["sso:*", "oauth-config:*"] } },
    });
    return { world, vault, admin: await world.as("admin", "acme") };
  };

  /** Everything that names an address, in the order in which an administrator would try it. */
  async function attempts({ world, vault, admin }: Awaited<ReturnType<typeof elsewhere>>) {
    const { oidcConfig, ...rest } = oidc(vault, "complete");
    await world.register("acme", oidc({ ...vault, issuer: "https://idp.example" }, "public"));
    // A page of it may be where the administrator comes from.
    const headers = { origin: vault.issuer };
    const answers = [
      await admin.post("/sso/register", discovered("some", vault.issuer)),
      await admin.post("/sso/register", discovered("more", vault.issuer), { headers }),
      await admin.post("/sso/register", { ...rest, oidcConfig }),
      await admin.post("/sso/update-provider", { providerId: "public", oidcConfig }),
    ];
    // One that is stored, from a time when its host was in the list.
    const stored = JSON.stringify({ ...oidcConfig, issuer: vault.issuer });
    await world.write("ssoProvider", { oidcConfig: stored }, { providerId: "public" });
    answers.push(await world.start("acme", "public"));
    answers.push(
      await admin.post("/tenant/oauth-config/register", {
        tenantId: world.ids.acme,
        providerId: "gitlab",
        clientId: "client-of-complete",
        clientSecret: CLIENT_SECRET,
        options: { issuer: vault.issuer },
      }),
    );
    return answers.map(outcome);
  }

  it("is not called for a tenant's administrator", async () => {
    const made = await elsewhere(false);
    expect(await attempts(made)).toEqual([
      [400, "discovery_untrusted_origin"],
      [400, "discovery_untrusted_origin"],
      [400, "discovery_private_host"],
      [400, "discovery_private_host"],
      [400, "discovery_private_host"],
      [400, "UNTRUSTED_PROVIDER_HOST"],
    ]);
    expect(made.vault.requests).toEqual([]);
  });

  it("is called where trustedProviderHosts has it", async () => {
    const made = await elsewhere(true);
    expect((await attempts(made)).map(([status]) => status)).toEqual(Array(6).fill(200));
    expect(made.vault.requests).not.toEqual([]);
  });
});

it("SSRF: a host below the application's own domain that leads into the network is not called", async () => {
  const { lookup } = dns;
  const resolve = async (host: string) => [
    { address: host.includes("internal") ? "10.0.0.5" : "93.184.215.14", family: 4 },
  ];
  Object.assign(dns, { lookup: resolve });
  syncBuiltinESMExports();
  onTestFinished(() => {
    Object.assign(dns, { lookup });
    syncBuiltinESMExports();
  });
  const allowedHosts = ["example.com", "*.example.com"];
  const world = await createSSOWorld({
    provider,
    hosts: SUBDOMAINS,
    auth: { baseURL: { allowedHosts, protocol: "http", fallback: "http://example.com" } },
  });
  const started: unknown[] = [];
  const sent = fakeNetwork(() => Response.json({}));
  for (const host of ["vault.internal.example.com", "idp.example.net"]) {
    const [providerId = ""] = host.split(".");
    const registration = oidc({ ...provider, issuer: `http://${host}` }, providerId);
    await (await world.as("admin", "acme")).post("/sso/register", registration);
    const browser = world.at("acme");
    const answer = await world.start("acme", providerId, browser);
    started.push(outcome(answer));
    const state = answer.data.url ? new URL(answer.data.url).searchParams.get("state") : "none";
    await browser.get(`/sso/callback/${providerId}`, { query: { code: "x", state: `${state}` } });
  }
  expect(started).toEqual([
    [400, "discovery_private_host"],
    [200, undefined],
  ]);
  expect([...new Set(sent.map(({ url }) => new URL(url).host))]).toEqual(["idp.example.net"]);
});

describe("SSRF: an address that better-fetch would change is refused when it is written", () => {
  const world = shareSSOWorld({ provider });
  const inner = `${issuer}/latest/meta-data`;
  const CHANGED = [
    `https://www.example.com/${inner}`,
    `https://www.example.com/${inner}/../../../../token`,
    "https://www.example.com//token",
    "https://www.example.com\\\\token",
    "https://www.example.com/a:b",
    "https://www.example.com/a%20b",
    "https://www.example.com/t\token",
    "https://ada:secret@www.example.com/token",
    "https:/www.example.com/token",
    "https://www.example.com/token?x",
    "https://www.example.com/token?",
    "https://www.example.com/token?a=b+c",
    "https://www.example.com/token?a=1?b=2",
    "https://www.example.com/token#f",
  ];
  const NAMES = ["tokenEndpoint", "userInfoEndpoint", "jwksEndpoint", "discoveryEndpoint"];

  it.each(CHANGED)("%j", async (address) => {
    const admin = await world.as("admin", "acme");
    const before = provider.requests.length;
    await world.unchanged(async () => {
      for (const name of NAMES) {
        const given = oidc(provider, "acme-changed");
        const body = { ...given, oidcConfig: { ...given.oidcConfig, [name]: address } };
        const refused = await admin.post("/sso/register", body);
        expectRefused(refused, 400, "INVALID_PROVIDER_ADDRESS");
      }
      const refused = await admin.post("/sso/register", discovered("acme-changed", address));
      expectRefused(refused, 400, "INVALID_PROVIDER_ADDRESS");
    });
    expect(provider.requests).toHaveLength(before);
  });

  it("also in an update, and in a discovery document; others are stored", async () => {
    const admin = await world.as("admin", "acme");
    const given = oidc(provider, "acme-good");
    const update = (tokenEndpoint: string) =>
      admin.post("/sso/update-provider", {
        providerId: "acme-good",
        oidcConfig: { clientSecret: CLIENT_SECRET, tokenEndpoint },
      });
    await world.register("acme", given);
    expectRefused(
      await update(`https://www.example.com/${inner}`),
      400,
      "INVALID_PROVIDER_ADDRESS",
    );
    for (const address of [
      "https://acme.b2clogin.com/acme.onmicrosoft.com/oauth2/v2.0/token?p=B2C_1_x&a=b%20c",
      "https://login.example.com:8443/realms/acme~1/protocol/openid-connect/token/",
      "https://login.example.com",
    ]) {
      expect((await update(address)).status).toBe(200);
    }
    const { discovery } = provider.rules;
    onTestFinished(() => {
      provider.rules.discovery = discovery;
    });
    provider.rules.discovery = { ...discovery, token_endpoint: `${issuer}/oauth/token` };
    await world.register("acme", discovered("acme-other"));
    provider.rules.discovery = { ...discovery, token_endpoint: `${issuer}/${inner}` };
    const refused = await admin.post("/sso/register", discovered("acme-more"));
    expectRefused(refused, 400, "discovery_untrusted_origin");
    expect(world.logs.at(-1)).toContain("that better-auth would change");
  });
});
