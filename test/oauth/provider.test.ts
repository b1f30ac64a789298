import { symmetricEncrypt } from "better-auth/crypto";
import { createAuthorizationURL, validateAuthorizationCode } from "better-auth/oauth2";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { arrivedAt, build, callbackPath } from "../../src/oauth/provider";
import { createDatabase } from "../support/database";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL } from "../support/instance";
import { fakeNetwork } from "../support/providers";
import {
  createWorld,
  expectRefused,
  type OAuthTenant,
  outcome,
  queryOf,
  shareWorld,
  type World,
} from "../support/world";

const CLIENT = { clientId: "acme-client", clientSecret: "acme-secret" };
const GITLAB = { providerId: "gitlab", options: { issuer: "https://gitlab.acme.example/git" } };

const world = shareWorld({
  tenant: { trustedProviderHosts: ["*.acme.example"] },
  auth: {
    socialProviders: {
      gitlab: { clientId: "global-client", clientSecret: "global-client-secret" },
      paybin: { ...CLIENT, clientId: "global", issuer: "https://paybin.global.example/" },
    },
  },
});
let acme: OAuthTenant;

beforeEach(async () => {
  acme = await world.oauthTenant();
});

const register = (config: object) => acme.register({ ...CLIENT, ...config });
const offeredAt = async ({ browser }: Pick<World, "browser">, tenantId: string) => {
  const { data } = await browser().get("/tenant/sign-in-methods", { query: { tenantId } });
  return data.providers;
};

describe("a provider on a host that the tenant brought", () => {
  const POOL = { region: "eu-west-1", userPoolId: "eu-west-1_Acme" };

  /** Every place that tells the redirect URI of a config, and where a sign-in sends it. */
  async function redirectURIs(providerId: string, options?: object, redirectURI?: string) {
    fakeNetwork();
    const registered = await register({ providerId, options, redirectURI });
    const [listed] = await acme.list();
    const checked = await acme.check({ providerId });
    const unsaved = await acme.check({ providerId, ...CLIENT, options, redirectURI });
    const { data } = await acme.start(providerId);
    const told = [registered.data.callbackURL, listed?.callbackURL, checked.data.redirectURI];
    return new Set([...told, unsaved.data.redirectURI, queryOf(data.url).redirect_uri]);
  }

  it.each<[string, Record<string, unknown>]>([
    ["gitlab", { issuer: "https://gitlab.acme.example" }],
    ["gitlab", { issuer: "https://gitlab.acme.example/git/" }],
    ["paybin", { issuer: "https://idp.acme.example" }],
    ["microsoft", { authority: "https://login.acme.example/adfs", tenantId: "acme" }],
    ["cognito", { domain: "login.acme.example", ...POOL }],
    ["salesforce", { loginUrl: "https://login.acme.example/" }],
  ])("%s with %j has a redirect URI of its own", async (providerId, options) => {
    const own = `${BASE_URL}/tenant/callback/${providerId}?tenant=${acme.id}`;
    expect(await redirectURIs(providerId, options)).toEqual(new Set([own]));
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
    expect(await redirectURIs(providerId, options)).toEqual(new Set([usual]));
  });

  it("update tells when the address changes, and check whatever else is wrong", async () => {
    const usual = `${BASE_URL}/tenant/callback/gitlab`;
    const { clientSecret } = CLIENT;
    await register({ providerId: "gitlab" });
    const own = await acme.update({ ...GITLAB, clientSecret });
    expect(own.data.callbackURL).toBe(`${usual}?tenant=${acme.id}`);
    const back = await acme.update({ providerId: "gitlab", options: null, clientSecret });
    expect(back.data.callbackURL).toBe(usual);
    const wrong = { issuer: "https://gitlab.com/", unheardOf: 1 };
    const { data } = await acme.check({ providerId: "gitlab", ...CLIENT, options: wrong });
    expect([data.ok, data.redirectURI]).toEqual([false, usual]);
  });

  it.each<[string, (id: string) => string]>([
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
  ])("threat: mix-up: has no overriding redirect URI that %s", async (_, uri) => {
    const redirectURI = uri(acme.id);
    const { clientSecret } = CLIENT;
    const sent = fakeNetwork();
    const refused = await register({ ...GITLAB, redirectURI });
    expectRefused(refused, 400, "INVALID_REDIRECT_URI");
    expect(refused.data.message).toContain(`tenant=${acme.id}`);
    expect(await acme.list()).toEqual([]);
    const { data: before } = await register(GITLAB);
    expectRefused(await acme.update({ ...GITLAB, redirectURI }), 400, "INVALID_REDIRECT_URI");
    expect(await acme.list()).toEqual([before]);
    const { data } = await acme.check({ ...GITLAB, ...CLIENT, redirectURI });
    expect([data.ok, data.redirectURI]).toEqual([false, redirectURI]);
    expect(data.findings).toMatchObject([{ subject: "options", code: "INVALID_REDIRECT_URI" }]);
    expect(sent).toEqual([]);

    // Control: on the public host it is good, and cannot move away with it.
    const good = await register({ providerId: "gitlab", redirectURI });
    expect([good.status, good.data.callbackURL]).toEqual([200, redirectURI]);
    expectRefused(await acme.update({ ...GITLAB, clientSecret }), 400, "INVALID_REDIRECT_URI");
  });

  it("has one with exactly the tenant's id, which is what a sign-in sends", async () => {
    const uri = `https://proxy.example/back?from=gitlab&tenant=${acme.id}`;
    expect(await redirectURIs("gitlab", GITLAB.options, uri)).toEqual(new Set([uri]));
    const redirectURI = `https://other.example/?tenant=${acme.id}`;
    const changed = await acme.update({ providerId: "gitlab", redirectURI });
    expect([changed.status, changed.data.callbackURL]).toEqual([200, redirectURI]);
  });

  it("with a bad one that was stored before signs nobody in, until it is mended", async () => {
    await register(GITLAB);
    await acme.spoil("redirectURI", "https://proxy.example/back");
    const sent = fakeNetwork();
    expectRefused(await acme.start("gitlab"), 400, "INVALID_REDIRECT_URI");
    expect(JSON.stringify(await offeredAt(world, acme.id))).not.toContain("gitlab");
    expect((await acme.update({ providerId: "gitlab", enabled: false })).status).toBe(200);
    const redirectURI = `https://proxy.example/back?tenant=${acme.id}`;
    const mended = await acme.update({ providerId: "gitlab", enabled: true, redirectURI });
    expect(mended.status).toBe(200);
    expect((await acme.start("gitlab")).status).toBe(200);
    await acme.spoil("redirectURI", `https://proxy.example/?tenant=${acme.id}&from=gitlab`);
    expect((await acme.start("gitlab")).status).toBe(200);
    expect(sent).toEqual([]);
  });
});

