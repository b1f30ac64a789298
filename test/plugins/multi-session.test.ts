import { multiSession } from "better-auth/plugins";
import { beforeEach, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { EMAIL, expectRefused, type Place, type SessionAnswer, shareWorld } from "../support/world";

const world = shareWorld({ plugins: [multiSession()] });

describe("multiSession", () => {
  const tokens = { acme: "", globex: "", platform: "" };
  let browser: Browser;
  /** One browser that is signed in at every place, one after the other. */
  beforeEach(async () => {
    await world.janes();
    browser = world.at("platform");
    for (const place of ["platform", "acme", "globex"] as const) {
      // Naming it: unnamed, the second sign-in would run where the first one led to.
      const options = { headers: world.naming(place) };
      const body = { email: EMAIL, password: PASSWORD };
      const { data } = await browser.post<{ token: string }>("/sign-in/email", body, options);
      tokens[place] = data.token;
    }
  });

  const activate = (window: Browser, place: Place) =>
    window.post("/multi-session/set-active", { sessionToken: tokens[place] });

  /** From wherever the browser is now, back to Acme. */
  async function expectBackAtAcme(from: Browser) {
    const window = world.at("acme", from);
    expect((await activate(window, "acme")).status).toBe(200);
    const { id } = await world.as("jane", "acme");
    expect(await world.whoIs(window)).toMatchObject({ id });
  }

  it.each(["acme", "globex"] as const)("R5: lists the sessions of %s only there", async (place) => {
    const window = world.at(place, browser);
    const path = "/multi-session/list-device-sessions";
    const { data } = await world.unchanged(() => window.get<SessionAnswer[]>(path));
    expect(data.map(({ session }) => session.token)).toEqual([tokens[place]]);
    await expectBackAtAcme(window);
  });

  it("R5: cannot switch to a session of Acme, or revoke it, elsewhere, and keeps its cookie", async () => {
    const window = world.at("globex", browser);
    await world.unchanged(async () => {
      expectRefused(await activate(window, "acme"), 401, "INVALID_SESSION_TOKEN");
      await window.fork().post("/multi-session/revoke", { sessionToken: tokens.acme });
    });
    await expectBackAtAcme(window);
  });

  it("R5: signing out of one tenant leaves the other signed in", async () => {
    const window = world.at("globex", browser);
    expect((await window.post("/sign-out")).status).toBe(200);
    expect(await world.rows("session", "token = ?", [tokens.globex])).toBe(0);
    await expectBackAtAcme(window);
  });
});
