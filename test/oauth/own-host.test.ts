import { beforeEach, describe, expect, it } from "vitest";
import type { OAuthConfigCheck, TenantOAuthConfig } from "../../src/index";
import { arrivedAt, build, callbackPath } from "../../src/oauth/provider";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL, createInstance } from "../support/instance";
import { fakeNetwork } from "../support/network";
import { shareInstance } from "../support/shared";
import { queryOf } from "../support/social";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-client-secret" };
const POOL = { region: "eu-west-1", userPoolId: "eu-west-1_Acme" };
const GITLAB = { providerId: "gitlab", options: { issuer: "https://gitlab.acme.example/git" } };

const shared = shareInstance({
  tenant: { trustedProviderHosts: ["*.acme.example"] },
  auth: {
    socialProviders: {
      paybin: { ...CLIENT, clientId: "global", issuer: "https://paybin.global.example/" },
    },
  },
});

let tenantId: string;

beforeEach(async () => {
  tenantId = (await shared.instance.createTenant()).id;
});

type Body = { message?: string } & TenantOAuthConfig;

const register = (config: object) =>
  shared.operator.post<Body>("/tenant/oauth-config/register", { tenantId, ...CLIENT, ...config });
const update = (changes: object) =>
  shared.operator.post<Body>("/tenant/oauth-config/update", { tenantId, ...changes });
const check = (config: object) =>
  shared.operator.post<OAuthConfigCheck>("/tenant/oauth-config/check", { tenantId, ...config });
const list = async () =>
  (await shared.operator.get<Body[]>("/tenant/oauth-config/list", { query: { tenantId } })).data;
const start = (provider: string, errorCallbackURL = "/failed") =>
  shared.instance
    .browser()
    .post<{ url: string }>("/tenant/sign-in/social", { tenantId, provider, errorCallbackURL });

/** Every place that tells the redirect URI of a stored config, and where a sign-in sends it. */
async function redirectURIs(providerId: string) {
  fakeNetwork();
  const [listed] = await list();
  const checked = await check({ providerId });
  const started = await start(providerId);
  return [listed?.callbackURL, checked.data.redirectURI, queryOf(started.data.url).redirect_uri];
}

describe("a provider on a host that the tenant brought", () => {
  it.each<[string, Record<string, unknown>]>([
    ["gitlab", { issuer: "https://gitlab.acme.example" }],
    ["gitlab", { issuer: "https://gitlab.acme.example/git/" }],
    ["paybin", { issuer: "https://idp.acme.example" }],
    ["microsoft", { authority: "https://login.acme.example/adfs", tenantId: "acme" }],
    ["cognito", { domain: "login.acme.example", ...POOL }],
    ["salesforce", { loginUrl: "https://login.acme.example/" }],
  ])("%s with %j has a redirect URI of its own", async (providerId, options) => {
    const own = `${BASE_URL}/tenant/callback/${providerId}?tenant=${tenantId}`;
    expect((await register({ providerId, options })).data.callbackURL).toBe(own);
    expect(await redirectURIs(providerId)).toEqual([own, own, own]);
    const unsaved = await check({ providerId, options, ...CLIENT });
    expect(unsaved.data.redirectURI).toBe(own);
  });

  it.each<[string, Record<string, unknown> | undefined]>([
    ["gitlab", undefined],
    ["gitlab", { issuer: "https://gitlab.com/" }],
    ["google", { hd: "acme.example" }],
    ["microsoft", { authority: "https://acme.ciamlogin.com", tenantId: "acme" }],
    ["microsoft", { authority: "https://acme.b2clogin.com/acme.example", tenantId: "policy" }],
    ["cognito", { domain: "acme.auth.eu-west-1.amazoncognito.com", ...POOL }],
    ["salesforce", { loginUrl: "acme.my.salesforce.com" }],
    // The application's own choice of a host, which no tenant brought.
    ["paybin", undefined],
    ["paybin", { prompt: "login" }],
  ])("control: %s with %j has the one that tenants share", async (providerId, options) => {
    const usual = `${BASE_URL}/tenant/callback/${providerId}`;
    expect((await register({ providerId, options })).data.callbackURL).toBe(usual);
    expect(await redirectURIs(providerId)).toEqual([usual, usual, usual]);
  });

  it("update tells when the address changes", async () => {
    await register({ providerId: "gitlab" });
    const { data } = await update({ ...GITLAB, clientSecret: CLIENT.clientSecret });
    expect(data.callbackURL).toBe(`${BASE_URL}/tenant/callback/gitlab?tenant=${tenantId}`);
    const back = { options: null, clientSecret: CLIENT.clientSecret };
    const usual = await update({ providerId: "gitlab", ...back });
    expect(usual.data.callbackURL).toBe(`${BASE_URL}/tenant/callback/gitlab`);
  });

  it("an address that is wrong in other ways still gets the right redirect URI from check", async () => {
    const wrong = { issuer: "https://gitlab.com/", unheardOf: 1 };
    const { data } = await check({ providerId: "gitlab", ...CLIENT, options: wrong });
    expect([data.ok, data.redirectURI]).toEqual([false, `${BASE_URL}/tenant/callback/gitlab`]);
  });

  it("is signed in with that address, from end to end", async () => {
    const idp = await startIdentityProvider();
    idp.registerClient(CLIENT.clientId, CLIENT.clientSecret);
    idp.addPerson("alice");
    const trustedProviderHosts = [new URL(idp.issuer).host];
    const instance = await createInstance({ tenant: { trustedProviderHosts } });
    const { id } = await instance.createTenant();
    const options = { issuer: idp.issuer };
    const config = { tenantId: id, providerId: "gitlab", ...CLIENT, options };
    const { callbackURL } = await instance.api.registerTenantOAuthConfig({ body: config });
    const browser = instance.browser();
    const body = { tenantId: id, provider: "gitlab", callbackURL: "/welcome" };
    const { data } = await browser.post<{ url: string }>("/tenant/sign-in/social", body);
    const way = await idp.authorize(data.url, "alice");
    expect(queryOf(way)).toMatchObject({ tenant: id });
    expect((await browser.get(way)).location).toBe("/welcome");
    expect(idp.exchanges().map(({ params }) => params.redirect_uri)).toEqual([callbackURL]);
  });
});

