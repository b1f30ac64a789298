import { oneTap } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { fakeGoogleAndGitHub } from "../support/providers";
import { createPlaces, PLACES } from "./places";

async function createTapPlaces() {
  const { googleIdToken } = fakeGoogleAndGitHub();
  const google = { clientId: "global-client", clientSecret: "global-secret" };
  const places = await createPlaces([oneTap()], { auth: { socialProviders: { google } } });
  const idToken = (aud: string) => googleIdToken({ aud });
  const configure = (place: "a" | "b") =>
    places.instance.api.registerTenantOAuthConfig({
      body: {
        tenantId: places.ids[place] ?? "",
        providerId: "google",
        clientId: `client-${place}`,
        clientSecret: `secret-${place}`,
      },
    });
  return { ...places, idToken, configure };
}

const TAP = "/one-tap/callback";

describe("oneTap", () => {
  it("threat: the same Google account is three people in three places", async () => {
    const { at, idToken, whoIs, ids, rows } = await createTapPlaces();
    for (const place of PLACES) {
      const browser = at(place);
      const answer = await browser.post(TAP, { idToken: idToken("global-client") });
      expect(answer.status).toBe(200);
      expect(await whoIs(browser, place)).toMatchObject({
        email: "alice@example.com",
        tenantId: ids[place],
      });
    }
    expect(await rows("user")).toBe(3);
  });

  it("takes the tenant's own client id where it has a config", async () => {
    const { at, idToken, configure, whoIs, ids } = await createTapPlaces();
    await configure("a");
    const browser = at("a");
    expect((await browser.post(TAP, { idToken: idToken("client-a") })).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ tenantId: ids.a });
  });

  it("threat: a token for another client than the tenant's is refused", async () => {
    const { at, idToken, configure, unchanged } = await createTapPlaces();
    await configure("a");
    await configure("b");
    const tries = [
      ["b", "client-a"],
      ["platform", "client-a"],
      ["a", "global-client"],
    ] as const;
    for (const [place, audience] of tries) {
      const body = { idToken: idToken(audience) };
      const refused = await unchanged(() => at(place).post(TAP, body));
      expect([place, audience, refused.status]).toEqual([place, audience, 400]);
      expect(refused.headers.getSetCookie()).toEqual([]);
    }
  });
});
