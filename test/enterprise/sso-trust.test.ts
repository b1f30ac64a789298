import type { BetterAuthPlugin } from "better-auth";
import { createAuthEndpoint, createAuthMiddleware } from "better-auth/api";
import { oauthPopup } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import { createSamlProvider } from "../../src/testing/saml";
import type { Answer } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { expectRefused, type Hosts, outcome, SUBDOMAINS } from "../support/world";
import {
  ADA,
  CLIENT_SECRET,
  createSSOWorld,
  hostOf,
  post,
  samlRegistration,
  shareSSOWorld,
} from "./world";

/*
 * A host of `trustedProviderHosts` is where identity providers are, and no place that anybody is sent
 * to or comes from: not in a tenant, and not on the platform.
 */

const provider = await startIdentityProvider();
const { issuer } = provider;
const idp = await createSamlProvider("https://idp.example");
const PAGE = `${issuer}/page`;
provider.rules.discovery = {
  issuer,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${issuer}/oauth/token`,
  token_endpoint_auth_methods_supported: ["client_secret_post"],
  userinfo_endpoint: `${issuer}/api/v4/user`,
  jwks_uri: `${issuer}/jwks`,
};

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

  it("is asked for its endpoints, signs people in, and may be changed", async () => {
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
    expect(outcome(popup)).toEqual([403, "INVALID_ORIGIN"]);
  });

  it("takeover: is none that SAML leads to, with a relay state or what was registered", async () => {
    const admin = world.at(place, await world.as("admin", place));
    const query = { RelayState: PAGE };
    const [acs, slo] = ["acs", "slo"].map(
      (name) => `${world.context.baseURL}/sso/saml2/sp/${name}/saml`,
    );
    const SAMLResponse = await idp.respond({
      acs: `${acs}`,
      audience: "https://app.example/saml",
      inResponseTo: "",
      email: ADA,
    });
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

it("the resolver is asked for hosts of the provider that is used, however many are stored", async () => {
  const asked = new Set<string>();
  const world = await createSSOWorld({
    provider,
    hosts: SUBDOMAINS,
    sso: { providersLimit: 100 },
    tenant: {
      resolveTenantId: (ctx) => {
        const host = ctx.headers?.get("host") ?? "";
        if (host.endsWith(".idp.example")) asked.add(host);
        return SUBDOMAINS.resolveTenantId?.(ctx);
      },
    },
  });
  const askedBy = async (call: Promise<Answer<unknown>>) => {
    asked.clear();
    return [(await call).status, ...asked];
  };
  const admin = await world.as("admin", "platform");
  const endpoints = (host: string) => ({
    ...world.oidc("okta").oidcConfig,
    authorizationEndpoint: `https://${host}/authorize`,
    tokenEndpoint: `https://${host}/token`,
    jwksEndpoint: `https://${host}/jwks`,
  });
  for (let i = 0; i < 30; i++) {
    const host = `c${i}.idp.example`;
    await world.register("platform", {
      providerId: `c${i}`,
      issuer: `https://${host}`,
      domain: `c${i}.example, c${i}.org`,
      oidcConfig: endpoints(host),
    });
  }
  for (const by of [
    ["email", "ada@c3.org"],
    ["domain", "hr.C3.org"],
  ]) {
    expect(await askedBy(world.start("platform", Object.fromEntries([by])))).toEqual([
      200,
      "c3.idp.example",
    ]);
  }
  expect(await askedBy(world.start("platform", { email: "ada@ac3.org" }))).toEqual([404]);
  expect(await askedBy(admin.get("/sso/providers"))).toEqual([200]);
  // What a caller writes down is limited as before.
  const many = Array.from({ length: 21 }, (_, i) => `https://d${i}.idp.example`);
  const body = { providerId: "c1", oidcConfig: { ...endpoints("c1.idp.example"), many } };
  expectRefused(await admin.post("/sso/update-provider", body), 400, "VALIDATION_ERROR");
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

describe("takeover: what an administrator of a tenant writes runs in nobody's browser", () => {
  const world = shareSSOWorld({ plugins: [headers] });
  const register = async (providerId: string, more: object) =>
    (await world.as("admin", "globex")).post(
      "/sso/register",
      samlRegistration(providerId, idp, more),
    );

  it("as the metadata of SAML, which anybody may be sent to", async () => {
    const script = '<script xmlns="http://www.w3.org/1999/xhtml">alert(document.domain)</script>';
    const metadata = `<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://app.example/x">${script}<md:SPSSODescriptor AuthnRequestsSigned="false" WantAssertionsSigned="true" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><md:AssertionConsumerService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://app.example/acs" isDefault="true" index="0"/></md:SPSSODescriptor></md:EntityDescriptor>`;
    expect((await register("globex-xml", { spMetadata: { metadata } })).status).toBe(200);
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

  it("as the address that somebody signs in at", async () => {
    const script = "javascript:alert(document.domain)//";
    const service = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
    const services = [{ Binding: service, Location: ` ${script}` }];
    const configs = [
      { entryPoint: script },
      { entryPoint: "data:text/html,hello" },
      { idpMetadata: { entityID: "https://idp.example", singleSignOnService: services } },
    ];
    for (const [index, config] of configs.entries()) {
      expect((await register(`globex-${index}`, config)).status).toBe(200);
      const started = await world.start("globex", `globex-${index}`);
      expectRefused(started, 400, "INVALID_PROVIDER_ADDRESS");
    }
  });
});
