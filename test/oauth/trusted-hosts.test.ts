import { describe, expect, it, onTestFinished } from "vitest";
import { tenantAuth } from "../../src/index";
import { isTrustedAddress, isTrustedHost } from "../../src/oauth/trusted-addresses";
import { createDatabase } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { createInstance } from "../support/instance";
import { fakeNetwork } from "../support/network";
import { queryOf } from "../support/social";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };

describe("trustedProviderHosts", () => {
  const trusted = [
    "gitlab.acme.example",
    "git.acme.example:8443",
    "*.corp.example",
    "*.ports.example:444",
    "10.0.0.7",
    "localhost:3001",
    "127.0.0.1:9000",
    "[::1]:8080",
  ];

  it.each([
    "https://gitlab.acme.example",
    "https://GITLAB.acme.example",
    "https://gitlab.acme.example/some/path",
    "https://git.acme.example:8443",
    "https://a.corp.example",
    "https://a.b.corp.example",
    "https://a.ports.example:444",
    "https://10.0.0.7",
    "https://localhost:3001",
    "http://localhost:3001",
    "http://127.0.0.1:9000/gitlab",
    "http://[::1]:8080",
    "https://gitlab.com",
  ])("%s is good", (address) => {
    expect(isTrustedAddress(address, ["gitlab.com"], trusted)).toBe(true);
  });

  it.each([
    "https://gitlab.acme.example:8443",
    "https://gitlab.acme.example:443",
    "https://a.gitlab.acme.example",
    "https://acme.example",
    "https://git.acme.example",
    "https://git.acme.example:844",
    "https://git.acme.example:84430",
    "https://corp.example",
    "https://acorp.example",
    "https://a.corp.example:8443",
    "https://a.corp.example.evil.example",
    "https://.corp.example",
    "https://a.ports.example",
    "http://gitlab.acme.example",
    "http://a.corp.example",
    "http://10.0.0.7",
    "https://167772167",
    "https://0x0a000007",
    "https://10.7",
    "https://10.0.0.007",
    "http://localhost",
    "http://localhost:3002",
    "http://localhost.:3001",
    "http://127.0.0.1",
    "http://127.1:9000",
    "http://2130706433:9000",
    "http://[::ffff:127.0.0.1]:9000",
    "http://[0:0:0:0:0:0:0:1]:8080",
    "http://[::1]",
    "http://gitlab.com",
    "ftp://localhost:3001",
  ])("%s is not", (address) => {
    expect(isTrustedAddress(address, ["gitlab.com"], trusted)).toBe(false);
  });

  it.each([
    "https://gitlab.com/evil",
    "https://GitLab.com/evil",
    "https://gitlab.com/a/b",
    "https://b2c.example",
    "https://evil.b2c.example.evil.example/directory",
  ])("%s is no address of the provider's own", (address) => {
    expect(isTrustedAddress(address, ["gitlab.com", "*.b2c.example/*"], trusted)).toBe(false);
  });

  it("a path on the provider's own hosts is good where the table says so", () => {
    const isGood = (address: string) => isTrustedAddress(address, ["*.b2c.example/*"], []);
    expect(isGood("https://acme.b2c.example/directory")).toBe(true);
    expect(isGood("https://acme.b2c.example")).toBe(true);
  });

  it("a bare host is one that https leads to", () => {
    const isGood = (host: string) => isTrustedHost(host, ["*.own.example"], trusted);
    expect(["a.own.example", "a.corp.example", "git.acme.example:8443"].filter(isGood)).toEqual([
      "a.own.example",
      "a.corp.example",
      "git.acme.example:8443",
    ]);
    expect(["own.example", "a.corp.example/", "a.corp.example/x", ""].filter(isGood)).toEqual([]);
  });

  it.each([
    "",
    "*",
    "*.",
    ".example.com",
    "example.com.",
    "exa mple.com",
    "Example.com",
    "https://example.com",
    "example.com/gitlab",
    "user@example.com",
    "example.com:",
    "example.com:99999",
    "example.com:443",
    "example.com:08443",
    "a.*.example.com",
    "*example.com",
    "*.*.example.com",
    "*.127.0.0.1",
    "2130706433",
    "0x7f.1",
    "127.1",
    "::1",
    "[::ffff:127.0.0.1]",
    "[:::::]",
    "[0:0:0:0:0:0:0:1]",
    "b\u00fccher.example",
    "exa_mple.com",
    "example..com",
    "example.com,example.org",
  ])("%j is refused at start", (entry) => {
    expect(() => tenantAuth({ trustedProviderHosts: ["good.example", entry] })).toThrow(
      /trustedProviderHosts/,
    );
  });

  it.each(["example.com", [1], [null], {}])("so is %j", (value) => {
    expect(() => tenantAuth({ trustedProviderHosts: value as string[] })).toThrow(
      /trustedProviderHosts/,
    );
  });

  it("an installation on loopback can be used over http, from end to end", async () => {
    const idp = await startIdentityProvider();
    idp.registerClient(CLIENT.clientId, CLIENT.clientSecret);
    idp.addPerson("alice");
    const instance = await createInstance({
      tenant: { trustedProviderHosts: [new URL(idp.issuer).host] },
    });
    const { id: tenantId } = await instance.createTenant();
    const options = { issuer: idp.issuer };
    const body = { tenantId, providerId: "gitlab", ...CLIENT, options };
    await instance.api.registerTenantOAuthConfig({ body });
    const browser = instance.browser();
    const start = { tenantId, provider: "gitlab", callbackURL: "/welcome" };
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", start);
    const back = await browser.get(await idp.authorize(data.url, "alice"));
    expect(back.location).toBe("/welcome");
    expect(idp.exchanges()).toHaveLength(1);
  });
});