describe("a config that was stored while its host was trusted", () => {
  const FORGOTTEN = "https://gitlab.forgotten.example";
  const UNTRUSTED = "UNTRUSTED_PROVIDER_HOST";

  /** Puts a host into the config that is not on the list any more. */
  async function forget() {
    const data = JSON.stringify({ issuer: FORGOTTEN });
    const key = world.context.secretConfig;
    await acme.spoil("options", await symmetricEncrypt({ key, data }));
  }

  it("starts no sign-in on any path, is not offered, and the global provider does not stand in", async () => {
    await register(GITLAB);
    expect(await offeredAt(world, acme.id)).toContainEqual({ id: "gitlab", name: "Gitlab" });
    await forget();
    const sent = fakeNetwork();
    const before = await world.rows("verification");
    const person = await world.signUp(acme.id);
    const body = { provider: "gitlab" };
    const answers = [
      await acme.start("gitlab"),
      await world.at(acme.id).post("/sign-in/social", body),
      await person.post("/link-social", body),
    ];
    for (const answer of answers) {
      expectRefused(answer, 400, UNTRUSTED);
      expect(answer.location).toBeNull();
      expect(JSON.stringify(answer.data)).not.toMatch(/forgotten|global/);
    }
    expect(JSON.stringify(await offeredAt(world, acme.id))).not.toContain("gitlab");
    expect(await world.rows("verification")).toBe(before);
    expect(sent).toEqual([]);
  });

  it("ends a sign-in that is on its way, before a code leaves", async () => {
    await register(GITLAB);
    const { data, browser } = await acme.start("gitlab");
    await forget();
    const sent = fakeNetwork();
    const { state = "" } = queryOf(data.url);
    const query = { code: "good", state, tenant: acme.id };
    const back = await browser.get("/tenant/callback/gitlab", { query });
    expect([back.status, back.location]).toEqual([302, "/failed?error=untrusted_provider_host"]);
    expect(sent).toEqual([]);
    expect(await world.rowsIn(acme.id, "user")).toEqual([]);
  });

  it("is listed, says what is wrong when it is checked, and can be mended", async () => {
    await register(GITLAB);
    await forget();
    const sent = fakeNetwork();
    const options = { issuer: FORGOTTEN };
    expect(await acme.list()).toMatchObject([{ readable: true, options }]);
    const { data } = await acme.check({ providerId: "gitlab" });
    const finding = { subject: "options", ok: false, code: UNTRUSTED };
    expect(data).toMatchObject({ ok: false, findings: [finding] });
    expect(sent).toEqual([]);
    await acme.update({ ...GITLAB, clientSecret: CLIENT.clientSecret });
    expect(new URL((await acme.start("gitlab")).data.url).host).toBe("gitlab.acme.example");
  });
});

