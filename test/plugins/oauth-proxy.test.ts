// What an attacker makes of it is in test/guards/oauth-proxy.test.ts.
import { oAuthProxy } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createSocialInstance, GLOBAL, queryOf } from "../support/social";

const PREVIEW = "http://localhost:3000";
const PRODUCTION = "http://production.example.com";

/** A preview of an application, whose client is registered for production only. */
async function createPreview() {
  const app = await createSocialInstance({
    plugins: [oAuthProxy({ productionURL: PRODUCTION, currentURL: PREVIEW })],
  });
  const { id: a } = await app.createTenant("aa");
  const { id: b } = await app.createTenant("bb");
  await app.configure(a);
  return { app, a, b };
}

describe("oAuthProxy", () => {
  it("a tenant's flow starts and ends at the deployment where people are", async () => {
    const { app, a, b } = await createPreview();
    const clients = [
      [a, `client-${a}`],
      [b, GLOBAL.clientId],
    ] as const;
    for (const [tenantId, client] of clients) {
      const browser = app.browser();
      const { data } = await app.start(browser, tenantId);
      expect(queryOf(data.url)).toMatchObject({
        client_id: client,
        redirect_uri: `${PREVIEW}/api/auth/tenant/callback/gitlab`,
      });
      const answer = await browser.get(await app.idp.authorize(data.url, "alice"));
      expect([answer.status, answer.location]).toEqual([302, "/welcome"]);
      expect((await app.whoIs(browser, tenantId))?.session.tenantId).toBe(tenantId);
    }
    expect(await app.rows("user", `"tenantId" = ''`)).toBe(0);
  });

  it("the platform's flow goes through production", async () => {
    const { app } = await createPreview();
    const { data } = await app.start(app.browser(), null);
    expect(queryOf(data.url)).toMatchObject({
      client_id: GLOBAL.clientId,
      redirect_uri: `${PRODUCTION}/api/auth/callback/gitlab`,
    });
  });
});
