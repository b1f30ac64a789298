import { bearer, oneTap } from "better-auth/plugins";
import { socialProviders } from "better-auth/social-providers";
import { describe, expect, it } from "vitest";
import type { Browser } from "../../support/browser";
import { startIdentityProvider } from "../../support/identity-provider";
import { BASE_URL } from "../../support/instance";
import { fakeGoogleAndGitHub } from "../../support/providers";
import {
  changingProviders,
  comeBack,
  createSocialWorld,
  GLOBAL,
  shareSocialWorld,
} from "../../support/social";
import { createWorld, type Person, PLACES, queryOf } from "../../support/world";

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

  it.each(ENTRANCES)("control: without a session, %s is the platform's", async (path, body) => {
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

it("a plugin's provider sends users of tenants back to the tenants' callback", async () => {
  const idp = await startIdentityProvider();
  idp.registerClient("client", "secret");
  idp.addPerson("alice");
  const redirectURI = `${BASE_URL}/callback/corp`;
  const client = { clientId: "client", clientSecret: "secret", issuer: idp.issuer, redirectURI };
  const provider = Object.freeze({ ...socialProviders.gitlab(client), id: "corp" });
  const world = await createWorld({ plugins: [changingProviders((all) => [provider, ...all])] });
  for (const place of PLACES) {
    const browser = world.at(place);
    const body = { provider: "corp", callbackURL: "/in", errorCallbackURL: "/failed" };
    const { data } = await browser.post<{ url: string }>("/sign-in/social", body);
    expect((await browser.get(await idp.authorize(data.url, "alice"))).location).toBe("/in");
    expect(await world.whoIs(browser, place)).toMatchObject({ tenantId: world.ids[place] });
    const tenantId = world.ids[place];
    if (!tenantId) continue;
    const methods = await browser.get("/tenant/sign-in-methods", { query: { tenantId } });
    expect(methods.data.providers).toEqual([{ id: "corp", name: "Gitlab" }]);
    const { policy } = await world.change(place, { policy: { methods: ["social:corp"] } });
    expect(policy).toEqual({ methods: ["social:corp"] });
  }
});

class Corporation {
  id = "corp";
}

it.each<[what: string, provider: object]>([
  ["a function", async () => socialProviders.gitlab(GLOBAL)],
  ["a class instance", new Corporation()],
])("a provider that is %s is refused at startup", async (_, provider) => {
  const starting = createWorld({ plugins: [changingProviders((all) => [...all, provider])] });
  await expect(starting).rejects.toThrow(/function or a class instance .* Write it as a plain/);
});

it("a frozen redirect URI is refused at startup", async () => {
  const gitlab = Object.freeze({ ...GLOBAL, redirectURI: `${BASE_URL}/callback/gitlab` });
  const starting = createWorld({ auth: { socialProviders: { gitlab } } });
  await expect(starting).rejects.toThrow(/gitlab are frozen.* Leave out the redirectURI/);
});

it("the platform's list of providers is the application's", async () => {
  const world = await createSocialWorld();
  const { socialProviders: all } = await world.auth.$context;
  expect(all.map(({ id }) => id)).toEqual(["gitlab"]);
});

it("addresses have to be verified in tenants, where a plugin's provider says so", async () => {
  const provider = {
    id: "corp",
    name: "Corporation",
    options: { clientId: "corp", requireEmailVerification: true },
    idToken: { verify: async () => true },
    accountSubject: () => "1",
    createAuthorizationURL({ state, redirectURI }: { state: string; redirectURI: string }) {
      const query = new URLSearchParams({ state, redirect_uri: redirectURI });
      return new URL(`https://corp.example?${query}`);
    },
    validateAuthorizationCode: async () => ({ accessToken: "access" }),
    async getUserInfo() {
      const user = { email: "corp@example.com", name: "Corp", emailVerified: false };
      return { user, data: { sub: "1" } };
    },
  };
  const world = await createWorld({ plugins: [changingProviders((all) => [provider, ...all])] });
  for (const place of PLACES) {
    const browser = world.at(place);
    const { location } = await comeBack(browser, "corp");
    expect(location, place).toMatch(/error=email_not_verified/);
    const idToken = { token: "a.b.c" };
    const answer = await browser.post("/sign-in/social", { provider: "corp", idToken });
    expect([answer.status, answer.code], place).toEqual([403, "EMAIL_NOT_VERIFIED"]);
  }
});
