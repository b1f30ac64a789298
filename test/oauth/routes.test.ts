import { expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { fakeNetwork } from "../support/providers";
import { expectRefused, shareWorld } from "../support/world";

const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: "acme-secret" };
const world = shareWorld();

it.each(["register", "list", "update", "check", "delete"])(
  "%s says nothing to those who may not manage, asks nobody; R2: needs a tenant",
  async (name) => {
    /** A good call of the endpoint about a tenant. */
    const call = (browser: Browser, named: { tenantId?: string }) => {
      const path = `/tenant/oauth-config/${name}`;
      if (name === "list") return browser.get(path, { query: { ...named } });
      const { clientId, ...changes } = GOOGLE;
      return browser.post(path, { ...(name === "update" ? changes : GOOGLE), ...named });
    };
    const acme = await world.oauthTenant();
    await acme.register(GOOGLE);
    const sent = fakeNetwork();
    const jane = await world.signUp(acme.id);
    const operator = await world.operator();
    await world.unchanged(async () => {
      for (const tenantId of [acme.id, "nobody"]) {
        expectRefused(await call(world.browser(), { tenantId }), 401, "UNAUTHORIZED");
        expectRefused(await call(jane, { tenantId }), 403, "TENANT_MANAGEMENT_NOT_ALLOWED");
      }
      expectRefused(await call(operator, {}), 400, "TENANT_ID_REQUIRED");
      expectRefused(await call(operator, { tenantId: "nobody" }), 404, "TENANT_NOT_FOUND");
    });
    expect(sent).toEqual([]);
  },
);

it("nobody but the server's own code can rotate", async () => {
  const { api } = world;
  const operator = await world.operator();
  expect(api.rotateTenantOAuthSecrets).not.toHaveProperty("path", expect.anything());
  for (const path of ["/tenant/oauth-config/rotate", "/rotateTenantOAuthSecrets", "/undefined"]) {
    expect([path, (await operator.post(path)).status]).toEqual([path, 404]);
  }
});
