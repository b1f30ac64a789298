import { bearer, oneTap } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialWorld, GLOBAL, queryOf, type SocialWorld } from "../support/social";
import type { Person } from "../support/world";

/** Acme with a Google client of its own, and Jane signed in there. */
async function createChoice() {
  const { googleIdToken } = fakeGoogleAndGitHub();
  const world = await createSocialWorld({
    socialProviders: { google: GLOBAL },
    plugins: [bearer(), oneTap()],
  });
  await world.configure("acme", { providerId: "google", clientId: "client-a" });
  const jane = await world.as("jane", "acme");
  return { world, jane, idToken: (aud: string) => googleIdToken({ aud }) };
}

/** Ways in which a request says where it runs by a session alone. */
const bearing = ({ token }: Person) => ({ authorization: `Bearer ${token}` });
const CARRIERS: [name: string, carry: (world: SocialWorld, jane: Person) => Browser][] = [
  ["a bearer token", (world, jane) => world.browser(bearing(jane))],
  ["a cookie", (_, jane) => jane.fork({})],
  ["a cookie and the same bearer token", (_, jane) => jane.fork(bearing(jane))],
];

/** Where an id token signs somebody in. */
const ENTRANCES: [path: string, body: (token: string) => object][] = [
  ["/sign-in/social", (token) => ({ provider: "google", idToken: { token } })],
  ["/one-tap/callback", (idToken) => ({ idToken })],
];

interface SignedIn {
  user: { tenantId: string | null };
}

describe("root 6: where a session alone names the tenant", () => {
  const cases = CARRIERS.flatMap(([name, carry]) =>
    ENTRANCES.map(([path, body]) => [path, name, carry, body] as const),
  );
  it.each(cases)(
    "%s with %s: an id token has to be for Acme's client",
    async (path, _, carry, body) => {
      const { world, jane, idToken } = await createChoice();
      const { status, data } = await world.unchanged(() =>
        carry(world, jane).post(path, body(idToken(GLOBAL.clientId))),
      );
      expect(status, JSON.stringify(data)).toBeGreaterThanOrEqual(400);
      const own = await carry(world, jane).post<SignedIn>(path, body(idToken("client-a")));
      expect([own.status, own.data.user?.tenantId]).toEqual([200, world.ids.acme]);
      expect(await world.rows("user", "email = 'alice@example.com'")).toBe(1);
    },
  );

  it.each(ENTRANCES)(
    "%s: control: with nobody signed in, the platform's client is the platform's",
    async (path, body) => {
      const { world, idToken } = await createChoice();
      const answer = await world.at(null).post<SignedIn>(path, body(idToken(GLOBAL.clientId)));
      expect([answer.status, answer.data.user?.tenantId]).toEqual([200, null]);
      const refused = await world.at(null).post(path, body(idToken("client-a")));
      expect(refused.status).toBeGreaterThanOrEqual(400);
    },
  );

  it.each(CARRIERS)(
    "with %s, redirects and linked accounts are Acme's client's",
    async (_, carry) => {
      const { world, jane, idToken } = await createChoice();
      const body = { provider: "google", callbackURL: "/welcome" };
      for (const path of ["/sign-in/social", "/link-social"]) {
        const { data, status } = await carry(world, jane).post<{ url: string }>(path, body);
        expect(status, path).toBe(200);
        const { client_id, redirect_uri } = queryOf(data.url);
        expect([client_id, redirect_uri]).toEqual([
          "client-a",
          expect.stringMatching(/\/tenant\/callback\/google/),
        ]);
      }
      const link = (aud: string) =>
        carry(world, jane).post("/link-social", {
          provider: "google",
          idToken: { token: idToken(aud) },
        });
      expect((await link(GLOBAL.clientId)).status).toBeGreaterThanOrEqual(400);
      expect(await world.rows("account", `"providerId" = 'google'`)).toBe(0);
      await world.touchesOnly("acme", () => link("client-a"));
    },
  );
});

/** Somebody at Acme with an account at a provider, where Acme has configs for others too. */
async function createConfigured(provider: "gitlab" | "github") {
  fakeGoogleAndGitHub();
  const world = await createSocialWorld({ socialProviders: { google: GLOBAL, github: GLOBAL } });
  world.idp.rules.refreshTokens = true;
  for (const providerId of ["gitlab", "github", "google", "discord"]) {
    await world.configure("acme", { providerId });
  }
  const browser = world.at(null);
  const { data } = await world.start(browser, "acme", { provider });
  const { state = "" } = queryOf(data.url);
  const back =
    provider === "gitlab"
      ? await browser.get(await world.idp.authorize(data.url, "alice"))
      : await browser.get("/tenant/callback/github", { query: { code: "a-code", state } });
  expect(back.location).toBe("/welcome");
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

describe("root 6: configs that cannot be read", () => {
  it.each([
    ["gitlab", "a header", "acme"],
    ["gitlab", "the session alone", null],
    ["github", "a header", "acme"],
    ["github", "the session alone", null],
  ] as const)(
    "keep nobody from the tokens of %s, in a tenant named by %s",
    async (provider, _, at) => {
      const { world, browser: signedIn, accountId, spoil } = await createConfigured(provider);
      const browser = world.at(at, signedIn);
      const ask = async () => ({
        access: (await browser.post("/get-access-token", { accountId })).status,
        refresh: (await browser.post("/refresh-token", { accountId })).code,
        info: (await browser.get("/account-info", { query: { accountId } })).status,
      });
      // GitHub gives out no refresh tokens.
      const refresh = provider === "github" ? "REFRESH_TOKEN_NOT_FOUND" : undefined;
      // Control: before they are spoilt everything works.
      expect(await ask()).toEqual({ access: 200, refresh, info: 200 });
      await spoil();
      expect(await ask()).toEqual({ access: 200, refresh, info: 200 });
    },
  );

  it("stop the sign-in that would need them, and no other", async () => {
    const { world, spoil } = await createConfigured("gitlab");
    await spoil();
    const browser = world.at(null);
    expect((await world.signInAtProvider(browser, "acme")).location).toBe("/welcome");
    expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids.acme });
    const refused = await world.start(world.at(null), "acme", { provider: "google" });
    expect([refused.status, refused.code]).toEqual([500, "OAUTH_CREDENTIAL_DECRYPT_FAILED"]);
  });
});
