import { getOAuthState } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { databases } from "../support/database";
import { BASE_URL } from "../support/instance";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialWorld, GLOBAL, shareSocialWorld } from "../support/social";
import { outcome, queryOf } from "../support/world";

const PATH = "/tenant/sign-in/social";
const CALLBACK = `${BASE_URL}/tenant/callback/gitlab`;
const ALICE = "alice@example.com";
const NOT_FOUND = [404, "PROVIDER_NOT_FOUND"];

describe.each(databases)("social sign-in on %s", (database) => {
  it("signs a new user up in the tenant, with its own credentials, and later in again", async () => {
    const seen: string[] = [];
    const note = (what: string) => async () => void seen.push(`${what} ${getTenantId()}`);
    const hooks = (model: string) => ({
      create: { before: note(`before ${model}`), after: note(`after ${model}`) },
    });
    const world = await createSocialWorld({
      database,
      auth: {
        databaseHooks: {
          user: hooks("user"),
          account: hooks("account"),
          session: hooks("session"),
          verification: hooks("state"),
        },
      },
    });
    const { clientId, clientSecret } = await world.configure("acme");
    const tenantId = world.ids.acme;
    const browser = world.browser();
    const { status, data, location } = await world.start(browser, "acme");
    expect([status, data]).toEqual([200, { url: location, redirect: true }]);
    expect(data.url.startsWith(`${world.idp.issuer}/oauth/authorize?`)).toBe(true);
    const pkce = { response_type: "code", code_challenge_method: "S256" };
    const sent = { client_id: clientId, redirect_uri: CALLBACK };
    expect(queryOf(data.url)).toMatchObject({ ...sent, ...pkce });

    const url = await world.idp.authorize(data.url, "alice");
    const back = await world.touchesOnly("acme", () => browser.get(url));
    expect([back.status, back.location]).toEqual([302, "/welcome"]);
    const exchanges = world.idp.exchanges().map(({ params }) => params);
    expect(exchanges).toMatchObject([{ ...sent, client_secret: clientSecret }]);
    const alice = await world.whoIs(browser, "acme");
    expect(alice).toMatchObject({ email: ALICE, tenantId });
    for (const table of ["user", "account", "session"]) {
      expect(await world.rowsIn("acme", table)).toHaveLength(1);
    }
    expect(await world.rows("verification")).toBe(0);
    // The hooks run inside the tenant, at the start and in the callback.
    const models = ["user", "account", "session", "state"].map((model) => `${model} ${tenantId}`);
    const expected = models.flatMap((model) => [`before ${model}`, `after ${model}`]);
    expect(seen.sort()).toEqual(expected.sort());

    const again = world.browser();
    const page = { newUserCallbackURL: "/first-time" };
    expect((await world.signInAtProvider(again, "acme", page)).location).toBe("/welcome");
    expect(await world.whoIs(again, "acme")).toEqual(alice);
    expect([await world.rows("user"), await world.rows("session")]).toEqual([1, 2]);
  });

  it("keeps two people and two tenants apart", async () => {
    const world = await createSocialWorld({ database });
    await world.configure("acme");
    const ids = new Set<string | undefined>();
    for (const [place, other, username] of [
      ["acme", "globex", "alice"],
      ["acme", "globex", "bob"],
      ["globex", "acme", "alice"],
    ] as const) {
      const browser = world.browser();
      await world.signInAtProvider(browser, place, {}, username);
      const somebody = await world.whoIs(browser, place);
      expect(somebody?.email).toBe(`${username}@example.com`);
      ids.add(somebody?.id);
      // R5: elsewhere it is no session.
      expect(await world.whoIs(browser, other)).toBeNull();
    }
    expect(ids.size).toBe(3);
  });
});

