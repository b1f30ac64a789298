import { describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { createPeople, EMAIL, type PeopleOptions, passwordOf, type SessionAnswer } from "./people";

const MODES: [name: string, options: PeopleOptions][] = [
  ["sessions in the database", {}],
  ["a cookie cache", { auth: { session: { cookieCache: { enabled: true, maxAge: 300 } } } }],
];

/** What somebody who is signed in at A may open at B. */
const visits: [name: string, status: number, visit: (tab: Browser) => Promise<Answer>][] = [
  ["get-session", 200, (tab) => tab.get("/get-session")],
  ["list-sessions", 401, (tab) => tab.get("/list-sessions")],
  ["update-user", 401, (tab) => tab.post("/update-user", { name: "Mine" })],
  ["change-password", 401, (tab) => tab.post("/change-password", PASSWORDS)],
  ["sign-out", 200, (tab) => tab.post("/sign-out")],
  ["a failed sign-in", 401, (tab) => tab.post("/sign-in/email", { email: EMAIL, password: "no" })],
];
const PASSWORDS = { currentPassword: passwordOf("a"), newPassword: "a brand new password" };

describe.each(MODES)("R5: one cookie for all tenants, with %s", (_, options) => {
  describe.each(["a", "platform"] as const)("somebody signed in at %s", (place) => {
    it.each(visits)("R5: opens B by %s, and keeps cookie and session", async (_, status, visit) => {
      const people = await createPeople(options);
      const tab = people.window(place, "its session alone").fork(people.header("b"));
      const before = new Map(tab.cookies);
      expect([...before.keys()]).toContain("better-auth.session_token");
      const answer = await people.changesNothing(() => visit(tab));
      expect(answer.status).toBe(status);
      expect(tab.cookies).toEqual(before);
      const home = await tab.fork({}).get<SessionAnswer>("/get-session");
      expect(home.data.user.id).toBe(people.people[place].id);
    });
  });

  it("a sign-in at B takes the place of the one at A in this browser, whose session lives on", async () => {
    const people = await createPeople(options);
    const tab = people.window("a", "its session alone").fork(people.header("b"));
    await tab.post("/sign-in/email", { email: EMAIL, password: passwordOf("b") });
    const { data } = await tab.fork({}).get<SessionAnswer>("/get-session");
    expect(data.user.id).toBe(people.people.b.id);
    expect(await people.rowsIn("a", "session")).toHaveLength(1);
    const elsewhere = await people.window("a", "its header").get<SessionAnswer>("/get-session");
    expect(elsewhere.data.user.id).toBe(people.people.a.id);
  });

  it("a sign-out where the session belongs drops the cookie", async () => {
    const people = await createPeople(options);
    const tab = people.window("a", "its header");
    await people.touchesOnly("a", () => tab.post("/sign-out"));
    expect(tab.cookies.size).toBe(0);
    expect(await people.rowsIn("a", "session")).toEqual([]);
  });

  it("an ended session loses its cookie where it belonged", async () => {
    const people = await createPeople(options);
    const tab = people.window("a", "its session alone");
    await people.window("a", "its header").post("/revoke-sessions");
    const { data } = await tab.get("/get-session", { query: { disableCookieCache: "true" } });
    expect(data).toBeNull();
    expect(tab.cookies.has("better-auth.session_token")).toBe(false);
  });
});
