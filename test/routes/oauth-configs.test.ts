import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { fakeNetwork } from "../support/providers";
import { expectRefused, shareWorld } from "../support/world";

const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: "acme-secret" };
const NAMES = ["register", "list", "update", "check", "delete"] as const;

const world = shareWorld();

describe.each(NAMES)("%s", (name) => {
  /** A good call of the endpoint about a tenant. */
  const call = (browser: Browser, named: { tenantId?: string }) => {
    const path = `/tenant/oauth-config/${name}`;
    if (name === "list") return browser.get(path, { query: { ...named } });
    const { clientId, ...changes } = GOOGLE;
    return browser.post(path, { ...(name === "update" ? changes : GOOGLE), ...named });
  };

  it("says nothing to those who may not manage, asks nobody; R2: needs a tenant", async () => {
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
  });
});

it("register ignores what is not for the caller to set, and keeps a client id in any script", async () => {
  const clientId = "client \u{1f511} ключ 'quoted' \\ \"";
  const mine = { id: "mine", createdAt: "2001-01-01", updatedAt: "2001-01-01" };
  const acme = await world.oauthTenant();
  const { data, status } = await acme.register({ ...GOOGLE, clientId, ...mine });
  expect([status, data.clientId]).toEqual([200, clientId]);
  expect(data.id).not.toBe("mine");
  expect(data.createdAt + data.updatedAt).not.toContain("2001");
});

it("nobody but the server's own code can rotate", async () => {
  const { api } = world;
  const operator = await world.operator();
  expect(api.rotateTenantOAuthSecrets).not.toHaveProperty("path", expect.anything());
  for (const path of ["/tenant/oauth-config/rotate", "/rotateTenantOAuthSecrets", "/undefined"]) {
    expect([path, (await operator.post(path)).status]).toEqual([path, 404]);
  }
});