describe("which provider it is", () => {
  it("falls back to the global one's credentials and scopes, but never to its redirectURI", async () => {
    const gitlab = { redirectURI: "https://elsewhere.example/cb", scope: ["global_scope"] };
    const world = await createSocialWorld({ gitlab });
    const disabled = (await world.createTenant()).id;
    await world.configure("acme", { scopes: ["api", "email"] });
    await world.configure(disabled, { enabled: false });
    for (const [where, client_id, scope] of [
      ["acme", `client-${world.ids.acme}`, "read_user api email"],
      ["globex", GLOBAL.clientId, "read_user global_scope"],
      [disabled, GLOBAL.clientId, "read_user global_scope"],
    ] as const) {
      const browser = world.browser();
      const { data } = await world.start(browser, where);
      const sent = { client_id, redirect_uri: CALLBACK };
      expect(queryOf(data.url)).toMatchObject({ ...sent, scope });
      const back = await browser.get(await world.idp.authorize(data.url, "alice"));
      expect(back.location).toBe("/welcome");
      expect(world.idp.exchanges().at(-1)?.params).toMatchObject(sent);
      expect(await world.whoIs(browser, where)).toMatchObject({ tenantId: world.idOf(where) });
    }
  });

  it("sends the config's redirectURI to both endpoints of the provider", async () => {
    const world = await createSocialWorld();
    const redirectURI = "https://login.tenant.example/back";
    await world.configure("acme", { redirectURI });
    const browser = world.browser();
    const url = await world.authorize(browser, "acme");
    expect(url.startsWith(`${redirectURI}?`)).toBe(true);
    // The tenant's host hands the request on to the callback.
    const back = await browser.get("/tenant/callback/gitlab", { query: queryOf(url) });
    expect(back.location).toBe("/welcome");
    expect(world.idp.exchanges()[0]?.params.redirect_uri).toBe(redirectURI);
  });

  it("is a tenant's own where there is no global one, and nobody else's", async () => {
    const world = await createSocialWorld({ gitlab: false });
    await world.configure("acme");
    await world.configure("globex", { enabled: false });
    const bare = (await world.createTenant()).id;
    const { location } = await world.signInAtProvider(world.browser(), "acme");
    expect(location).toBe("/welcome");
    await world.unchanged(async () => {
      for (const where of ["globex", bare, null]) {
        const answer = await world.start(world.browser(), where);
        expect([...outcome(answer), answer.location]).toEqual([...NOT_FOUND, null]);
      }
      const unknown = await world.start(world.browser(), "acme", { provider: "nobody" });
      expect(outcome(unknown)).toEqual(NOT_FOUND);
      const body = { tenantId: world.ids.globex, provider: "gitlab" };
      const call = world.api.signInSocialTenant({ body });
      const error = { statusCode: 404, body: { code: "PROVIDER_NOT_FOUND" } };
      await expect(call).rejects.toMatchObject(error);
    });
  });
});

