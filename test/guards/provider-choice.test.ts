import { bearer, oneTap } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialInstance, GLOBAL, queryOf } from "../support/social";

/** Tenant A with a Google client of its own, and somebody signed in there. */
async function createChoice() {
  const internet = fakeGoogleAndGitHub();
  const app = await createSocialInstance({
    socialProviders: { google: GLOBAL },
    plugins: [bearer(), oneTap()],
  });
  const { id: a } = await app.createTenant();
  await app.configure(a, { providerId: "google", clientId: "client-a" });
  const bob = await app.signUp(a, "bob@example.com");
  const idToken = (aud: string) => internet.googleIdToken({ aud });
  return { app, a, bob, idToken };
}

type Choice = Awaited<ReturnType<typeof createChoice>>;

/** Ways in which a request says where it runs by a session alone. */
const CARRIERS: [name: string, carry: (choice: Choice) => Browser][] = [
  ["a bearer token", ({ app, bob }) => app.browser({ authorization: `Bearer ${bob.token}` })],
  ["a cookie", ({ bob }) => bob.browser.fork({})],
  [
    "a cookie and the same bearer token",
    ({ bob }) => bob.browser.fork({ authorization: `Bearer ${bob.token}` }),
  ],
];

/** Where an id token signs somebody in. */
const ENTRANCES: [path: string, body: (token: string) => object][] = [
  ["/sign-in/social", (token) => ({ provider: "google", idToken: { token } })],
  ["/one-tap/callback", (idToken) => ({ idToken })],
];

const cases = CARRIERS.flatMap(([name, carry]) =>
  ENTRANCES.map(([path, body]) => [path, name, carry, body] as const),
);

describe("root 6: an id token where a session alone names the tenant", () => {
  it.each(cases)(
    "%s with %s: one for the platform's client makes nobody in A",
    async (path, _, carry, body) => {
      const choice = await createChoice();
      const { app, a, idToken } = choice;
      const answer = await carry(choice).post(path, body(idToken(GLOBAL.clientId)));
      const alice = `email = 'alice@example.com' and "tenantId" = ?`;
      expect(await app.rows("user", alice, [a])).toBe(0);
      expect(await app.rows("account", `"providerId" = 'google' and "tenantId" = ?`, [a])).toBe(0);
      expect(answer.status, JSON.stringify(answer.data)).toBeGreaterThanOrEqual(400);
    },
  );

  it.each(cases)(
    "%s with %s: one for A's own client signs in at A",
    async (path, _, carry, body) => {
      const choice = await createChoice();
      const { app, a, idToken } = choice;
      const answer = await carry(choice).post<{ user: { tenantId: string } }>(
        path,
        body(idToken("client-a")),
      );
      expect(answer.status, JSON.stringify(answer.data)).toBe(200);
      expect(answer.data.user.tenantId).toBe(a);
      expect(await app.rows("user", "email = 'alice@example.com'")).toBe(1);
    },
  );

  it.each(ENTRANCES)(
    "%s: control: with nobody signed in, the platform's client is the platform's",
    async (path, body) => {
      const { app, idToken } = await createChoice();
      const browser = app.browser();
      const answer = await browser.post<{ user: { tenantId: string | null } }>(
        path,
        body(idToken(GLOBAL.clientId)),
      );
      expect([answer.status, answer.data.user?.tenantId]).toEqual([200, null]);
      const refused = await app.browser().post(path, body(idToken("client-a")));
      expect(refused.status).toBeGreaterThanOrEqual(400);
    },
  );

  it.each(CARRIERS)("a redirect that is started with %s goes to A's client", async (_, carry) => {
    const choice = await createChoice();
    const body = { provider: "google", callbackURL: "/welcome" };
    for (const path of ["/sign-in/social", "/link-social"]) {
      const { data, status } = await carry(choice).post<{ url: string }>(path, body);
      expect(status, path).toBe(200);
      const url = new URL(data.url);
      expect(url.searchParams.get("client_id"), path).toBe("client-a");
      expect(url.searchParams.get("redirect_uri"), path).toMatch(/\/tenant\/callback\/google/);
    }
  });

  it.each(CARRIERS)(
    "an id token that is linked with %s has to be for A's client",
    async (_, carry) => {
      const choice = await createChoice();
      const { app, a, idToken } = choice;
      const link = (aud: string) => ({ provider: "google", idToken: { token: idToken(aud) } });
      const refused = await carry(choice).post("/link-social", link(GLOBAL.clientId));
      expect(refused.status).toBeGreaterThanOrEqual(400);
      expect(await app.rows("account", `"providerId" = 'google'`)).toBe(0);
      await carry(choice).post("/link-social", link("client-a"));
      const linked = await app.rows("account", `"providerId" = 'google' and "tenantId" <> ?`, [a]);
      expect(linked).toBe(0);
    },
  );
});

/** Somebody in A with an account at a provider, where A has configs for others too. */
async function createConfigured(provider: "gitlab" | "github") {
  fakeGoogleAndGitHub();
  const app = await createSocialInstance({ socialProviders: { google: GLOBAL, github: GLOBAL } });
  app.idp.rules.refreshTokens = true;
  const { id: a } = await app.createTenant();
  for (const providerId of ["gitlab", "github", "google", "discord"]) {
    await app.configure(a, { providerId });
  }
  const browser = app.browser();
  const { data } = await app.start(browser, a, { provider });
  const { state = "" } = queryOf(data.url);
  const back =
    provider === "gitlab"
      ? await browser.get(await app.idp.authorize(data.url, "alice"))
      : await browser.get("/tenant/callback/github", { query: { code: "a-code", state } });
  expect(back.location).toBe("/welcome");
  const accounts = await browser.get<{ id: string }[]>("/list-accounts");
  /** Nobody can read any of the other configs from now on. */
  const spoil = () =>
    app.database.query(
      `update "tenantOauthConfig" set "clientSecret" = 'spoilt', "clientId" = 'spoilt'
       where "providerId" <> ?`,
      [provider],
    );
  return { app, a, browser, accountId: accounts.data[0]?.id ?? "", spoil };
}

describe("root 6: configs that cannot be read", () => {
  const NAMING: [string, (a: string) => Record<string, string>][] = [
    ["a header", (a) => ({ "x-tenant-id": a })],
    ["the session alone", () => ({})],
  ];
  const ways = (["gitlab", "github"] as const).flatMap((provider) =>
    NAMING.map(([name, headers]) => [provider, name, headers] as const),
  );

  it.each(ways)(
    "keep nobody from the tokens of %s, in a tenant named by %s",
    async (provider, _, headers) => {
      const { a, browser: signedIn, accountId, spoil } = await createConfigured(provider);
      const browser = signedIn.fork(headers(a));
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

  it("do not keep people from signing in with another provider", async () => {
    const { app, a, spoil } = await createConfigured("gitlab");
    await spoil();
    const browser = app.browser();
    expect((await app.signIn(browser, a)).location).toBe("/welcome");
    expect((await app.whoIs(browser, a))?.session.tenantId).toBe(a);
  });

  it("control: still stop the sign-in that would need them", async () => {
    const { app, a, spoil } = await createConfigured("gitlab");
    await spoil();
    const refused = await app.start(app.browser(), a, { provider: "google" });
    expect([refused.status, refused.code]).toEqual([500, "OAUTH_CREDENTIAL_DECRYPT_FAILED"]);
  });
});