describe("threat: mix-up: an overriding redirect URI of such a provider", () => {
  const BAD: [string, (id: string) => string][] = [
    ["names nobody", () => "https://proxy.example/back"],
    ["is the address that tenants share", () => `${BASE_URL}/tenant/callback/gitlab`],
    ["names another tenant", () => `${BASE_URL}/tenant/callback/gitlab?tenant=another`],
    ["names another tenant as well", (id) => `https://proxy.example/?tenant=${id}&tenant=another`],
    ["names another tenant before", (id) => `https://proxy.example/?tenant=another&tenant=${id}`],
    ["names it twice", (id) => `https://proxy.example/?tenant=${id}&tenant=${id}`],
    ["names more than the tenant", (id) => `https://proxy.example/?tenant=${id}0`],
    ["names it in other letters", (id) => `https://proxy.example/?Tenant=${id}`],
    ["names it in its path", (id) => `https://proxy.example/tenant=${id}`],
    ["names it as a request would", (id) => `https://proxy.example/?tenantId=${id}`],
  ];

  it.each(BAD)("that %s is refused by register, update and check", async (_, uri) => {
    const redirectURI = uri(tenantId);
    const refused = await register({ ...GITLAB, redirectURI });
    expect([refused.status, refused.code]).toEqual([400, "INVALID_REDIRECT_URI"]);
    expect(refused.data.message).toContain(`tenant=${tenantId}`);
    expect(await list()).toEqual([]);

    const { data: before } = await register(GITLAB);
    const changed = await update({ providerId: "gitlab", redirectURI });
    expect([changed.status, changed.code]).toEqual([400, "INVALID_REDIRECT_URI"]);
    expect(await list()).toEqual([before]);

    const sent = fakeNetwork();
    const { data } = await check({ ...GITLAB, ...CLIENT, redirectURI });
    expect([data.ok, data.redirectURI]).toEqual([false, redirectURI]);
    expect(data.findings).toMatchObject([{ subject: "options", code: "INVALID_REDIRECT_URI" }]);
    expect(sent).toEqual([]);
  });

  it.each(BAD)("control: that %s is good on the public host", async (_, uri) => {
    const redirectURI = uri(tenantId);
    const { status, data } = await register({ providerId: "gitlab", redirectURI });
    expect([status, data.callbackURL]).toEqual([200, redirectURI]);
    const clientSecret = CLIENT.clientSecret;
    const moved = await update({ ...GITLAB, clientSecret });
    expect([moved.status, moved.code]).toEqual([400, "INVALID_REDIRECT_URI"]);
  });

  it("is good with exactly the tenant's id, and is what a sign-in sends", async () => {
    const redirectURI = `https://proxy.example/back?from=gitlab&tenant=${tenantId}`;
    const { status, data } = await register({ ...GITLAB, redirectURI });
    expect([status, data.callbackURL]).toEqual([200, redirectURI]);
    expect(await redirectURIs("gitlab")).toEqual([redirectURI, redirectURI, redirectURI]);
    const other = `https://other.example/?tenant=${tenantId}`;
    const changed = await update({ providerId: "gitlab", redirectURI: other });
    expect([changed.status, changed.data.callbackURL]).toEqual([200, other]);
  });

  describe("that was stored before", () => {
    const store = async (redirectURI: string) => {
      await register(GITLAB);
      const { query, quote } = shared.instance.database;
      await query(
        `update ${quote("tenantOauthConfig")} set ${quote("redirectURI")} = ? where ${quote("tenantId")} = ?`,
        [redirectURI, tenantId],
      );
    };

    it("starts no sign-in, and is not offered", async () => {
      await store("https://proxy.example/back");
      const sent = fakeNetwork();
      const { status, code } = await start("gitlab");
      expect([status, code]).toEqual([400, "INVALID_REDIRECT_URI"]);
      const offered = await shared.instance
        .browser()
        .get<{ providers: { id: string }[] }>("/tenant/sign-in-methods", { query: { tenantId } });
      expect(offered.data.providers.map(({ id }) => id)).not.toContain("gitlab");
      expect(sent).toEqual([]);
    });

    it("control: is used when it names the tenant", async () => {
      await store(`https://proxy.example/back?tenant=${tenantId}`);
      expect((await start("gitlab")).status).toBe(200);
    });

    it("can be switched off, and mended", async () => {
      await store("https://proxy.example/back");
      expect((await update({ providerId: "gitlab", enabled: false })).status).toBe(200);
      const redirectURI = `https://proxy.example/back?tenant=${tenantId}`;
      const mended = await update({ providerId: "gitlab", enabled: true, redirectURI });
      expect([mended.status, mended.data.callbackURL]).toEqual([200, redirectURI]);
      expect((await start("gitlab")).status).toBe(200);
    });
  });
});

