import type { AuthContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { bearer, oneTap } from "better-auth/plugins";
import { socialProviders } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import { getTenantId, runInTenant } from "../../src/index";
import type { Browser } from "../support/browser";
import { startIdentityProvider } from "../support/identity-provider";
import { BASE_URL } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialWorld, GLOBAL, queryOf, shareSocialWorld } from "../support/social";
import { createWorld, type Person, PLACES } from "../support/world";

type SignedIn = { user: { tenantId: string | null } };

describe("where a session alone names the tenant, providers are that tenant's:", () => {
  const world = shareSocialWorld({
    socialProviders: { google: GLOBAL },
    plugins: [bearer(), oneTap()],
  });
  const bearing = ({ token }: Person) => ({ authorization: `Bearer ${token}` });
  const CARRIERS: [name: string, carry: (jane: Person) => Browser][] = [
    ["a bearer token", (jane) => world.browser(bearing(jane))],
    ["a cookie", (jane) => jane.fork({})],
    ["a cookie and the same bearer token", (jane) => jane.fork(bearing(jane))],
  ];
  /** Where an id token signs somebody in. */
  const ENTRANCES: [path: string, body: (token: string) => object][] = [
    ["/sign-in/social", (token) => ({ provider: "google", idToken: { token } })],
    ["/one-tap/callback", (idToken) => ({ idToken })],
  ];

  let count = 0;
  /** Somebody new at Acme, which has a Google client of its own; tokens are for somebody else. */
  async function settle() {
    const { googleIdToken } = fakeGoogleAndGitHub();
    await world.configure("acme", { providerId: "google", clientId: "client-a" });
    const jane = await world.signUp("acme", `jane-${++count}@example.com`);
    const sub = `google-${count}`;
    const email = `alice-${count}@example.com`;
    return { jane, email, idToken: (aud: string) => googleIdToken({ aud, sub, email }) };
  }

  it.each(CARRIERS)("%s", async (_, carry) => {
    for (const [path, body] of ENTRANCES) {
      const { jane, email, idToken } = await settle();
      const { status } = await world.unchanged(() =>
        carry(jane).post(path, body(idToken(GLOBAL.clientId))),
      );
      expect([path, status >= 400]).toEqual([path, true]);
      const own = await carry(jane).post<SignedIn>(path, body(idToken("client-a")));
      expect([own.status, own.data.user?.tenantId]).toEqual([200, world.ids.acme]);
      expect(await world.rows("user", "email = ?", [email])).toBe(1);
    }
    const { jane, idToken } = await settle();
    for (const path of ["/sign-in/social", "/link-social"]) {
      const body = { provider: "google", callbackURL: "/welcome" };
      const { data } = await carry(jane).post<{ url: string }>(path, body);
      const redirect_uri = expect.stringMatching(/\/tenant\/callback\/google/);
      expect(queryOf(data.url)).toMatchObject({ client_id: "client-a", redirect_uri });
    }
    const link = (aud: string) =>
      carry(jane).post("/link-social", { provider: "google", idToken: { token: idToken(aud) } });
    const refused = await world.unchanged(() => link(GLOBAL.clientId));
    expect(refused.status).toBeGreaterThanOrEqual(400);
    await world.touchesOnly("acme", () => link("client-a"));
  });

  it.each(ENTRANCES)("control: with nobody signed in, %s is the platform's", async (path, body) => {
    const { idToken } = await settle();
    const refused = await world.at(null).post(path, body(idToken("client-a")));
    expect(refused.status).toBeGreaterThanOrEqual(400);
    const answer = await world.at(null).post<SignedIn>(path, body(idToken(GLOBAL.clientId)));
    expect([answer.status, answer.data.user?.tenantId]).toEqual([200, null]);
  });
});

