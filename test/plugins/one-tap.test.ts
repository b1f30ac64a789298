import { oneTap } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { fakeGoogleAndGitHub } from "../support/providers";
import { GLOBAL } from "../support/social";
import { createWorld, PLACES, type Where } from "../support/world";

async function createTapWorld() {
  const { googleIdToken } = fakeGoogleAndGitHub();
  const auth = { socialProviders: { google: GLOBAL } };
  const world = await createWorld({ plugins: [oneTap()], auth });
  const tap = async (where: Where, aud: string) => {
    const browser = world.at(where);
    const answer = await browser.post("/one-tap/callback", { idToken: googleIdToken({ aud }) });
    return { ...answer, browser };
  };
  const configure = (place: "acme" | "globex") =>
    world.api.registerTenantOAuthConfig({
      body: {
        tenantId: String(world.ids[place]),
        providerId: "google",
        clientId: `client-${place}`,
        clientSecret: `secret-${place}`,
      },
    });
  return { ...world, tap, configure };
}

describe("oneTap", () => {
  it("threat: the same Google account is three people in three places", async () => {
    const { tap, whoIs, ids, rows } = await createTapWorld();
    for (const place of PLACES) {
      const { status, browser } = await tap(place, GLOBAL.clientId);
      expect(status).toBe(200);
      const person = { email: "alice@example.com", tenantId: ids[place] };
      expect(await whoIs(browser)).toMatchObject(person);
    }
    expect(await rows("user")).toBe(3);
  });

  it("threat: takes the tenant's own client id where it has a config, and no other", async () => {
    const world = await createTapWorld();
    await world.configure("acme");
    await world.configure("globex");
    for (const [where, audience] of [
      ["globex", "client-acme"],
      ["platform", "client-acme"],
      ["acme", GLOBAL.clientId],
    ] as const) {
      const refused = await world.unchanged(() => world.tap(where, audience));
      expect([where, audience, refused.status]).toEqual([where, audience, 400]);
      expect(refused.headers.getSetCookie()).toEqual([]);
    }
    const { status, browser } = await world.tap("acme", "client-acme");
    expect(status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids.acme });
  });
});