describe("a sign-in", () => {
  let invitation: unknown;
  const world = shareSocialWorld({
    auth: {
      databaseHooks: {
        user: {
          create: {
            before: async () => {
              invitation = (await getOAuthState())?.invitation;
            },
          },
        },
      },
    },
  });

  it("R2: a tenant is needed, and has to exist", async () => {
    await world.unchanged(async () => {
      const none = await world.browser().post(PATH, { provider: "gitlab" });
      expect(outcome(none)).toEqual([400, "TENANT_ID_REQUIRED"]);
      const unknown = await world.start(world.browser(), "no-such-tenant");
      expect(outcome(unknown)).toEqual([404, "TENANT_NOT_FOUND"]);
    });
  });

  it.each([PATH, "/sign-in/social"])("R1: the header names the tenant at %s", async (path) => {
    const { id } = await world.createTenant();
    const { clientId } = await world.configure(id);
    const browser = world.at(id);
    const body = { provider: "gitlab", callbackURL: "/welcome" };
    const { data } = await browser.post<{ url: string }>(path, body);
    expect(queryOf(data.url)).toMatchObject({ client_id: clientId, redirect_uri: CALLBACK });
    // A provider sends the browser back without any header of ours.
    const back = await browser.fork({}).get(await world.idp.authorize(data.url, "alice"));
    expect(back.location).toBe("/welcome");
    expect(await world.rowsIn(id, "session")).toHaveLength(1);
  });

  it("starts from the server's own code, and the browser finishes", async () => {
    const { clientId } = await world.configure("acme");
    const { response, headers } = await world.api.signInSocialTenant({
      body: { tenantId: world.ids.acme, provider: "gitlab", callbackURL: "/welcome" },
      returnHeaders: true,
    });
    const url = response.url ?? "";
    expect([response.redirect, headers.get("location")]).toEqual([true, url]);
    expect(queryOf(url).client_id).toBe(clientId);
    const person = world.browser();
    person.keepCookies(headers);
    const back = await person.get(await world.idp.authorize(url, "alice"));
    expect(back.location).toBe("/welcome");
    expect(await world.whoIs(person, "acme")).toMatchObject({ tenantId: world.ids.acme });
  });

  it("disableRedirect leaves the way to the caller", async () => {
    const { data, location } = await world.start(world.browser(), "acme", {
      disableRedirect: true,
    });
    expect([data, location]).toEqual([{ url: expect.any(String), redirect: false }, null]);
  });

  it("scopes, loginHint and additionalParams go to the provider, within limits", async () => {
    const asked = { scopes: ["api"], loginHint: ALICE, additionalParams: { audience: "all" } };
    const { data } = await world.start(world.browser(), "acme", asked);
    const sent = { scope: "read_user api", login_hint: ALICE, audience: "all" };
    expect(queryOf(data.url)).toMatchObject(sent);
    const evil = { additionalParams: { redirect_uri: "https://evil.example" } };
    const refused = await world.start(world.browser(), "acme", evil);
    expect(outcome(refused)).toEqual([400, "VALIDATION_ERROR"]);
  });

  it("newUserCallbackURL is where new users go, and additionalData comes along", async () => {
    const { id } = await world.createTenant();
    const page = { newUserCallbackURL: "/first-time", additionalData: { invitation: "from Bob" } };
    const back = await world.signInAtProvider(world.browser(), id, page);
    expect([back.location, invitation]).toEqual(["/first-time", "from Bob"]);
    // Without a page of its own it leads to the application.
    const nowhere = await world.signInAtProvider(world.browser(), id, { callbackURL: undefined });
    expect(nowhere.location).toBe("http://localhost:3000");
  });
});

describe.each(["the tenant's config", "the global provider"])("with %s", (whose) => {
  async function open(options: Parameters<typeof createSocialWorld>[0]) {
    const world = await createSocialWorld(options);
    if (whose === "the tenant's config") await world.configure("acme");
    const signIn = async (body: object = {}, browser = world.browser()) => {
      const { location } = await world.signInAtProvider(browser, "acme", { ...body });
      return location;
    };
    const users = () => world.rowsIn("acme", "user");
    return { world, signIn, users };
  }

  it("mapProfileToUser, overrideUserInfoOnSignIn and disableDefaultScope are used", async () => {
    const { world, signIn, users } = await open({
      gitlab: {
        mapProfileToUser: ({ username, name }) => ({ name: `Mapped ${username}, ${name}` }),
        overrideUserInfoOnSignIn: true,
        disableDefaultScope: true,
      },
    });
    await signIn();
    expect(await users()).toMatchObject([{ name: "Mapped alice, alice" }]);
    world.idp.addPerson("alice", { name: "Renamed" });
    await signIn();
    expect(await users()).toMatchObject([{ name: "Mapped alice, Renamed" }]);
    const { data } = await world.start(world.browser(), "acme", { scopes: ["only_this"] });
    expect(queryOf(data.url).scope).toBe("only_this");
  });

  it("disableSignUp lets nobody in who is not there", async () => {
    const { world, signIn, users } = await open({ gitlab: { disableSignUp: true } });
    expect(await signIn({ requestSignUp: true })).toBe("/failed?error=signup_disabled");
    expect([await users(), await world.rows("session")]).toEqual([[], 0]);
  });

  it("disableImplicitSignUp wants requestSignUp", async () => {
    const { signIn, users } = await open({ gitlab: { disableImplicitSignUp: true } });
    expect(await signIn()).toBe("/failed?error=signup_disabled");
    expect(await users()).toEqual([]);
    expect(await signIn({ requestSignUp: true })).toBe("/welcome");
    expect(await users()).toHaveLength(1);
    expect(await signIn()).toBe("/welcome");
  });

  it("requireEmailVerification holds back a session, and the mail leads into the tenant", async () => {
    const { world, signIn, users } = await open({ gitlab: { requireEmailVerification: true } });
    world.idp.addPerson("alice", { email_verified: false });
    expect(await signIn()).toBe("/failed?error=email_not_verified");
    expect(await world.rows("session")).toBe(0);
    expect(world.mails).toHaveLength(1);
    // R6: the link is opened in a browser that knows nothing about the tenant.
    await world.browser().get(world.lastMail("verification").url);
    expect(await users()).toMatchObject([{ emailVerified: 1 }]);
    expect(await signIn()).toBe("/welcome");
  });
});

