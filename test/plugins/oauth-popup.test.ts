// What somebody who knows better-auth would expect of oauthPopup() inside a tenant.
import { bearer, oauthPopup } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { GLOBAL, queryOf, shareSocialWorld } from "../support/social";
import type { Place } from "../support/world";

const ORIGIN = "http://localhost:3000";
const POPUP = {
  provider: "gitlab",
  popupOrigin: ORIGIN,
  popupNonce: "a-nonce",
  callbackURL: "/in",
};

/** What the page of a popup hands to the window that opened it. */
function messageIn({ data }: Answer): Record<string, unknown> {
  const { text = "" } = data as { text?: string };
  const [, json = "{}"] = /<script type="application\/json"[^>]*>(.*?)<\/script>/s.exec(text) ?? [];
  return JSON.parse(json);
}

describe.each(["database", "cookie"] as const)("oauthPopup, state in the %s", (stateStrategy) => {
  const world = shareSocialWorld({ stateStrategy, plugins: [bearer(), oauthPopup()] });

  /** Opens a popup at a place, which a navigation can name in its query only, and agrees. */
  async function open(browser: Browser, place: Place) {
    if (place === "acme") await world.configure("acme");
    const named = { ...(world.ids[place] && { tenantId: world.ids[place] }) };
    const started = await browser.get("/oauth-popup/start", { query: { ...POPUP, ...named } });
    expect(started.status, JSON.stringify(started.data)).toBe(302);
    const { client_id } = queryOf(started.location);
    return { client_id, back: await world.idp.authorize(started.location ?? "", "alice") };
  }

  it.each([
    ["acme", "its own client", "/api/auth/tenant/callback/gitlab"],
    ["globex", "the application's client", "/api/auth/tenant/callback/gitlab"],
    ["platform", "the application's client", "/api/auth/callback/gitlab"],
  ] as const)(
    "at %s goes to %s, and hands over a token of a session there",
    async (place, _, path) => {
      const browser = world.at(null);
      const { client_id, back } = await open(browser, place);
      expect(new URL(back).pathname).toBe(path);
      expect(client_id).toBe(place === "acme" ? `client-${world.ids.acme}` : GLOBAL.clientId);
      const page = await browser.get(back);
      expect([page.status, page.headers.get("content-type")]).toEqual([
        200,
        expect.stringContaining("text/html"),
      ]);
      const message = messageIn(page);
      expect(message).toMatchObject({
        type: "better-auth:oauth-popup",
        targetOrigin: ORIGIN,
        nonce: "a-nonce",
        redirectTo: "/in",
        token: expect.any(String),
      });
      expect(world.idp.exchanges().at(-1)?.params.client_id).toBe(client_id);
      const embedded = world.browser({ authorization: `Bearer ${message.token}` });
      for (const window of [browser, embedded]) {
        expect(await world.whoIs(window)).toMatchObject({ tenantId: world.ids[place] });
      }
    },
  );

  it("hands over what went wrong", async () => {
    const browser = world.at(null);
    const { state = "" } = queryOf((await open(browser, "acme")).back);
    const query = { state, error: "access_denied" };
    const page = await browser.get("/tenant/callback/gitlab", { query });
    expect(messageIn(page)).toMatchObject({ nonce: "a-nonce", error: { code: "access_denied" } });
  });

  it.each([
    ["acme", "/callback/gitlab"],
    ["globex", "/callback/gitlab"],
    ["platform", "/tenant/callback/gitlab"],
  ] as const)("R6: a popup of %s is refused at %s", async (place, path) => {
    const browser = world.at(null);
    const { back } = await open(browser, place);
    const named = { ...(place === "platform" && { tenantId: world.ids.acme }) };
    const [users, sessions] = [await world.rows("user"), await world.rows("session")];
    const page = await browser.get(path, { query: { ...queryOf(back), ...named } });
    expect(messageIn(page)).not.toHaveProperty("token");
    expect(page.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    expect([await world.rows("user"), await world.rows("session")]).toEqual([users, sessions]);
  });
});
