import { describe, expect, it, onTestFinished, vi } from "vitest";
import { labelState, readState } from "../../src/naming/oauth-state";
import type { Answer, Browser, RequestOptions } from "../support/browser";
import { BASE_URL } from "../support/instance";
import { turnOf } from "../support/matrix";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createSocialWorld, GLOBAL, STATE_STRATEGIES, shareSocialWorld } from "../support/social";
import { queryOf } from "../support/world";

const CALLBACK = "/tenant/callback/gitlab";
const PLATFORMS_CALLBACK = "/callback/gitlab";
const ALICE = "alice@example.com";

describe.each(STATE_STRATEGIES)("a state in the %s", (stateStrategy) => {
  const world = shareSocialWorld({
    stateStrategy,
    socialProviders: { google: GLOBAL },
    tenant: { resolveTenantId: ({ headers }) => headers?.get("x-host-of-tenant") },
  });

  /** What a sign-in by a provider would add to; everybody with a password has one session. */
  async function signedIn() {
    const { quote } = world.database;
    const passwords = await world.rows("account", `${quote("providerId")} = 'credential'`);
    return {
      accounts: (await world.rows("account")) - passwords,
      users: await world.rows("user", "email = ?", [ALICE]),
      sessions: (await world.rows("session")) - passwords,
      exchanges: world.idp.exchanges().length,
    };
  }

  /** A tenant, and Alice, who has agreed at the provider and is about to come back to it. */
  async function onHerWay({ config = true } = {}) {
    const internet = fakeGoogleAndGitHub();
    const { id } = await world.createTenant();
    if (config) await world.configure(id);
    const browser = world.browser();
    const url = await world.authorize(browser, id);
    const before = await signedIn();
    return {
      id,
      browser,
      url,
      query: queryOf(url),

      /** A redirect with an error, nobody signed in, and no code sent to any provider. */
      async expectRefused(answer: Answer, error: string | RegExp = /./) {
        expect(answer.status).toBe(302);
        expect(answer.location).toMatch(/^(\/failed|http:\/\/localhost:3000\/api\/auth\/error)\?/);
        expect(queryOf(answer.location).error).toMatch(error);
        expect(await signedIn()).toEqual(before);
        expect(internet.exchanges()).toEqual([]);
        expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
      },
    };
  }

  /** A request that names a tenant besides its state. */
  async function naming(id: string, how: string, browser: Browser): Promise<RequestOptions> {
    if (how === "header") return { headers: { "x-tenant-id": id } };
    if (how === "resolver") return { headers: { "x-host-of-tenant": id } };
    if (how === "query") return { query: { tenantId: id } };
    const bob = await world.signUp(id, "bob@example.com");
    for (const [name, value] of bob.cookies) browser.cookies.set(name, value);
    return {};
  }

  describe("threat: state not bound to provider or tenant (R6)", () => {
    it("of google is refused at gitlab", async () => {
      const { id, browser, expectRefused } = await onHerWay();
      const { data } = await world.start(browser, id, { provider: "google" });
      const { state = "" } = queryOf(data.url);
      await expectRefused(await browser.get(CALLBACK, { query: { state, code: "any" } }));
    });

    it.each([
      ["at google", "/tenant/callback/google", true, /./],
      ["at what is no provider", "/tenant/callback/nobody", true, /./],
      ["at better-auth's own callback", PLATFORMS_CALLBACK, true, "state_mismatch"],
      ["there with the global credentials", PLATFORMS_CALLBACK, false, "state_mismatch"],
    ])("of a tenant's gitlab is refused %s", async (_, path, config, error) => {
      const { browser, query, expectRefused } = await onHerWay({ config });
      await expectRefused(await browser.get(path, { query }), error);
    });

    it.each(["header", "query", "session"])(
      "of a tenant is refused at better-auth's own callback if the %s names the tenant",
      async (how) => {
        const { id, browser, query, expectRefused } = await onHerWay();
        const named = await naming(id, how, browser);
        const all = { ...query, ...named.query };
        await expectRefused(await browser.get(PLATFORMS_CALLBACK, { ...named, query: all }));
      },
    );

    it("of the platform is refused at the tenants' callback", async () => {
      const { id, browser, expectRefused } = await onHerWay();
      for (const headers of [world.naming(null), world.naming(id)]) {
        const query = queryOf(await world.authorize(browser, null));
        await expectRefused(await browser.get(CALLBACK, { query, headers }));
      }
    });

    it("of the platform cannot be given a tenant by the client", async () => {
      const { id, browser, expectRefused } = await onHerWay({ config: false });
      const tenantAuth = { tenantId: id, providerId: "gitlab", credentials: "global" };
      const additionalData = { serverContext: { tenantAuth }, tenantAuth, tenantId: id };
      const query = queryOf(await world.authorize(browser, null, { additionalData }));
      await expectRefused(await browser.get(CALLBACK, { query }));
    });

    it("of one tenant cannot be given another by the client", async () => {
      const { id, browser } = await onHerWay({ config: false });
      const other = await world.createTenant();
      const tenantAuth = { tenantId: other.id, providerId: "gitlab", credentials: "global" };
      const additionalData = { serverContext: { tenantAuth }, tenantId: other.id };
      await world.signInAtProvider(browser, id, { additionalData });
      expect(await world.whoIs(browser, id)).toMatchObject({ email: ALICE, tenantId: id });
      expect(await world.rowsIn(other.id, "user")).toEqual([]);
    });

    it.each(["header", "query", "session", "resolver"])(
      "a %s that names another tenant changes nothing",
      async (how) => {
        const { id, browser, url } = await onHerWay();
        const other = await world.createTenant();
        const named = await naming(other.id, how, browser);
        const before = await world.everythingIn(other.id);
        expect((await browser.get(url, named)).location).toBe("/welcome");
        expect(await world.whoIs(browser, id)).toMatchObject({ email: ALICE, tenantId: id });
        expect(await world.everythingIn(other.id)).toEqual(before);
      },
    );

    it("is refused when it has expired", async () => {
      const { browser, url, expectRefused } = await onHerWay();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11 * 60 * 1000 });
      onTestFinished(() => void vi.useRealTimers());
      await expectRefused(await browser.get(url), "state_mismatch");
    });

    it("is refused without its cookie, and with that of another browser or tenant", async () => {
      const { id, browser, url, expectRefused } = await onHerWay();
      await expectRefused(await world.browser().get(url), "state_mismatch");
      const other = world.browser();
      await world.start(other, id);
      await expectRefused(await other.get(url), "state_mismatch");
      await world.start(browser, (await world.createTenant()).id);
      await expectRefused(await browser.get(url), "state_mismatch");
    });

    it("is refused when nobody knows it, and when it is missing", async () => {
      const { browser, query, expectRefused } = await onHerWay();
      const { code = "" } = query;
      const unknown = await browser.get(CALLBACK, { query: { code, state: "unknown" } });
      await expectRefused(unknown, "state_mismatch");
      await expectRefused(await browser.get(CALLBACK, { query: { code } }), "state_not_found");
      await expectRefused(await browser.get(CALLBACK), "state_not_found");
    });
  });

  describe("threat: token not consumed atomically", () => {
    /** One callback is good for one session. */
    async function expectOneSession(id: string, answers: Answer[]) {
      const failed = answers.filter(({ location }) => location !== "/welcome");
      expect(failed).toHaveLength(answers.length - 1);
      for (const { location } of failed) expect(queryOf(location)).toHaveProperty("error");
      expect(await world.rowsIn(id, "user")).toHaveLength(1);
      expect(await world.rowsIn(id, "session")).toHaveLength(1);
    }

    it("is good once", async () => {
      const { id, browser, url } = await onHerWay();
      const replay = browser.fork();
      await expectOneSession(id, [await browser.get(url), await replay.get(url)]);
      expect(queryOf((await browser.get(url)).location).error).toBe("state_mismatch");
    });

    it("is good once when it is redeemed 50 times in parallel", async () => {
      const { id, browser, url } = await onHerWay();
      const copies = Array.from({ length: 50 }, () => browser.fork());
      await expectOneSession(id, await Promise.all(copies.map((copy) => copy.get(url))));
    });
  });

  describe("threat: fail-open on bad config, in mid flow", () => {
    const remove = (tenantId: string) =>
      world.api.deleteTenantOAuthConfig({ body: { tenantId, providerId: "gitlab" } });
    const removeTenant = (tenantId: string) => world.api.deleteTenant({ body: { tenantId } });
    const spoil = (id: string) => {
      const { quote, query } = world.database;
      const set = `update ${quote("tenantOauthConfig")} set ${quote("clientSecret")} = 'x'`;
      return query(`${set} where ${quote("tenantId")} = ?`, [id]);
    };
    const usual = `${BASE_URL}/tenant/callback/gitlab`;
    const change = (config: object) => (id: string) => world.configure(id, config);

    const cases: [string, (id: string) => Promise<unknown>, config?: boolean, error?: string][] = [
      ["the config has another client id", change({ clientId: "another-client" })],
      ["it has another secret", change({ clientSecret: "new" })],
      ["it has another redirectURI", change({ redirectURI: "https://login.tenant.example/back" })],
      [
        "it has the usual one and a new secret",
        change({ redirectURI: usual, clientSecret: "new" }),
      ],
      ["it is disabled", change({ enabled: false })],
      ["it is deleted", remove],
      ["it cannot be decrypted any more", spoil],
      ["there is one, and was none", change({}), false, "state_mismatch"],
      ["the tenant is deleted, with its config", removeTenant],
      ["the tenant is deleted, which had none", removeTenant, false],
    ];
    const turn = STATE_STRATEGIES.indexOf(stateStrategy);
    it.each(turnOf(cases, 4, turn))(
      "is refused when %s",
      async (_, happens, config = true, error = "") => {
        const { id, browser, url, expectRefused } = await onHerWay({ config });
        await happens(id);
        await expectRefused(await browser.get(url), error || /./);
      },
    );

    it("is refused when the tenant is deleted and she had been there before", async () => {
      const { id, browser, url } = await onHerWay();
      await browser.get(url);
      const next = world.browser();
      const nextURL = await world.authorize(next, id);
      await removeTenant(id);
      const before = await signedIn();
      const back = await next.get(nextURL);
      expect(queryOf(back.location).error).toEqual(expect.any(String));
      expect(await signedIn()).toEqual(before);
      expect(await world.everythingIn(id)).toMatchObject({ user: [], account: [], session: [] });
    });
  });
});

it("threat: token not consumed atomically: not even if the provider takes a code twice", async () => {
  const world = await createSocialWorld();
  world.idp.rules.codesAreGoodOnce = false;
  const browser = world.browser();
  const url = await world.authorize(browser, "acme");
  await Promise.all(Array.from({ length: 50 }, () => browser.fork().get(url)));
  expect([await world.rows("user"), await world.rows("session")]).toEqual([1, 1]);
});

describe("the label of a state", () => {
  it.each(["1", "acme", "Zürich ✓", "a tenant / with = odd + letters"])("names %j", (tenantId) => {
    for (const signature of [undefined, "x".repeat(43)]) {
      const labelled = labelState("the-state_1", tenantId, signature);
      // There are providers that take nothing else.
      expect(labelled).toMatch(/^[\w-]+$/);
      expect(readState(labelled)).toEqual({ state: "the-state_1", tenantId, signature });
    }
  });

  it.each([undefined, null, "", "a-state", "004YWN", "004YWNt", "000the-state", "001!", "999YWNt"])(
    "is not read out of %j",
    (state) => expect(readState(state)).toBeUndefined(),
  );
});
