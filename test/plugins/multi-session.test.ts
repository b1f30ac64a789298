import { multiSession } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createPlaces, EMAIL, expectRefused, type PLACES, type SessionAnswer } from "./places";

/** One browser that is signed in at every place, one after the other. */
async function createOpenPlaces() {
  const places = await createPlaces([multiSession()]);
  const browser = places.instance.browser();
  const people = {
    a: await places.signUp("a"),
    b: await places.signUp("b"),
    platform: await places.signUp("platform"),
  };
  const tokens = { a: "", b: "", platform: "" };
  for (const place of ["platform", "a", "b"] as const) {
    // Naming it: unnamed, the second sign-in would run where the first one led to.
    const path = place === "platform" ? "/sign-in/email" : "/tenant/sign-in/email";
    const body = { email: EMAIL, password: PASSWORD, tenantId: places.ids[place] ?? undefined };
    const answer = await browser.post<{ token: string }>(path, body);
    expect(answer.status).toBe(200);
    tokens[place] = answer.data.token;
  }
  const seenFrom = (place: (typeof PLACES)[number]) => browser.fork(places.naming(place));
  return { ...places, browser, people, tokens, seenFrom };
}

describe("multiSession", () => {
  it("R5: lists the sessions of the named tenant only, and keeps the others", async () => {
    const { seenFrom, people, rows } = await createOpenPlaces();
    for (const place of ["a", "b"] as const) {
      const { data } = await seenFrom(place).get<SessionAnswer[]>(
        "/multi-session/list-device-sessions",
      );
      expect(data.map(({ user }) => user.id)).toEqual([people[place].user.id]);
    }
    expect(await rows("session")).toBe(6);
  });

  it("switches back to A in a request that names A", async () => {
    const { seenFrom, tokens, whoIs, people } = await createOpenPlaces();
    const browser = seenFrom("a");
    const body = { sessionToken: tokens.a };
    expect((await browser.post("/multi-session/set-active", body)).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ id: people.a.user.id });
  });

  it("R5: cannot switch to a session of A, or revoke it, at B", async () => {
    const { seenFrom, tokens, unchanged, rows } = await createOpenPlaces();
    const body = { sessionToken: tokens.a };
    const refused = await unchanged(() => seenFrom("b").post("/multi-session/set-active", body));
    expectRefused(refused, 401, "INVALID_SESSION_TOKEN");
    await unchanged(() => seenFrom("b").post("/multi-session/revoke", body));
    expect(await rows("session", "token = ?", [tokens.a])).toBe(1);
  });

  it("R5: a refusal at B leaves the cookie of A's session in the browser", async () => {
    const { seenFrom, tokens, people, naming, whoIs } = await createOpenPlaces();
    const browser = seenFrom("b");
    await browser.post("/multi-session/set-active", { sessionToken: tokens.a });
    const back = browser.fork(naming("a"));
    await back.post("/multi-session/set-active", { sessionToken: tokens.a });
    expect(await whoIs(back, "a")).toMatchObject({ id: people.a.user.id });
  });

  it("R5: signing out of B leaves A signed in", async () => {
    const { seenFrom, tokens, naming, rows, whoIs, people } = await createOpenPlaces();
    const browser = seenFrom("b");
    expect((await browser.post("/sign-out")).status).toBe(200);
    expect(await rows("session", "token = ?", [tokens.b])).toBe(0);
    expect(await rows("session", "token = ?", [tokens.a])).toBe(1);
    const back = browser.fork(naming("a"));
    await back.post("/multi-session/set-active", { sessionToken: tokens.a });
    expect(await whoIs(back, "a")).toMatchObject({ id: people.a.user.id });
  });
});