describe("whether a callback arrived where its flow was told to", () => {
  const usual = build("gitlab", CLIENT);
  const own = build("gitlab", CLIENT, "acme");
  const named = [undefined, "", "acme", "globex", "acme0", "ACME", "acme&tenant=acme", "%61cme"];
  const PROXY = "https://proxy.example/back";

  it("the path has the tenant in its query, encoded, and it arrives decoded", () => {
    expect(usual.callbackPath).toBe("/tenant/callback/gitlab");
    expect(own.callbackPath).toBe("/tenant/callback/gitlab?tenant=acme");
    expect(callbackPath("gitlab", "a&b=c#d")).toBe("/tenant/callback/gitlab?tenant=a%26b%3Dc%23d");
    const odd = build("gitlab", CLIENT, "a&b=c d/\u00e9");
    const { tenant } = queryOf(`${BASE_URL}${odd.callbackPath}`);
    expect(arrivedAt(odd, "gitlab", tenant, null)).toBe(true);
  });

  it.each([
    ["the usual address", usual, [null, undefined], undefined],
    ["the tenant's own", own, [null, undefined], "acme"],
    ["overridden by one that names the tenant", own, [`${PROXY}?a=b&tenant=acme`], "acme"],
    ["overridden by one that names it encoded", usual, [`${PROXY}?tenant=%61cme`], "acme"],
    ["overridden by one that names nobody", own, [PROXY], undefined],
    ["overridden by what is no address", own, ["not an address"], undefined],
  ] as const)("%s is reached by nobody else", (_, provider, overriding, expected) => {
    for (const uri of overriding) {
      const arrived = named.filter((tenant) => arrivedAt(provider, "gitlab", tenant, uri));
      expect(arrived).toEqual([expected]);
      const elsewhere = named.filter((tenant) => arrivedAt(provider, "google", tenant, uri));
      expect(elsewhere).toEqual(uri ? [expected] : []);
    }
  });
});

type Home = "a host of its own" | "the application's host";

/** Acme, whose provider is honest, and a tenant whose provider is not; the victim is Acme's. */
async function createTwoProviders(home: Home, storeStateStrategy: "database" | "cookie") {
  const [honest, evil] = [await startIdentityProvider(), await startIdentityProvider()];
  const EVIL = { clientId: "evil-client", clientSecret: "evil-client-secret" };
  for (const { clientId, clientSecret } of [CLIENT, EVIL]) {
    honest.registerClient(clientId, clientSecret);
    evil.registerClient(clientId, clientSecret);
  }
  honest.addPerson("victim");
  evil.addPerson("somebody");
  const trustedProviderHosts = [honest, evil].map(({ issuer }) => new URL(issuer).host);
  const gitlab = { clientId: "global", clientSecret: "global-secret", issuer: honest.issuer };
  const mixed = await createWorld({
    tenant: { trustedProviderHosts },
    auth: { account: { storeStateStrategy }, socialProviders: { gitlab } },
  });
  const [good, hostile] = [await mixed.oauthTenant(), await mixed.oauthTenant()];
  const own = home === "a host of its own" ? { issuer: honest.issuer } : undefined;
  await good.register({ providerId: "gitlab", ...CLIENT, options: own });
  await hostile.register({ providerId: "gitlab", ...EVIL, options: { issuer: evil.issuer } });
  const users = () => mixed.rows("user", "email like '%victim%'");
  return { honest, evil, good, hostile, users };
}