describe("configs that cannot be read", () => {
  /** Somebody at Acme with an account at a provider, where Acme has configs for others too. */
  async function settle(provider: "gitlab" | "github") {
    fakeGoogleAndGitHub();
    const world = await createSocialWorld({ socialProviders: { google: GLOBAL, github: GLOBAL } });
    world.idp.rules.refreshTokens = true;
    for (const providerId of ["gitlab", "github", "google", "discord"]) {
      await world.configure("acme", { providerId });
    }
    const browser = world.at(null);
    const { data } = await world.start(browser, "acme", { provider });
    const { state = "" } = queryOf(data.url);
    const way =
      provider === "gitlab"
        ? await world.idp.authorize(data.url, "alice")
        : `/tenant/callback/github?code=a-code&state=${state}`;
    expect((await browser.get(way)).location).toBe("/welcome");
    const accounts = await browser.get<{ id: string }[]>("/list-accounts");
    /** Nobody can read any of the other configs from now on. */
    const spoil = () =>
      world.database.query(
        `update "tenantOauthConfig" set "clientSecret" = 'spoilt', "clientId" = 'spoilt'
         where "providerId" <> ?`,
        [provider],
      );
    return { world, browser, accountId: accounts.data[0]?.id ?? "", spoil };
  }

  it.each([
    ["gitlab", "a header", "acme"],
    ["github", "the session alone", null],
  ] as const)("keep nobody from the tokens of %s, in a tenant named by %s", async (...row) => {
    const [provider, , at] = row;
    const { world, browser: signedIn, accountId, spoil } = await settle(provider);
    const browser = world.at(at, signedIn);
    const ask = async () => ({
      access: (await browser.post("/get-access-token", { accountId })).status,
      refresh: (await browser.post("/refresh-token", { accountId })).code,
      info: (await browser.get("/account-info", { query: { accountId } })).status,
    });
    // GitHub gives out no refresh tokens.
    const refresh = provider === "github" ? "REFRESH_TOKEN_NOT_FOUND" : undefined;
    expect(await ask()).toEqual({ access: 200, refresh, info: 200 });
    await spoil();
    expect(await ask()).toEqual({ access: 200, refresh, info: 200 });
    // One query serves all the providers that an endpoint asks for.
    world.database.statements.length = 0;
    await browser.post("/get-access-token", { accountId });
    const asked = world.database.statements.filter((sql) => sql.includes("tenantOauthConfig"));
    expect(asked).toHaveLength(1);
    if (provider === "github") return;
    // They stop the sign-in that would need them, and no other.
    expect((await world.signInAtProvider(world.at(null), "acme")).location).toBe("/welcome");
    const refused = await world.start(world.at(null), "acme", { provider: "google" });
    expect([refused.status, refused.code]).toEqual([500, "OAUTH_CREDENTIAL_DECRYPT_FAILED"]);
  });
});