describe("a config that was stored while its host was trusted", () => {
  const GLOBAL = { clientId: "global-client", clientSecret: "global-client-secret" };

  /** Two servers on one database: one of yesterday that trusts the host, and one of today. */
  async function createServers() {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    const open = (trustedProviderHosts: string[]) =>
      createInstance({
        database,
        tenant: { trustedProviderHosts },
        auth: { socialProviders: { gitlab: GLOBAL } },
      });
    const yesterday = await open(["gitlab.acme.example"]);
    const today = await open(["other.acme.example"]);
    const { id: tenantId } = await yesterday.createTenant();
    const options = { issuer: "https://gitlab.acme.example" };
    await yesterday.api.registerTenantOAuthConfig({
      body: { tenantId, providerId: "gitlab", ...CLIENT, options },
    });
    const sent = fakeNetwork();
    const flow = { tenantId, provider: "gitlab", errorCallbackURL: "/failed" };
    return { yesterday, today, tenantId, sent, flow };
  }

  it("starts no sign-in, on any path", async () => {
    const { yesterday, today, tenantId, sent, flow } = await createServers();
    expect((await yesterday.browser().post("/tenant/sign-in/social", flow)).status).toBe(200);
    const before = await today.rows("verification");
    const named = today.browser({ "x-tenant-id": tenantId });
    const person = (await today.signUp(tenantId)).browser;
    const answers = [
      await today.browser().post("/tenant/sign-in/social", flow),
      await named.post("/sign-in/social", { provider: "gitlab" }),
      await person.post("/link-social", { provider: "gitlab" }),
    ];
    for (const { status, code, location, data } of answers) {
      expect([status, code, location]).toEqual([400, "UNTRUSTED_PROVIDER_HOST", null]);
      expect(JSON.stringify(data)).not.toMatch(/gitlab\.acme\.example|global/);
    }
    expect(await today.rows("verification")).toBe(before);
    expect(sent).toEqual([]);
  });

  it("ends a sign-in that is on its way, before a code leaves", async () => {
    const { yesterday, today, sent, flow } = await createServers();
    const browser = yesterday.browser();
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", flow);
    const { state = "" } = queryOf(data.url);
    const way = today.browser();
    for (const [name, value] of browser.cookies) way.cookies.set(name, value);
    const back = await way.get("/tenant/callback/gitlab", { query: { code: "good", state } });
    expect([back.status, back.location]).toEqual([302, "/failed?error=untrusted_provider_host"]);
    expect(sent).toEqual([]);
    expect([await today.rows("user"), await today.rows("session")]).toEqual([0, 0]);
  });

  it("is not offered, and the global provider does not stand in", async () => {
    const { yesterday, today, tenantId, sent } = await createServers();
    const offered = async ({ browser }: typeof today) =>
      (await browser().get("/tenant/sign-in-methods", { query: { tenantId } })).data.providers;
    expect(await offered(yesterday)).toEqual([{ id: "gitlab", name: "Gitlab" }]);
    expect(await offered(today)).toEqual([]);
    expect(sent).toEqual([]);
  });

  it("is listed, says what is wrong when it is checked, and can be mended", async () => {
    const { today, tenantId, sent, flow } = await createServers();
    const [config] = await today.api.listTenantOAuthConfigs({ query: { tenantId } });
    expect(config).toMatchObject({
      readable: true,
      options: { issuer: "https://gitlab.acme.example" },
    });
    const body = { tenantId, providerId: "gitlab" };
    const check = await today.api.checkTenantOAuthConfig({ body });
    expect(check).toMatchObject({
      ok: false,
      findings: [{ subject: "options", ok: false, code: "UNTRUSTED_PROVIDER_HOST" }],
    });
    expect(sent).toEqual([]);
    const options = { issuer: "https://other.acme.example" };
    const { clientSecret } = CLIENT;
    await today.api.updateTenantOAuthConfig({ body: { ...body, options, clientSecret } });
    const start = await today.browser().post<{ url: string }>("/tenant/sign-in/social", flow);
    expect(new URL(start.data.url).host).toBe("other.acme.example");
  });
});