describe.each<Home>(["a host of its own", "the application's host"])(
  "threat: mix-up: Acme's provider is on %s",
  (home) => {
    it.each(["database", "cookie"] as const)(
      "a hostile provider that sends people on to it does not get their code (state in the %s)",
      async (strategy) => {
        const { honest, evil, good, hostile, users } = await createTwoProviders(home, strategy);
        // The attacker's own sign-in at Acme has the challenge that the stolen code shall fit.
        const attackers = new URL((await good.start("gitlab")).data.url);
        const { data, browser: victim } = await hostile.start("gitlab");
        // Where the hostile provider sends the victim, who has a session at the honest one.
        attackers.searchParams.set("state", queryOf(data.url).state ?? "");
        const back = await victim.get(await honest.authorize(attackers.href, "victim"));
        expect(evil.exchanges()).toEqual([]);
        expect(back.location).toBe("/failed?error=state_mismatch");
        expect(await users()).toBe(0);
      },
    );

    it("nor does a way back that was bent sign anybody in; control: both tenants' people do", async () => {
      const { honest, evil, good, hostile } = await createTwoProviders(home, "database");
      for (const bend of ["another tenant", "nobody"]) {
        const { data, browser } = await good.start("gitlab");
        const way = new URL(await honest.authorize(data.url, "victim"));
        if (bend === "another tenant") way.searchParams.set("tenant", hostile.id);
        else if (way.searchParams.has("tenant")) way.searchParams.delete("tenant");
        else way.searchParams.set("tenant", "");
        expect((await browser.get(way.href)).location).toBe("/failed?error=state_mismatch");
      }
      expect(honest.exchanges()).toEqual([]);
      for (const [idp, tenant, name] of [
        [honest, good, "victim"],
        [evil, hostile, "somebody"],
      ] as const) {
        const { data, browser } = await tenant.start("gitlab");
        const back = await browser.get(await idp.authorize(data.url, name));
        expect(back.location).toBe("/welcome");
        const [config] = await tenant.list();
        const used = idp.exchanges().map(({ params }) => params.redirect_uri);
        expect(used).toEqual([config?.callbackURL]);
      }
    });
  },
);

it("threat: mix-up: another issuer that comes back with a code is refused (RFC 9207)", async () => {
  const { honest, good } = await createTwoProviders("a host of its own", "database");
  const comeBack = async (query: Record<string, string>) => {
    const { data, browser } = await good.start("gitlab");
    const way = await honest.authorize(data.url, "victim");
    return (await browser.get(way, { query })).location;
  };
  const { issuer } = honest;
  for (const iss of ["https://gitlab.com", `${issuer}/evil`, issuer.replace(/\d+$/, "1")]) {
    expect([iss, await comeBack({ iss })]).toEqual([iss, "/failed?error=issuer_mismatch"]);
  }
  expect(honest.exchanges()).toEqual([]);
  expect([await comeBack({ iss: issuer }), await comeBack({})]).toEqual(["/welcome", "/welcome"]);
});