it.each([
  "frozen",
  "an instance of a class",
  "a function",
  "a function that shows no id",
  "added at run time",
  "added by a hook",
])("a plugin's provider may be %s", async (what) => {
  const idp = await startIdentityProvider();
  idp.registerClient("client", "secret");
  idp.addPerson("alice");
  // Wherever it is from, in tenants people come back to the tenants' callback.
  const redirectURI = `${BASE_URL}/callback/corp`;
  const client = { clientId: "client", clientSecret: "secret", issuer: idp.issuer, redirectURI };
  const gitlab: OAuthProvider = socialProviders.gitlab(client) as never;
  class Corporation {
    id = "corp";
    name = "Corporation";
    options = gitlab.options;
    accountSubject = gitlab.accountSubject;
    readonly #gitlab = gitlab;
    createAuthorizationURL(flow: never) {
      return this.#gitlab.createAuthorizationURL(flow);
    }
    validateAuthorizationCode(flow: never) {
      return this.#gitlab.validateAuthorizationCode(flow);
    }
    getUserInfo(tokens: never) {
      return this.#gitlab.getUserInfo(tokens);
    }
  }
  const corporation = new Corporation() as unknown as OAuthProvider;
  const call = async () => corporation;
  const shown: Record<string, unknown> = {
    frozen: Object.freeze({ ...gitlab, id: "corp" }),
    "a function": Object.assign(call, { id: "corp" }),
    "a function that shows no id": call,
  };
  const provider = (shown[what] ?? corporation) as OAuthProvider;
  const isLater = what.startsWith("added");
  const init = ({ socialProviders: others }: AuthContext) => ({
    context: { socialProviders: isLater ? others : [provider, ...others] },
  });
  const before = createAuthMiddleware(async ({ context, path }) => {
    const isThere = context.socialProviders.some(({ id }) => id === "corp");
    if (isLater && path === "/sign-in/social" && !isThere) context.socialProviders.push(provider);
  });
  const plugins = [{ id: "corporation", init }];
  const world = await createWorld({ plugins, auth: { hooks: { before } } });
  if (what === "added at run time") (await world.auth.$context).socialProviders.push(provider);
  for (const place of PLACES) {
    const browser = world.at(place);
    const body = { provider: "corp", callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
    expect((await browser.get(await idp.authorize(data.url, "alice"))).location).toBe("/in");
    expect(await world.whoIs(browser, place)).toMatchObject({ tenantId: world.ids[place] });
    const tenantId = world.ids[place];
    if (!tenantId) continue;
    const methods = await browser.get("/tenant/sign-in-methods", { query: { tenantId } });
    const offered = { id: "corp", name: what === "frozen" ? "Gitlab" : "Corporation" };
    expect(methods.data.providers).toEqual([offered]);
  }
});

it("a function may give each tenant another provider", async () => {
  const call = async () => socialProviders.gitlab({ ...GLOBAL, clientId: `of ${getTenantId()}` });
  const init = () => ({ context: { socialProviders: [call as never] } });
  const world = await createWorld({ plugins: [{ id: "by-tenant", init }] });
  for (const place of [...PLACES, ...PLACES]) {
    const body = { provider: "gitlab", callbackURL: "/in" };
    const { data } = await world.at(place).post<{ url: string }>("/sign-in/social", body);
    expect(queryOf(data.url).client_id).toBe(`of ${world.ids[place]}`);
  }
});

it("what a provider shows may be another thing in each tenant, also with a redirect URI", async () => {
  const byTenant = (one: OAuthProvider): OAuthProvider => {
    const options = () => ({ ...one.options, clientId: `of ${getTenantId()}` });
    const now = () => socialProviders.gitlab(options() as never) as OAuthProvider;
    return {
      ...one,
      get options() {
        return { ...options(), redirectURI: `${BASE_URL}/callback/gitlab` };
      },
      createAuthorizationURL: (flow) => now().createAuthorizationURL(flow),
    };
  };
  const init = ({ socialProviders: all }: AuthContext) => ({
    context: { socialProviders: all.map(byTenant) },
  });
  const world = await createSocialWorld({ plugins: [{ id: "by-tenant", init }] });
  for (const place of PLACES) {
    const { data } = await world.start(world.at(place), place);
    expect(queryOf(data.url).client_id, place).toBe(`of ${world.ids[place]}`);
  }
});

it.each<[string, () => Promise<never>]>([
  ["fails", () => Promise.reject(new Error("the vault is away"))],
  ["gives nothing", async () => undefined as never],
])("a function behind it that %s takes no other provider along", async (_, call) => {
  const init = ({ socialProviders: all }: AuthContext) => ({
    context: { socialProviders: [...all, call as never] },
  });
  const world = await createSocialWorld({ plugins: [{ id: "fails", init }] });
  await world.configure("acme");
  for (const place of PLACES) {
    const answer = await world.signInAtProvider(world.at(place), place);
    expect(answer.location, place).toBe("/welcome");
    const tenantId = world.ids[place];
    if (!tenantId) continue;
    const offered = await world.at(place).get("/tenant/sign-in-methods", { query: { tenantId } });
    expect(offered.data.providers).toEqual([{ id: "gitlab", name: "Gitlab" }]);
  }
});

it("what a plugin does to a provider holds in tenants, also if its options are frozen later", async () => {
  const refuse = (one: OAuthProvider) => Object.assign(one, { getUserInfo: async () => null });
  const init = ({ socialProviders: all }: AuthContext) => ({
    context: { socialProviders: all.map(refuse) },
  });
  const redirectURI = `${BASE_URL}/callback/gitlab`;
  const world = await createSocialWorld({
    plugins: [{ id: "guard", init }],
    gitlab: { redirectURI },
  });
  const { socialProviders: all } = await world.auth.$context;
  expect(Object.keys(all)).toEqual(["0"]);
  Object.freeze(all[0]?.options);
  for (const place of PLACES) {
    const { location } = await world.signInAtProvider(world.at(place), place);
    expect(queryOf(`${location}`).error, place).toBe("unable_to_get_user_info");
  }
});

it("a plugin's provider may say something else at run time", async () => {
  const said = { requireEmailVerification: false, disableSignUp: false };
  const late = (one: OAuthProvider): OAuthProvider => ({
    ...one,
    get options() {
      return { ...one.options, ...said };
    },
  });
  const init = ({ socialProviders: all }: AuthContext) => ({
    context: { socialProviders: all.map(late) },
  });
  const world = await createSocialWorld({ plugins: [{ id: "late", init }] });
  world.idp.addPerson("carol", { email_verified: false });
  await world.configure("globex");
  for (const [name, change, location] of [
    ["alice", {}, /^.welcome$/],
    ["carol", { requireEmailVerification: true }, /error=email_not_verified/],
    ["bob", { disableSignUp: true }, /error=signup_disabled/],
  ] as const) {
    Object.assign(said, change);
    for (const place of PLACES) {
      const answer = await world.signInAtProvider(world.at(place), place, {}, name);
      expect(answer.location, place).toMatch(location);
    }
  }
});

it.each(["database", "cookie"] as const)(
  "a list that is written to the context at run time is the application's, with states in the %s",
  async (storeStateStrategy) => {
    const world = await createSocialWorld({ auth: { account: { storeStateStrategy } } });
    await world.configure("acme");
    const ctx = await world.auth.$context;
    ctx.socialProviders = [...ctx.socialProviders];
    for (const place of PLACES) {
      const browser = world.at(place);
      const { data } = await world.start(browser, place);
      const isOwn = queryOf(data.url).client_id !== GLOBAL.clientId;
      expect([place, isOwn]).toEqual([place, place === "acme"]);
      await world.signInAtProvider(browser, place);
      expect(await world.whoIs(browser, place)).toMatchObject({ tenantId: world.ids[place] });
    }
  },
);

it("a list that is made of what a tenant shows is the application's as well", async () => {
  const world = await createSocialWorld();
  await world.configure("acme");
  const ctx = await world.auth.$context;
  await runInTenant(String(world.ids.acme), async () => {
    ctx.socialProviders = [...ctx.socialProviders];
    const [first] = ctx.socialProviders;
    ctx.socialProviders[0] = first as OAuthProvider;
  });
  expect(ctx.socialProviders.map(({ id }) => id)).toEqual(["gitlab"]);
  for (const place of PLACES) {
    const answer = await world.signInAtProvider(world.at(place), place);
    expect(answer.location, place).toBe("/welcome");
  }
});

it("a hook may put functions around what a tenant shows", async () => {
  const around = (one: unknown) => async () => (typeof one === "function" ? one() : one);
  const before = createAuthMiddleware(async ({ context, path }) => {
    if (path !== "/sign-in/social") return;
    context.socialProviders = context.socialProviders.map(around) as never;
  });
  const world = await createSocialWorld({ auth: { hooks: { before } } });
  await world.configure("acme");
  for (const place of PLACES) {
    const { data } = await world.start(world.at(place), place);
    const isOwn = queryOf(data.url).client_id !== GLOBAL.clientId;
    expect([place, isOwn]).toEqual([place, place === "acme"]);
  }
});

it("functions behind the list are offered, and a policy may name them", async () => {
  const { github, slack } = socialProviders;
  const init = () => ({
    context: { socialProviders: [async () => github(GLOBAL), async () => slack(GLOBAL)] as never },
  });
  const world = await createSocialWorld({ plugins: [{ id: "functions", init }] });
  const query = { tenantId: String(world.ids.acme) };
  const { data } = await world.at("acme").get("/tenant/sign-in-methods", { query });
  expect(data.providers).toMatchObject([{ id: "github" }, { id: "slack" }]);
  const { policy } = await world.change("acme", { policy: { methods: ["social:slack"] } });
  expect(policy).toEqual({ methods: ["social:slack"] });
});

it("a provider may be copied, and written to, also in a frozen list", async () => {
  const names: unknown[] = [];
  const before = createAuthMiddleware(async ({ context, path }) => {
    if (path !== "/sign-in/social") return;
    const found: unknown = context.socialProviders[0];
    const one = (typeof found === "function" ? await found() : found) as OAuthProvider;
    for (const name of ["First", "Second"]) one.name = name;
    const copy = { ...one };
    names.push([copy.name, "toString" in copy, Object.hasOwn(one, "toString")]);
    context.socialProviders = [copy];
  });
  const init = ({ socialProviders: all }: AuthContext) => {
    Object.freeze(all);
  };
  const plugins = [{ id: "freezing", init }];
  const world = await createSocialWorld({ plugins, auth: { hooks: { before } } });
  for (const place of PLACES) {
    const answer = await world.signInAtProvider(world.at(place), place);
    expect(answer.location, place).toBe("/welcome");
  }
  expect(names).toEqual(PLACES.map(() => ["Second", true, false]));
});

it("a plugin's provider may have getters, which say that addresses have to be verified", async () => {
  class Corporation {
    readonly #id = "corp";
    get id() {
      return this.#id;
    }
    get options() {
      return { clientId: this.#id, requireEmailVerification: true };
    }
    get idToken() {
      return { verify: async () => this.#id === "corp" };
    }
    accountSubject = () => "1";
    createAuthorizationURL({ state, redirectURI }: { state: string; redirectURI: string }) {
      const query = new URLSearchParams({ state, redirect_uri: redirectURI });
      return new URL(`https://corp.example?${query}`);
    }
    validateAuthorizationCode = async () => ({ accessToken: "access" });
    async getUserInfo() {
      const user = { email: "corp@example.com", name: this.#id, emailVerified: false };
      return { user, data: { sub: "1" } };
    }
  }
  const provider = Object.freeze(new Corporation()) as unknown as OAuthProvider;
  const init = ({ socialProviders: others }: AuthContext) => ({
    context: { socialProviders: [provider, ...others] },
  });
  // A hook may copy what it finds.
  const copied: unknown[] = [];
  const before = createAuthMiddleware(async ({ context, path }) => {
    if (path !== "/callback/:id") return;
    copied.push(...context.socialProviders.map((one) => ({ ...one }).id));
  });
  const plugins = [{ id: "corporation", init }];
  const world = await createWorld({ plugins, auth: { hooks: { before } } });
  for (const place of PLACES) {
    const browser = world.at(place);
    const body = { provider: "corp", callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
    const { redirect_uri, state } = queryOf(data.url);
    const { location } = await browser.get(`${redirect_uri}?code=1&state=${state}`);
    expect(location, place).toMatch(/error=email_not_verified/);
    const idToken = { token: "a.b.c" };
    const answer = await browser.post("/sign-in/social", { provider: "corp", idToken });
    expect([answer.status, answer.code], place).toEqual([403, "EMAIL_NOT_VERIFIED"]);
  }
  expect(copied).toContain("corp");
  expect(copied).not.toContain(undefined);
});
