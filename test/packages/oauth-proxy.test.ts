// What an attacker makes of it is in test/guards/oauth-proxy.test.ts.
import { oAuthProxy } from "better-auth/plugins";
import { expect, it } from "vitest";
import { createSocialWorld, GLOBAL } from "../support/social";
import { queryOf } from "../support/world";

const PREVIEW = "http://localhost:3000";
const PRODUCTION = "http://production.example.com";

it("oAuthProxy: flows of tenants start and end where people are, the platform's by production", async () => {
  // A preview of an application, whose client is registered for production only.
  const plugins = [oAuthProxy({ productionURL: PRODUCTION, currentURL: PREVIEW })];
  const world = await createSocialWorld({ plugins });
  await world.configure("acme");
  for (const [place, client_id] of [
    ["acme", `client-${world.ids.acme}`],
    ["globex", GLOBAL.clientId],
  ] as const) {
    const browser = world.at("platform");
    const { data } = await world.start(browser, place);
    const redirect_uri = `${PREVIEW}/api/auth/tenant/callback/gitlab`;
    expect(queryOf(data.url)).toMatchObject({ client_id, redirect_uri });
    const { status, location } = await browser.get(await world.idp.authorize(data.url, "alice"));
    expect([status, location]).toEqual([302, "/welcome"]);
    expect(await world.whoIs(browser, place)).toMatchObject({ tenantId: world.ids[place] });
  }
  expect(await world.rowsIn("platform", "user")).toEqual([]);
  const { data } = await world.start(world.at("platform"), "platform");
  expect(queryOf(data.url)).toMatchObject({
    client_id: GLOBAL.clientId,
    redirect_uri: `${PRODUCTION}/api/auth/callback/gitlab`,
  });
});
