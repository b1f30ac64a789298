import { describe, expect, it } from "vitest";
import { BASE_URL } from "../support/instance";
import { createAliceOnHerWay, queryOf, STATE_STRATEGIES } from "../support/social";

describe.each(STATE_STRATEGIES)("a state in the %s", (stateStrategy) => {
  const aliceIsOnHerWay = (options?: { config: boolean }) =>
    createAliceOnHerWay({ stateStrategy, ...options });

  describe("threat: fail-open on bad config, in mid flow", () => {
    type World = Awaited<ReturnType<typeof aliceIsOnHerWay>>;
    const other = { clientId: "another-client" };

    it.each<[string, (world: World) => Promise<unknown>]>([
      ["has another client id", ({ app, tenant }) => app.configure(tenant.id, other)],
      [
        "has another secret",
        ({ app, tenant }) => app.configure(tenant.id, { clientSecret: "new" }),
      ],
      [
        "has another redirectURI",
        ({ app, tenant }) =>
          app.configure(tenant.id, { redirectURI: "https://login.tenant.example/back" }),
      ],
      [
        "names the usual callback as its redirectURI, and has another secret",
        ({ app, tenant }) =>
          app.configure(tenant.id, {
            redirectURI: `${BASE_URL}/tenant/callback/gitlab`,
            clientSecret: "new",
          }),
      ],
      ["is disabled", ({ app, tenant }) => app.configure(tenant.id, { enabled: false })],
      [
        "is deleted",
        ({ app, tenant }) =>
          app.api.deleteTenantOAuthConfig({ body: { tenantId: tenant.id, providerId: "gitlab" } }),
      ],
      [
        "cannot be decrypted any more",
        ({ app }) => {
          const { quote, query } = app.database;
          return query(`update ${quote("tenantOauthConfig")} set ${quote("clientSecret")} = 'x'`);
        },
      ],
    ])("is refused when the config %s", async (_, change) => {
      const world = await aliceIsOnHerWay();
      await change(world);
      await world.expectRefused(await world.browser.get(world.url));
    });

    it("is refused when a config was registered since, in place of the global provider", async () => {
      const { app, tenant, browser, url, expectRefused } = await aliceIsOnHerWay({ config: false });
      await app.configure(tenant.id);
      await expectRefused(await browser.get(url), "state_mismatch");
    });

    it.each([true, false])(
      "is refused when the tenant is deleted (own config: %s)",
      async (config) => {
        const { app, tenant, browser, url, expectRefused } = await aliceIsOnHerWay({ config });
        await app.api.deleteTenant({ body: { tenantId: tenant.id } });
        await expectRefused(await browser.get(url));
      },
    );

    it("is refused when the tenant is deleted and she had been there before", async () => {
      const { app, tenant, browser, url } = await aliceIsOnHerWay();
      await browser.get(url);
      const next = app.browser();
      const nextURL = await app.authorize(next, tenant.id);
      await app.api.deleteTenant({ body: { tenantId: tenant.id } });
      const exchanged = app.idp.exchanges().length;
      const back = await next.get(nextURL);
      expect(queryOf(back.location).error).toEqual(expect.any(String));
      expect(app.idp.exchanges()).toHaveLength(exchanged);
      for (const table of ["user", "account", "session"]) expect(await app.rows(table)).toBe(0);
    });
  });
});
