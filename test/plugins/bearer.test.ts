import { bearer } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createPlaces, EMAIL, expectRefused, PLACES, type SessionAnswer } from "./places";

async function createBearerPlaces() {
  const places = await createPlaces([bearer()]);
  const people = {
    a: await places.signUp("a"),
    b: await places.signUp("b"),
    platform: await places.signUp("platform"),
  };
  const authorization = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  return { ...places, people, authorization };
}

describe("bearer", () => {
  it("R4: a token is a session in its place, named or not", async () => {
    const { at, people, ids, authorization } = await createBearerPlaces();
    for (const place of PLACES) {
      for (const browser of [at(place), at("platform")]) {
        const options = authorization(people[place].token);
        const { data } = await browser.get<SessionAnswer>("/get-session", options);
        expect(data).toMatchObject({
          session: { tenantId: ids[place] },
          user: { id: people[place].user.id },
        });
      }
    }
  });

  it("R5: a token of A is no session at B, nor is the platform's", async () => {
    const { at, people, authorization, unchanged } = await createBearerPlaces();
    for (const from of ["a", "platform"] as const) {
      const options = authorization(people[from].token);
      const session = await unchanged(() => at("b").get("/get-session", options));
      expect(session.data).toBe(null);
      const list = await unchanged(() => at("b").get("/list-sessions", options));
      expectRefused(list, 401, "UNAUTHORIZED");
      const change = await unchanged(() => at("b").post("/update-user", { name: "X" }, options));
      expectRefused(change, 401, "UNAUTHORIZED");
    }
  });

  it("R4: unnamed, a token of A changes A's user and nobody else", async () => {
    const { at, people, authorization, rows } = await createBearerPlaces();
    const options = authorization(people.a.token);
    expect((await at("platform").post("/update-user", { name: "New" }, options)).status).toBe(200);
    expect(await rows("user", "name = 'New'")).toBe(1);
    expect(await rows("user", "name = 'New' and id = ?", [people.a.user.id])).toBe(1);
  });

  it("R4: unnamed, a sign-in that carries a token of A happens in A", async () => {
    const { at, people, authorization, ids, rows } = await createBearerPlaces();
    const body = { email: EMAIL, password: "correct horse battery" };
    const options = authorization(people.a.token);
    const answer = await at("platform").post<{ user: { id: string } }>(
      "/sign-in/email",
      body,
      options,
    );
    expect(answer.data.user.id).toBe(people.a.user.id);
    expect(await rows("session", '"tenantId" = ?', [ids.a])).toBe(2);
  });

  it("hands the token out at this plugin's own sign-in", async () => {
    const { at, ids, authorization } = await createBearerPlaces();
    const body = { email: EMAIL, password: "correct horse battery", tenantId: ids.a };
    const answer = await at("platform").post("/tenant/sign-in/email", body);
    const token = answer.headers.get("set-auth-token") ?? "";
    const { data } = await at("a").get<SessionAnswer>("/get-session", authorization(token));
    expect(data.session.tenantId).toBe(ids.a);
  });
});