describe("a provider that better-auth adds or drops", () => {
  const PROVIDER = "https://tomorrow.example";
  const tomorrow = { providerId: "tomorrow", ...CLIENT };
  const list = socialProviderList as unknown as string[];
  const factories = socialProviders as unknown as Record<string, unknown>;
  let future: World;
  let tenant: OAuthTenant;

  type Options = typeof CLIENT;
  type Flow = { state: string; codeVerifier: string; redirectURI: string };
  type Code = { code: string; codeVerifier?: string; redirectURI: string };

  /** A provider as better-auth writes them, which needs a client id and a secret. */
  const plain = (options: Options) => ({
    id: "tomorrow",
    name: "Tomorrow",
    accountSubject: ({ profile }: { profile: { id: string } }) => profile.id,
    createAuthorizationURL: (flow: Flow) => {
      const authorizationEndpoint = `${PROVIDER}/authorize`;
      return createAuthorizationURL({ id: "tomorrow", options, authorizationEndpoint, ...flow });
    },
    validateAuthorizationCode: (code: Code) =>
      validateAuthorizationCode({ ...code, options, tokenEndpoint: `${PROVIDER}/token` }),
    async getUserInfo({ accessToken }: { accessToken?: string }) {
      const headers = { authorization: `Bearer ${accessToken}` };
      const profile = await (await fetch(`${PROVIDER}/me`, { headers })).json();
      return { user: { ...profile, emailVerified: true }, data: profile };
    },
    options,
  });

  /** One that cannot even be made without more, and one that notices when somebody signs in. */
  const strict = () => {
    throw new Error("REALM_REQUIRED");
  };
  const late = (options: Options) => ({ ...plain(options), createAuthorizationURL: strict });

  const forget = () => {
    if (list.includes("tomorrow")) list.splice(list.indexOf("tomorrow"), 1);
    delete factories.tomorrow;
  };

  beforeAll(async () => {
    list.push("tomorrow");
    factories.tomorrow = plain;
    future = await createWorld({ database: await createDatabase("sqlite") });
  });

  beforeEach(async () => {
    tenant = await future.oauthTenant();
  });

  afterAll(async () => {
    forget();
    await future.database.close();
  });

  it("works with a client id and a secret", async () => {
    expect((await tenant.register(tomorrow)).status).toBe(200);
    const sent = fakeNetwork(({ url }) =>
      Response.json(
        url.endsWith("/token")
          ? { access_token: "good", token_type: "Bearer" }
          : { id: "alice", name: "Alice", email: "alice@example.com" },
      ),
    );
    const { data, browser } = await tenant.start("tomorrow");
    const redirect_uri = `${BASE_URL}/tenant/callback/tomorrow`;
    const { state = "", ...query } = queryOf(data.url);
    expect(new URL(data.url).origin).toBe(PROVIDER);
    expect(query).toMatchObject({ client_id: CLIENT.clientId, redirect_uri });
    const back = await browser.get("/tenant/callback/tomorrow", { query: { code: "c", state } });
    expect(back.location).toBe("/welcome");
    expect(sent.map((request) => request.url)).toEqual([`${PROVIDER}/token`, `${PROVIDER}/me`]);
    const client = { client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret };
    const form = Object.fromEntries(new URLSearchParams(sent[0]?.body));
    expect(form).toMatchObject({ ...client, redirect_uri });
    const alice = { email: "alice@example.com", tenantId: tenant.id };
    expect(await future.whoIs(browser, tenant.id)).toMatchObject(alice);
    const offered = await offeredAt(future, tenant.id);
    expect(offered).toEqual([{ id: "tomorrow", name: "Tomorrow" }]);
    const check = await tenant.check({ providerId: "tomorrow" });
    expect(check.data).toMatchObject({ ok: true, redirectURI: redirect_uri });
  });

  it("takes the options that all providers share, and no others", async () => {
    for (const [name, value] of Object.entries({ realm: "acme", additionalClientIds: ["other"] })) {
      const refused = await tenant.register({ ...tomorrow, options: { [name]: value } });
      expectRefused(refused, 400, "INVALID_PROVIDER_OPTIONS");
      expect(refused.data.message).toContain(`options.${name}`);
    }
    expect(await tenant.list()).toEqual([]);
    const options = { disableSignUp: true };
    expect((await tenant.register({ ...tomorrow, options })).data.options).toEqual(options);
  });

  it.each([
    ["when it is made", strict],
    ["when somebody wants to sign in", late],
  ])("is refused where it needs more, and says so %s", async (_, factory) => {
    factories.tomorrow = factory;
    const sent = fakeNetwork();
    const answer = await tenant.register(tomorrow);
    expectRefused(answer, 400, "INVALID_PROVIDER_OPTIONS");
    expect(JSON.stringify(answer.data)).not.toMatch(/acme-client|REALM/);
    expect(await tenant.list()).toEqual([]);
    const { data } = await tenant.check(tomorrow);
    const finding = { subject: "options", ok: false, code: "INVALID_PROVIDER_OPTIONS" };
    expect(data).toMatchObject({ ok: false, findings: [finding] });
    expect(sent).toEqual([]);
    factories.tomorrow = plain;
  });

  it("signs nobody in when it is dropped, and its config can be seen and deleted", async () => {
    await tenant.register(tomorrow);
    forget();
    expect(outcome(await tenant.start("tomorrow"))).toEqual([404, "PROVIDER_NOT_FOUND"]);
    expect(await offeredAt(future, tenant.id)).toEqual([]);
    expect(await tenant.list()).toMatchObject([{ providerId: "tomorrow", readable: true }]);
    expect((await tenant.remove("tomorrow")).status).toBe(200);
  });
});
