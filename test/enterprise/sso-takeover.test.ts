import { describe, expect, it } from "vitest";
import { createSSOWorld, named, whoIs } from "./sso-world";

/*
 * The takeover that was seen: somebody ordinary registers an identity provider of their own, which
 * says of everybody that their address is verified, and comes back as whomever they like.
 */

const victimsOf = (world: Awaited<ReturnType<typeof createSSOWorld>>) => [
  { place: "at home", tenantId: world.acme.id, email: world.acme.admin.email },
  { place: "at another tenant", tenantId: world.globex.id, email: world.globex.admin.email },
  { place: "on the platform", tenantId: null, email: world.operatorUser.email },
];

const TRUSTING = { trustEmailVerified: true } as const;

describe("an identity provider from below", () => {
  it("is not registered by somebody ordinary, in a tenant or on the platform", async () => {
    const world = await createSSOWorld({ sso: TRUSTING });
    const ordinary = await world.signUp(null);
    for (const { browser } of [world.acme.member, ordinary]) {
      const answer = await browser.post("/sso/register", world.oidc("mine"));
      expect([answer.status, answer.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    }
    for (const { tenantId, email } of victimsOf(world)) {
      world.provider.addPerson("mallory", { email });
      const { answer, browser } = await world.signIn(tenantId, { providerId: "mine" }, "mallory");
      expect(answer.status).toBe(404);
      expect(await whoIs(browser)).toBeUndefined();
    }
  });

  it("of a tenant's administrator makes nobody of another tenant or of the platform", async () => {
    const world = await createSSOWorld({ sso: TRUSTING });
    const { status } = await world.acme.admin.browser.post("/sso/register", world.oidc("ours"));
    expect(status).toBe(200);
    for (const { tenantId, email } of victimsOf(world).slice(1)) {
      world.provider.addPerson("mallory", { email });
      const ways: Record<string, string>[] = [{ providerId: "ours" }, { domain: "acme.example" }];
      for (const by of ways) {
        const { answer, browser } = await world.signIn(tenantId, by, "mallory");
        expect(answer.status).toBe(404);
        expect(await whoIs(browser)).toBeUndefined();
      }
      // Started at home, and carried elsewhere.
      const browser = world.browser();
      const started = await world.start(world.acme.id, { providerId: "ours" }, browser);
      const back = await world.provider.authorize(started.data.url, "mallory");
      await browser.get(back, { headers: named(tenantId) });
      const somebody = await whoIs(browser);
      if (somebody) expect(somebody.tenantId).toBe(world.acme.id);
      const elsewhere = await browser.get("/get-session", { headers: named(tenantId) });
      expect(tenantId === null || elsewhere.data === null).toBe(true);
    }
  });

  it("cannot be shared: the start is refused", async () => {
    await expect(
      createSSOWorld({ tenant: { scopedModels: [], sharedModels: ["ssoProvider"] } }),
    ).rejects.toThrow('scopedModels: ["ssoProvider"]');
  });
});
