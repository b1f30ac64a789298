import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { beforeEach, describe, expect, it } from "vitest";
import { createOAuthTenant, type OAuthTenant } from "../features/oauth/tenant";
import { findLeaks } from "./secret-spy";
import { shareWorld } from "./world";

const SECRET = 'a client secret with "quotes" & more';
const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: SECRET };
const IN_OK = "a secret in the answer of /api/auth/ok";

/** What a plugin tells that it should not, after every request. */
let leak: { body?: string; header?: string } = {};
const handler = createAuthMiddleware(async (ctx) => {
  if (leak.header) ctx.setHeader("x-told", leak.header);
  return leak.body ? ctx.json({ told: leak.body }) : undefined;
});
const leaking: BetterAuthPlugin = {
  id: "leaking",
  hooks: { after: [{ matcher: () => "body" in leak || "header" in leak, handler }] },
};

describe("the spy that every test runs under", () => {
  const world = shareWorld({ plugins: [leaking] });
  let acme: OAuthTenant;
  const cipher = async () => String((await acme.stored())[0]?.clientSecret);
  const list = () => world.api.listTenantOAuthConfigs({ query: { tenantId: acme.id } });

  beforeEach(async () => {
    leak = {};
    acme = await createOAuthTenant(world);
    await acme.register(GOOGLE);
  });

  it("is silent while nothing leaks, and hears answers and headers, of requests and of calls", async () => {
    await list();
    expect(await findLeaks()).toEqual([]);
    leak = { body: `it is ${SECRET}` };
    await world.browser().get("/ok");
    expect(await findLeaks()).toEqual([IN_OK]);
    // A body that nobody reads.
    await world.auth.handler(new Request("http://localhost:3000/api/auth/ok"));
    expect(await findLeaks()).toEqual([IN_OK]);
    await list();
    expect(await findLeaks()).toContain("a secret in the answer of listTenantOAuthConfigs");
    leak = { header: encodeURIComponent(SECRET) };
    await world.browser().get("/ok");
    expect(await findLeaks()).toEqual([IN_OK]);
    leak = { body: await cipher() };
    await world.browser().get("/ok");
    expect(await findLeaks()).toEqual(["cipher text in the answer of /api/auth/ok"]);
  });
});
