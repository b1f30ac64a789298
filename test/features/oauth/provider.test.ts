import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { symmetricEncrypt } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { genericOAuth } from "better-auth/plugins";
import { socialProviderList, socialProviders } from "better-auth/social-providers";
import { afterAll, describe, expect, it } from "vitest";
import { arrivedAt, build, callbackPath } from "../../../src/features/oauth/provider";
import { isAtForeignHost } from "../../../src/features/oauth/provider-options";
import { assertNamesTenant } from "../../../src/features/oauth/trusted-addresses";
import { runInTenant } from "../../../src/index";
import { startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import { fakeNetwork, googleIdToken } from "../../support/providers";
import { changingProviders, createSocialWorld } from "../../support/social";
import {
  createWorld,
  expectRefused,
  outcome,
  PLACES,
  queryOf,
  shareMade,
  shareWorld,
  type World,
} from "../../support/world";
import { createOAuthTenant, type OAuthTenant, tenantOfEachTest } from "./tenant";

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
const acme = tenantOfEachTest(world);

const register = (config: object) => acme.register({ ...CLIENT, ...config });
const offeredAt = async ({ browser }: Pick<World, "browser">, tenantId: string) => {
  const { data } = await browser().get("/tenant/sign-in-methods", { query: { tenantId } });
  return data.providers;
};

describe("a provider on a host that the tenant brought", () => {
  const usual = `${BASE_URL}/tenant/callback/gitlab`;

  /** Every place that tells the redirect URI of a config, and where a sign-in sends it. */
  async function redirectURIs(options?: object, redirectURI?: string) {
    fakeNetwork();
    const providerId = "gitlab";
    const registered = await register({ providerId, options, redirectURI });
    const [listed] = await acme.list();
    const checked = await acme.check({ providerId });
    const unsaved = await acme.check({ providerId, ...CLIENT, options, redirectURI });
    const { data } = await acme.start(providerId);
    const told = [registered.data.callbackURL, listed?.callbackURL, checked.data.redirectURI];
    return new Set([...told, unsaved.data.redirectURI, queryOf(data.url).redirect_uri]);
  }

  it("has a redirect URI of its own; control: others have the one that tenants share", async () => {
    expect(await redirectURIs(GITLAB.options)).toEqual(new Set([`${usual}?tenant=${acme.id}`]));
    expect(await redirectURIs({ issuer: "https://gitlab.com/" })).toEqual(new Set([usual]));
    // The application's own choice of a host, which no tenant brought.
    await register({ providerId: "paybin", options: { prompt: "login" } });
    const { redirect_uri } = queryOf((await acme.start("paybin")).data.url);
    expect(redirect_uri).toBe(`${BASE_URL}/tenant/callback/paybin`);
  });

  it.each<[isForeign: boolean, string, ...options: Record<string, unknown>[]]>([
    [true, "gitlab", { issuer: "https://gitlab.acme.example" }],
    [true, "paybin", { issuer: "https://idp.acme.example" }],
    [true, "microsoft", { authority: "https://login.acme.example/adfs", tenantId: "acme" }],
    [true, "cognito", { domain: "login.acme.example" }],
    [true, "salesforce", { loginUrl: "login.acme.example" }],
    [false, "gitlab", {}, { issuer: "https://gitlab.com/" }, { issuer: undefined }],
    [false, "google", { hd: "acme.example" }],
    [false, "microsoft", { authority: "https://acme.ciamlogin.com", tenantId: "acme" }],
    [false, "microsoft", { authority: "https://acme.b2clogin.com/acme.example" }],
    [false, "cognito", { domain: "acme.auth.eu-west-1.amazoncognito.com" }],
    [false, "salesforce", { loginUrl: "acme.my.salesforce.com" }],
  ])("is not where it usually is: %s for %s with %j", (expected, id, ...given) => {
    for (const options of given) expect(isAtForeignHost(id, options)).toBe(expected);
  });

  it("threat: mix-up: has no overriding redirect URI that does not name the tenant, and it alone", () => {
    for (const rest of [
      ...["", "?tenant=another", "?tenant=acme&tenant=another", "?tenant=another&tenant=acme"],
      ...["?tenant=acme&tenant=acme", "?tenant=acme0", "?Tenant=acme", "tenant=acme"],
      "?tenantId=acme",
    ]) {
      const assert = () => assertNamesTenant(`https://proxy.example/${rest}`, "acme");
      expect(assert, rest).toThrow(/add tenant=acme to the query/);
    }
  });

  it("threat: mix-up: is told so by register, update and check", async () => {
    const redirectURI = usual;
    const { clientSecret } = CLIENT;
    const sent = fakeNetwork();
    expectRefused(await register({ ...GITLAB, redirectURI }), 400, "INVALID_REDIRECT_URI");
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
    expect(await redirectURIs(GITLAB.options, uri)).toEqual(new Set([uri]));
    const redirectURI = `https://other.example/?tenant=${acme.id}`;
    const changed = await acme.update({ providerId: "gitlab", redirectURI });
    expect([changed.status, changed.data.callbackURL]).toEqual([200, redirectURI]);
    // Whatever else is wrong, a check tells which address it would be.
    const wrong = { issuer: "https://gitlab.com/", unheardOf: 1 };
    const { data } = await acme.check({ providerId: "gitlab", ...CLIENT, options: wrong });
    expect([data.ok, data.redirectURI]).toEqual([false, usual]);
  });

  it("with an invalid one that was stored before signs no user in, until it is corrected", async () => {
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

it("a config whose host is not trusted any more starts no sign-in, ends those on their way, and the global one does not stand in", async () => {
  const FORGOTTEN = "https://gitlab.forgotten.example";
  const UNTRUSTED = "UNTRUSTED_PROVIDER_HOST";
  await register(GITLAB);
  expect(await offeredAt(world, acme.id)).toContainEqual({ id: "gitlab", name: "Gitlab" });
  const { data, browser } = await acme.start("gitlab");
  const before = await world.rows("verification");
  const plain = { key: world.context.secretConfig, data: JSON.stringify({ issuer: FORGOTTEN }) };
  await acme.spoil("options", await symmetricEncrypt(plain));
  const sent = fakeNetwork();
  const answer = await acme.start("gitlab");
  expectRefused(answer, 400, UNTRUSTED);
  expect(JSON.stringify(answer.data)).not.toMatch(/forgotten|global/);
  expect(await world.rows("verification")).toBe(before);
  expect(JSON.stringify(await offeredAt(world, acme.id))).not.toContain("gitlab");
  const query = { code: "good", state: queryOf(data.url).state ?? "", tenant: acme.id };
  const back = await browser.get("/tenant/callback/gitlab", { query });
  expect([back.status, back.location]).toEqual([302, "/failed?error=untrusted_provider_host"]);
  // It is listed, says what is wrong when it is checked, and can be mended.
  expect(await acme.list()).toMatchObject([{ readable: true, options: { issuer: FORGOTTEN } }]);
  const { data: checked } = await acme.check({ providerId: "gitlab" });
  expect(checked.findings).toMatchObject([{ subject: "options", ok: false, code: UNTRUSTED }]);
  expect(sent).toEqual([]);
  await acme.update({ ...GITLAB, clientSecret: CLIENT.clientSecret });
  expect(new URL((await acme.start("gitlab")).data.url).host).toBe("gitlab.acme.example");
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

/** An internet where every code is good, and belongs to somebody. */
const playPerson = (profile: object, id_token?: string) =>
  fakeNetwork(({ url }) =>
    Response.json(
      url.includes("token") ? { access_token: "t", token_type: "Bearer", id_token } : profile,
    ),
  );

async function comeBack(tenant: OAuthTenant, provider: string, start: object = {}) {
  const { data, browser } = await tenant.start(provider, start);
  const { state = "", redirect_uri = "" } = queryOf(data.url);
  const { location } = await browser.get(redirect_uri, { query: { code: "good", state } });
  return { location, browser };
}

// Google says who somebody is in a token, and Zoom hides its options.
it.each(["google", "zoom"])("a config says who may sign up with %s", async (providerId) => {
  const profile = { id: "1", email: "new@example.com", display_name: "New", verified: 1 };
  playPerson(
    profile,
    providerId === "google" ? googleIdToken({ aud: CLIENT.clientId }) : undefined,
  );
  const comeAsNewPerson = async (options: object, start: object = {}) => {
    const tenant = await createOAuthTenant(world);
    await tenant.register({ providerId, ...CLIENT, options });
    const { location } = await comeBack(tenant, providerId, start);
    return [location, (await world.rowsIn(tenant.id, "user")).length];
  };
  const keptOut = ["/failed?error=signup_disabled", 0];
  const asked = { requestSignUp: true };
  expect(await comeAsNewPerson({})).toEqual(["/welcome", 1]);
  expect(await comeAsNewPerson({ disableSignUp: true })).toEqual(keptOut);
  expect(await comeAsNewPerson({ disableImplicitSignUp: true })).toEqual(keptOut);
  expect(await comeAsNewPerson({ disableImplicitSignUp: true }, asked)).toEqual(["/welcome", 1]);
});

it.each<[string, () => Promise<unknown>]>([
  ["deleted", () => acme.remove("gitlab")],
  ["moved to gitlab.com", () => register({ providerId: "gitlab" })],
])(
  "threat: issuer confusion: a namesake's number opens nothing after a config was %s",
  async (_, move) => {
    const alice = { id: 7, name: "Alice", email: "alice@example.com", state: "active" };
    await register(GITLAB);
    playPerson(alice);
    expect((await comeBack(acme, "gitlab")).location).toBe("/welcome");
    const [atHome] = await world.rowsIn(acme.id, "account");
    expect(atHome?.accountId).toBe(`${GITLAB.options.issuer}#7`);
    await move();
    playPerson({ ...alice, email: "namesake@example.com" });
    const { browser } = await comeBack(acme, "gitlab");
    expect(await world.whoIs(browser, acme.id)).toMatchObject({ email: "namesake@example.com" });
    const accounts = await world.rowsIn(acme.id, "account");
    expect(accounts.map(({ accountId }) => accountId)).toContain("7");
    expect(accounts.find(({ id }) => id === atHome?.id)?.userId).toBe(atHome?.userId);
  },
);

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
  const [good, hostile] = [await createOAuthTenant(mixed), await createOAuthTenant(mixed)];
  const own = home === "a host of its own" ? { issuer: honest.issuer } : undefined;
  await good.register({ providerId: "gitlab", ...CLIENT, options: own });
  await hostile.register({ providerId: "gitlab", ...EVIL, options: { issuer: evil.issuer } });
  const users = () => mixed.rows("user", "email like '%victim%'");
  return { honest, evil, good, hostile, users };
}

describe.each([
  ["a host of its own", "database"],
  ["the application's host", "cookie"],
] as const)("threat: mix-up: Acme's provider is on %s, its state in the %s:", (home, strategy) => {
  it("a hostile provider that redirects users to it, or changes the callback URL, gets no code", async () => {
    const { honest, evil, good, hostile, users } = await createTwoProviders(home, strategy);
    const MISMATCH = "/failed?error=state_mismatch";
    // The attacker's own sign-in at Acme has the challenge that the stolen code shall fit.
    const attackers = new URL((await good.start("gitlab")).data.url);
    const { data, browser: victim } = await hostile.start("gitlab");
    // Where the hostile provider sends the victim, who has a session at the honest one.
    attackers.searchParams.set("state", queryOf(data.url).state ?? "");
    const back = await victim.get(await honest.authorize(attackers.href, "victim"));
    expect([back.location, await users()]).toEqual([MISMATCH, 0]);
    for (const bend of ["another tenant", "nobody"]) {
      const { data, browser } = await good.start("gitlab");
      const way = new URL(await honest.authorize(data.url, "victim"));
      if (bend === "another tenant") way.searchParams.set("tenant", hostile.id);
      else if (way.searchParams.has("tenant")) way.searchParams.delete("tenant");
      else way.searchParams.set("tenant", "");
      expect((await browser.get(way.href)).location).toBe(MISMATCH);
    }
    expect([evil.exchanges(), honest.exchanges()]).toEqual([[], []]);
    // Control: both tenants' people come in.
    for (const [idp, tenant, name] of [
      [honest, good, "victim"],
      [evil, hostile, "somebody"],
    ] as const) {
      const { data, browser } = await tenant.start("gitlab");
      expect((await browser.get(await idp.authorize(data.url, name))).location).toBe("/welcome");
      const [config] = await tenant.list();
      const used = idp.exchanges().map(({ params }) => params.redirect_uri);
      expect(used).toEqual([config?.callbackURL]);
    }
  });
});

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
  const tomorrow = { providerId: "tomorrow", ...CLIENT };
  const list = socialProviderList as unknown as string[];
  const factories = socialProviders as unknown as Record<string, unknown>;
  const future = shareMade(async (database) => {
    list.push("tomorrow");
    factories.tomorrow = plain;
    return createWorld({ database });
  });
  const tenant = tenantOfEachTest(future);

  /** A provider as better-auth writes them, as far as people are sent to it. */
  const plain = (options: typeof CLIENT) => ({
    id: "tomorrow",
    name: "Tomorrow",
    createAuthorizationURL: async ({ redirectURI }: { redirectURI: string }) => {
      const query = { client_id: options.clientId, redirect_uri: redirectURI };
      return new URL(`https://tomorrow.example?${new URLSearchParams(query)}`);
    },
    options,
  });
  const strict = () => {
    throw new Error("REALM_REQUIRED");
  };
  const forget = () => {
    if (list.includes("tomorrow")) list.splice(list.indexOf("tomorrow"), 1);
    delete factories.tomorrow;
  };

  afterAll(forget);

  it("works with a client id and a secret, and the options that all share", async () => {
    const refused = await tenant.register({ ...tomorrow, options: { realm: "acme" } });
    expectRefused(refused, 400, "INVALID_PROVIDER_OPTIONS");
    const options = { prompt: "login" };
    expect((await tenant.register({ ...tomorrow, options })).status).toBe(200);
    const { client_id, redirect_uri } = queryOf((await tenant.start("tomorrow")).data.url);
    const callback = `${BASE_URL}/tenant/callback/tomorrow`;
    expect([client_id, redirect_uri]).toEqual([CLIENT.clientId, callback]);
    const offered = await offeredAt(future, tenant.id);
    expect(offered).toEqual([{ id: "tomorrow", name: "Tomorrow" }]);
  });

  it.each([
    ["when it is made", strict],
    [
      "when a user wants to sign in",
      (options: typeof CLIENT) => ({ ...plain(options), createAuthorizationURL: strict }),
    ],
  ])("is refused where it needs more, and says so %s", async (_, factory) => {
    factories.tomorrow = factory;
    const answer = await tenant.register(tomorrow);
    expectRefused(answer, 400, "INVALID_PROVIDER_OPTIONS");
    expect(JSON.stringify(answer.data)).not.toMatch(/acme-client|REALM/);
    expect(await tenant.list()).toEqual([]);
    factories.tomorrow = plain;
  });

  it("signs no user in when it is dropped, and its config can be seen and deleted", async () => {
    await tenant.register(tomorrow);
    forget();
    expect(outcome(await tenant.start("tomorrow"))).toEqual([404, "PROVIDER_NOT_FOUND"]);
    expect(await offeredAt(future, tenant.id)).toEqual([]);
    expect(await tenant.list()).toMatchObject([{ providerId: "tomorrow", readable: true }]);
    expect((await tenant.remove("tomorrow")).status).toBe(200);
  });
});

const config = [{ ...CLIENT, providerId: "slack", authorizationUrl: "https://idp.example/auth" }];
const providing = changingProviders((all) => [...all, socialProviders.slack(CLIENT)]);

const [taken, refused] = [
  [200, undefined],
  [400, "UNSUPPORTED_PROVIDER"],
];

it.each<[what: string, slack: object | undefined, plugins: BetterAuthPlugin[], answer: unknown[]]>([
  ["of the application", CLIENT, [], taken],
  ["of nobody", undefined, [], taken],
  ["of a plugin", undefined, [genericOAuth({ config })], refused],
  ["of a plugin, behind the others", undefined, [providing], refused],
  ["of both", CLIENT, [genericOAuth({ config })], refused],
  ["of both, behind the others", CLIENT, [providing], refused],
  ["switched off", { ...CLIENT, enabled: false }, [genericOAuth({ config })], refused],
])("a tenant's client at a provider whose name is %s", async (_, slack, plugins, answer) => {
  const socialProviders = slack ? { slack: slack as typeof CLIENT } : {};
  const own = await createWorld({ auth: { socialProviders }, plugins });
  const tenant = await createOAuthTenant(own);
  expect(outcome(await tenant.register({ ...CLIENT, providerId: "slack" }))).toEqual(answer);
});

it("a provider that a plugin adds in a tenant's request is of that request alone", async () => {
  const sizes: number[] = [];
  const handler = createAuthMiddleware(async ({ context: { socialProviders } }) => {
    sizes.push(socialProviders.push({ ...socialProviders[0], id: "added" } as OAuthProvider));
  });
  const adding = { id: "adding", hooks: { before: [{ matcher: () => true, handler }] } };
  const own = await createWorld({ plugins: [adding] });
  sizes.length = 0;
  for (const _ of PLACES) await own.at("acme").get("/get-session");
  expect([sizes.length, new Set(sizes).size]).toEqual([3, 1]);
});

/** Lets Bob in and nobody else. */
const onlyBob = (provider: OAuthProvider): Pick<OAuthProvider, "getUserInfo"> => {
  const ask = provider.getUserInfo.bind(provider);
  return {
    getUserInfo: async (tokens) => {
      const found = await ask(tokens);
      return found?.user.email === "bob@example.com" ? found : null;
    },
  };
};

describe.each<[how: string, change: (provider: OAuthProvider) => OAuthProvider]>([
  ["put another in its place", (provider) => ({ ...provider, ...onlyBob(provider) })],
  ["written into it", (provider) => Object.assign(provider, onlyBob(provider))],
  [
    "put one with options of its own there",
    (provider) => ({ ...provider, ...onlyBob(provider), options: { ...provider.options } }),
  ],
])("a plugin that has changed the application's provider: %s", (_, change) => {
  it.each([true, false])("counts in tenants as well, ours in front of it: %s", async (isFirst) => {
    const changed = await createSocialWorld({
      gitlab: { redirectURI: `${BASE_URL}/callback/gitlab` },
      plugins: [
        changingProviders((all) => all.map((one) => (one.id === "gitlab" ? change(one) : one))),
      ],
      arrange: (ours, others) => (isFirst ? [ours, ...others] : [...others, ours]),
    });
    for (const place of PLACES) {
      const who = async (name: string) => {
        const browser = changed.at(place);
        const { location } = await changed.signInAtProvider(browser, place, {}, name);
        return (await changed.whoIs(browser, place))?.email ?? queryOf(location).error;
      };
      const expected = ["unable_to_get_user_info", "bob@example.com"];
      expect([await who("alice"), await who("bob")], place).toEqual(expected);
    }
  });
});

describe("tokens that users have from a provider", () => {
  const alice = { id: 7, name: "Alice", email: "alice@example.com", state: "active" };
  const profile = { ...alice, username: "alice", locked: false, confirmed_at: "2020-01-01" };
  const STORED = { accessToken: "an old access token", refreshToken: "an old refresh token" };

  /** Somebody with an account from before, and what is sent where when its tokens are used. */
  async function settle(
    from: "gitlab.com" | "the tenant's host",
    account: BetterAuthOptions["account"] = {},
  ) {
    const own = await createWorld({
      tenant: { trustedProviderHosts: [new URL(GITLAB.options.issuer).host] },
      auth: { socialProviders: { gitlab: CLIENT }, account },
    });
    const { internalAdapter, secretConfig: key } = own.context;
    const stored = { ...STORED };
    if (account.encryptOAuthTokens) {
      stored.accessToken = await symmetricEncrypt({ key, data: STORED.accessToken });
      stored.refreshToken = await symmetricEncrypt({ key, data: STORED.refreshToken });
    }
    const jane = await own.as("jane", "acme");
    const authority = from === "gitlab.com" ? "" : `${GITLAB.options.issuer}#`;
    const row = { userId: jane.id, providerId: "gitlab", accountId: `${authority}7`, ...stored };
    const create = () => internalAdapter.createAccount(row);
    const { id: accountId } = await runInTenant(own.ids.acme, create);
    const sent: string[] = [];
    fakeNetwork(({ url, headers, body }) => {
      if (/old.(access|refresh).token/.test(`${headers.get("authorization")} ${body}`))
        sent.push(new URL(url).host);
      const tokens = { access_token: "new", refresh_token: "newer", token_type: "Bearer" };
      return Promise.resolve(Response.json(url.includes("/oauth/token") ? tokens : profile));
    });
    const use = async () => {
      sent.length = 0;
      const expire = (accessTokenExpiresAt: Date) =>
        runInTenant(own.ids.acme, () =>
          internalAdapter.updateAccount(accountId, { ...stored, accessTokenExpiresAt }),
        );
      await expire(new Date(Date.now() + 1e6));
      const info = await jane.get("/account-info", { query: { accountId } });
      const refreshed = await jane.post("/refresh-token", { accountId });
      await expire(new Date(0));
      const access = await jane.post("/get-access-token", { accountId });
      return { statuses: [info, refreshed, access].map(({ status }) => status), info, sent };
    };
    const body = { tenantId: own.ids.acme, ...CLIENT, ...GITLAB };
    const move = () => own.api.registerTenantOAuthConfig({ body });
    return { own, use, move };
  }

  it.each([{}, { encryptOAuthTokens: true }])(
    "threat: stored with %j, do not go to the host that their tenant has moved it to",
    async (account) => {
      const { use, move } = await settle("gitlab.com", account);
      const sentThere = Array(3).fill("gitlab.com");
      expect(await use()).toMatchObject({ statuses: [200, 200, 200], sent: sentThere });
      await move();
      const { statuses, info, sent } = await use();
      expect([statuses, info.code, sent]).toEqual([[404, 404, 404], "PROVIDER_NOT_FOUND", []]);
    },
  );

  it("go to the tenant's host if they are from there, and to no other after it has moved away", async () => {
    const { own, use, move } = await settle("the tenant's host");
    // One of the host of before, with other tokens, keeps nobody from these.
    const { id: userId } = await own.as("jane", "acme");
    const before = { userId, providerId: "gitlab", accountId: "8", accessToken: "of before" };
    await runInTenant(own.ids.acme, () => own.context.internalAdapter.createAccount(before));
    await move();
    const { host } = new URL(GITLAB.options.issuer);
    expect(await use()).toMatchObject({ statuses: [200, 200, 200], sent: [host, host, host] });
    const body = { tenantId: own.ids.acme, providerId: "gitlab" };
    await own.api.deleteTenantOAuthConfig({ body });
    const { statuses, sent } = await use();
    expect([statuses, sent]).toEqual([[404, 404, 404], []]);
  });
});
