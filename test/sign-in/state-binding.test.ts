import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Answer, Browser } from "../support/browser";
import {
  createAliceOnHerWay,
  createSocialInstance,
  queryOf,
  STATE_STRATEGIES,
} from "../support/social";

const CALLBACK = "/tenant/callback/gitlab";

describe.each(STATE_STRATEGIES)("a state in the %s", (stateStrategy) => {
  const aliceIsOnHerWay = (options?: { config: boolean }) =>
    createAliceOnHerWay({ stateStrategy, ...options });

  describe("threat: state not bound to provider or tenant (R6)", () => {
    it("of google is refused at gitlab", async () => {
      const { app, tenant, browser, expectRefused } = await aliceIsOnHerWay();
      const { data } = await app.start(browser, tenant.id, { provider: "google" });
      const { state = "" } = queryOf(data.url);
      await expectRefused(await browser.get(CALLBACK, { query: { state, code: "any" } }));
    });

    it("of gitlab is refused at google, and at what is no provider", async () => {
      const first = await aliceIsOnHerWay();
      await first.expectRefused(
        await first.browser.get("/tenant/callback/google", { query: first.query }),
      );
      const second = await aliceIsOnHerWay();
      await second.expectRefused(
        await second.browser.get("/tenant/callback/nobody", { query: second.query }),
      );
    });

    it("of a tenant is refused at better-auth's own callback", async () => {
      const { browser, query, expectRefused } = await aliceIsOnHerWay();
      await expectRefused(await browser.get("/callback/gitlab", { query }), "state_mismatch");
    });

    it("of a tenant with the global credentials is refused there as well", async () => {
      const { browser, query, expectRefused } = await aliceIsOnHerWay({ config: false });
      await expectRefused(await browser.get("/callback/gitlab", { query }), "state_mismatch");
    });

    it.each(["header", "query", "session"])(
      "of a tenant is refused there even if the %s names the tenant",
      async (place) => {
        const { app, browser, query, tenant, expectRefused } = await aliceIsOnHerWay();
        if (place === "session") {
          const bob = await app.signUp(tenant.id);
          for (const [name, value] of bob.browser.cookies) browser.cookies.set(name, value);
        }
        const back = await browser.get("/callback/gitlab", {
          headers: place === "header" ? { "x-tenant-id": tenant.id } : {},
          query: place === "query" ? { ...query, tenantId: tenant.id } : query,
        });
        await expectRefused(back);
      },
    );

    it("of the platform is refused at the tenants' callback", async () => {
      const { app, browser, tenant, expectRefused } = await aliceIsOnHerWay();
      const query = queryOf(await app.authorize(browser, null));
      await expectRefused(await browser.get(CALLBACK, { query }));
      const again = queryOf(await app.authorize(browser, null));
      const headers = { "x-tenant-id": tenant.id };
      await expectRefused(await browser.get(CALLBACK, { query: again, headers }));
    });

    it("of the platform cannot be given a tenant by the client", async () => {
      const { app, browser, tenant, expectRefused } = await aliceIsOnHerWay({ config: false });
      const tenantAuth = { tenantId: tenant.id, providerId: "gitlab", credentials: "global" };
      const additionalData = { serverContext: { tenantAuth }, tenantAuth, tenantId: tenant.id };
      const query = queryOf(await app.authorize(browser, null, { additionalData }));
      await expectRefused(await browser.get(CALLBACK, { query }));
    });

    it("of one tenant cannot be given another by the client", async () => {
      const { app, browser, tenant } = await aliceIsOnHerWay({ config: false });
      const other = await app.createTenant();
      const tenantAuth = { tenantId: other.id, providerId: "gitlab", credentials: "global" };
      const additionalData = { serverContext: { tenantAuth }, tenantId: other.id };
      await app.signIn(browser, tenant.id, { additionalData });
      expect((await app.whoIs(browser, tenant.id))?.user.tenantId).toBe(tenant.id);
      const column = app.database.quote("tenantId");
      expect(await app.rows("user", `${column} <> ?`, [tenant.id])).toBe(0);
    });

    it.each(["header", "query", "session"])(
      "a %s that names another tenant changes nothing",
      async (place) => {
        const { app, tenant, browser, url } = await aliceIsOnHerWay();
        const other = await app.createTenant();
        const inOther = async (table: string) =>
          app.rows(table, `${app.database.quote("tenantId")} = ?`, [other.id]);
        if (place === "session") {
          const bob = await app.signUp(other.id);
          for (const [name, value] of bob.browser.cookies) browser.cookies.set(name, value);
        }
        const before = await inOther("user");
        const back = await browser.get(url, {
          headers: place === "header" ? { "x-tenant-id": other.id } : {},
          query: place === "query" ? { tenantId: other.id } : {},
        });
        expect(back.location).toBe("/welcome");
        expect((await app.whoIs(browser, tenant.id))?.user).toMatchObject({
          email: "alice@example.com",
          tenantId: tenant.id,
        });
        expect(await inOther("user")).toBe(before);
        expect(await inOther("account")).toBe(before);
      },
    );

    it("a resolver that names another tenant changes nothing", async () => {
      const app = await createSocialInstance({
        stateStrategy,
        tenant: { resolveTenantId: ({ headers }) => headers?.get("x-host-of-tenant") },
      });
      const [a, b] = [await app.createTenant(), await app.createTenant()];
      const browser = app.browser();
      const url = await app.authorize(browser, a.id);
      const back = await browser.get(url, { headers: { "x-host-of-tenant": b.id } });
      expect(back.location).toBe("/welcome");
      expect((await app.whoIs(browser, a.id))?.user.tenantId).toBe(a.id);
      expect(await app.rows("user", `${app.database.quote("tenantId")} = ?`, [b.id])).toBe(0);
    });

    it("is refused when it has expired", async () => {
      const { browser, url, expectRefused } = await aliceIsOnHerWay();
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 11 * 60 * 1000 });
      onTestFinished(() => void vi.useRealTimers());
      await expectRefused(await browser.get(url), "state_mismatch");
    });

    it("is refused without its cookie", async () => {
      const { app, url, expectRefused } = await aliceIsOnHerWay();
      await expectRefused(await app.browser().get(url), "state_mismatch");
    });

    it("is refused with the cookie of another browser, in the same tenant", async () => {
      const { app, tenant, url, expectRefused } = await aliceIsOnHerWay();
      const other = app.browser();
      await app.start(other, tenant.id);
      await expectRefused(await other.get(url), "state_mismatch");
    });

    it("is refused with the cookie of another tenant's flow", async () => {
      const { app, browser, url, expectRefused } = await aliceIsOnHerWay();
      const other = await app.createTenant();
      await app.start(browser, other.id);
      await expectRefused(await browser.get(url), "state_mismatch");
    });

    it("is refused when nobody knows it, and when it is missing", async () => {
      const { browser, query, expectRefused } = await aliceIsOnHerWay();
      const { code = "" } = query;
      const unknown = await browser.get(CALLBACK, { query: { code, state: "unknown" } });
      await expectRefused(unknown, "state_mismatch");
      await expectRefused(await browser.get(CALLBACK, { query: { code } }), "state_not_found");
      await expectRefused(await browser.get(CALLBACK), "state_not_found");
    });
  });

  describe("threat: token not consumed atomically", () => {
    /** The session that one callback is good for. */
    async function expectOneSession(
      { app }: Awaited<ReturnType<typeof aliceIsOnHerWay>>,
      answers: Answer[],
    ) {
      expect(answers.filter(({ location }) => location === "/welcome")).toHaveLength(1);
      const failed = answers.filter(({ location }) => location !== "/welcome");
      expect(failed.every(({ location }) => "error" in queryOf(location))).toBe(true);
      expect([await app.rows("user"), await app.rows("session")]).toEqual([1, 1]);
    }

    it("is good once", async () => {
      const world = await aliceIsOnHerWay();
      const replay = world.browser.fork();
      const answers = [await world.browser.get(world.url), await replay.get(world.url)];
      await expectOneSession(world, answers);
      const again = await world.browser.get(world.url);
      expect(queryOf(again.location).error).toBe("state_mismatch");
    });

    it("is good once when it is redeemed 50 times in parallel", async () => {
      const world = await aliceIsOnHerWay();
      await expectOneSession(world, await redeem50(world.browser, world.url));
    });
  });
});

describe("threat: token not consumed atomically", () => {
  it("a state in the database is good once even if the provider takes a code twice", async () => {
    const app = await createSocialInstance();
    const tenant = await app.createTenant();
    app.idp.rules.codesAreGoodOnce = false;
    const browser = app.browser();
    await redeem50(browser, await app.authorize(browser, tenant.id));
    expect([await app.rows("user"), await app.rows("session")]).toEqual([1, 1]);
  });
});

function redeem50(browser: Browser, url: string) {
  return Promise.all(Array.from({ length: 50 }, () => browser.fork().get(url)));
}