describe("whether a callback arrived where its flow was told to", () => {
  const usual = build("gitlab", CLIENT);
  const own = build("gitlab", CLIENT, "acme");

  it("the path has the tenant in its query, encoded", () => {
    expect(callbackPath("gitlab")).toBe("/tenant/callback/gitlab");
    expect(callbackPath("gitlab", "acme")).toBe("/tenant/callback/gitlab?tenant=acme");
    expect(callbackPath("gitlab", "a&b=c#d")).toBe("/tenant/callback/gitlab?tenant=a%26b%3Dc%23d");
    expect([usual.callbackPath, own.callbackPath]).toEqual([
      callbackPath("gitlab"),
      callbackPath("gitlab", "acme"),
    ]);
  });

  it.each([
    [usual, undefined, true],
    [usual, "acme", false],
    [usual, "", false],
    [own, "acme", true],
    [own, undefined, false],
    [own, "", false],
    [own, "globex", false],
    [own, "acme0", false],
    [own, "ACME", false],
    [own, "acme&tenant=acme", false],
    [own, "%61cme", false],
  ])("$0.callbackPath, reached with %j: %j", (provider, tenant, arrived) => {
    expect(arrivedAt(provider, "gitlab", tenant, null)).toBe(arrived);
    expect(arrivedAt(provider, "gitlab", tenant, undefined)).toBe(arrived);
    expect(arrivedAt(provider, "google", tenant, null)).toBe(false);
  });

  it("an id that a URL encodes arrives decoded", () => {
    const id = "a&b=c d/\u00e9";
    const odd = build("gitlab", CLIENT, id);
    const { searchParams } = new URL(`${BASE_URL}${odd.callbackPath}`);
    expect(arrivedAt(odd, "gitlab", searchParams.get("tenant") ?? undefined, null)).toBe(true);
  });

  it.each([
    ["https://proxy.example/back?tenant=acme", "acme", true],
    ["https://proxy.example/back?a=b&tenant=acme", "acme", true],
    ["https://proxy.example/back?tenant=%61cme", "acme", true],
    ["https://proxy.example/back?tenant=acme", "globex", false],
    ["https://proxy.example/back?tenant=acme", undefined, false],
    ["https://proxy.example/back", undefined, true],
    ["https://proxy.example/back", "acme", false],
    ["https://proxy.example/back", "", false],
    ["not an address", "acme", false],
  ])("overridden by %s, reached with %j: %j", (overridden, tenant, arrived) => {
    expect(arrivedAt(own, "gitlab", tenant, overridden)).toBe(arrived);
    expect(arrivedAt(usual, "gitlab", tenant, overridden)).toBe(arrived);
  });
});