/* Whose id tokens are good where, at every provider: test/oauth/provider-id-tokens.servers.test.ts. */
describe("with an id token", () => {
  async function open(google: object = {}) {
    const internet = fakeGoogleAndGitHub();
    const world = await createSocialWorld({
      socialProviders: { google: { ...GLOBAL, ...google } },
    });
    for (const place of ["acme", "globex"]) {
      await world.configure(place, { providerId: "google", clientId: `client-of-${place}` });
    }
    const signIn = (where: "acme" | "globex", claims: object = {}, more: object = {}) => {
      const token = internet.googleIdToken({ aud: `client-of-${where}`, ...claims });
      const body = { provider: "google", idToken: { token }, ...more };
      return world.start(world.browser(), where, body);
    };
    return { world, internet, signIn };
  }

  it("threat: identity collision: one Google account in two tenants is two users", async () => {
    const { world, signIn } = await open();
    for (const place of ["acme", "globex"] as const) {
      const { data } = await world.touchesOnly(place, () => signIn(place));
      const user = { email: ALICE, tenantId: world.ids[place] };
      expect(data).toMatchObject({ redirect: false, token: expect.any(String), user });
      expect(data.url).toBeUndefined();
    }
    // Who is at Acme already does not get into Globex with Acme's token.
    const refused = await world.unchanged(() => signIn("globex", { aud: "client-of-acme" }));
    expect(outcome(refused)).toEqual([401, "INVALID_TOKEN"]);
  });

  it("refuses a token that somebody changed", async () => {
    const { world, internet, signIn } = await open();
    const claims = { aud: "client-of-acme" };
    const [header, , signature] = internet.googleIdToken(claims).split(".");
    const [, payload] = internet.googleIdToken({ ...claims, sub: "the-victim" }).split(".");
    const idToken = { token: [header, payload, signature].join(".") };
    const refused = await world.unchanged(() => signIn("acme", {}, { idToken }));
    expect(outcome(refused)).toEqual([401, "INVALID_TOKEN"]);
  });

  it("disableImplicitSignUp of the global provider is taken over", async () => {
    const { world, signIn } = await open({ disableImplicitSignUp: true });
    const refused = await world.unchanged(() => signIn("acme"));
    expect(outcome(refused)).toEqual([401, "OAUTH_LINK_ERROR"]);
    expect((await signIn("acme", {}, { requestSignUp: true })).status).toBe(200);
  });

  it("disableIdTokenSignIn is taken over, and a provider without id tokens says so", async () => {
    const { world, signIn } = await open({ disableIdTokenSignIn: true });
    const gitlab = { idToken: { token: "a.b.c" } };
    for (const answer of [
      await signIn("acme"),
      await world.start(world.browser(), "acme", gitlab),
    ]) {
      expect(outcome(answer)).toEqual([404, "ID_TOKEN_NOT_SUPPORTED"]);
    }
  });
});
