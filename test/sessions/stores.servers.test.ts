import { describe, expect, it } from "vitest";
import { EMAIL } from "../scope/triplets";
import { PASSWORD } from "../support/instance";
import { CREDENTIALS, createPeople, type SessionAnswer, STORES } from "./stores";

/** Whose session is no session where. A request that names no tenant follows its session. */
const ELSEWHERE = [
  ["a", "b"],
  ["b", "a"],
  ["platform", "a"],
  ["platform", "b"],
] as const;

const PEOPLE = ["a", "b", "platform"] as const;

describe.each(STORES.map((store) => [store.name, store] as const))("sessions in %s", (_, store) => {
  it("R5: elsewhere a session is no session, and lives on where it belongs", async () => {
    const people = await createPeople(store);
    for (const credential of CREDENTIALS) {
      for (const [person, at] of ELSEWHERE) {
        const label = `${person} at ${at} by ${credential}`;
        const seen = await people.as(person, at, credential).get("/get-session");
        expect([seen.status, seen.data], label).toEqual([200, null]);
        const requests = [
          people.as(person, at, credential).get("/list-sessions"),
          people.as(person, at, credential).post("/update-user", { name: "Across" }),
          people.as(person, at, credential).post("/revoke-sessions"),
        ];
        for (const { status, code } of await Promise.all(requests)) {
          expect([status, code], label).toEqual([401, "UNAUTHORIZED"]);
        }
        const { data } = await people
          .as(person, undefined, credential)
          .get<SessionAnswer>("/get-session");
        expect(data.user, label).toMatchObject({ id: people.people[person].user.id });
      }
    }
    expect(await people.instance.rows("user", "name = 'Across'")).toBe(0);
    for (const person of PEOPLE) expect((await people.alive(person))?.user.name).toBe("Somebody");
  });

  it("R5: the cookies of a session stay in the browser that looks elsewhere", async () => {
    const people = await createPeople(store);
    for (const [person, at] of ELSEWHERE) {
      const window = people.as(person, at);
      const token = window.cookies.get("better-auth.session_token");
      await window.get("/get-session");
      await window.get("/list-sessions");
      await window.post("/update-user", { name: "Across" });
      expect(window.cookies.get("better-auth.session_token"), `${person} at ${at}`).toBe(token);
      const { data } = await window.fork({}).get<SessionAnswer>("/get-session");
      expect(data.user.id, `${person} at ${at}`).toBe(people.people[person].user.id);
    }
  });

  it("R5: signing out elsewhere is not signing out here", async () => {
    const people = await createPeople(store);
    for (const [person, at] of ELSEWHERE) {
      const window = people.as(person, at);
      await window.post("/sign-out");
      const { data } = await window.fork({}).get<SessionAnswer | null>("/get-session");
      expect(data?.user.id, `${person} at ${at}`).toBe(people.people[person].user.id);
    }
  });

  it("R4: a request that names no tenant runs in the tenant of its session", async () => {
    const people = await createPeople(store);
    for (const credential of CREDENTIALS) {
      for (const person of PEOPLE) {
        const label = `${person} by ${credential}`;
        const { data } = await people
          .as(person, undefined, credential)
          .get<SessionAnswer>("/get-session");
        expect(data.session.tenantId, label).toBe(people.ids[person]);
        // This endpoint finds somebody by e-mail, and never asks for a session.
        people.mails.length = 0;
        await people
          .as(person, undefined, credential)
          .post("/request-password-reset", { email: EMAIL });
        expect(people.mails, label).toMatchObject([
          { userId: people.people[person].user.id, sentIn: people.ids[person] },
        ]);
      }
    }
  });

  it("R3: list, revoke and sign-out stay inside", async () => {
    const people = await createPeople(store);
    const tokens = (person: (typeof PEOPLE)[number]) => people.people[person].token;
    const listed = await people.as("a").get<{ token: string }[]>("/list-sessions");
    expect(listed.data.map(({ token }) => token)).toEqual([tokens("a")]);
    for (const person of ["b", "platform"] as const) {
      await people.as("a").post("/revoke-session", { token: tokens(person) });
    }
    await people.as("a").post("/revoke-other-sessions");
    // Signing out at B is about a session of B, and this is none.
    const elsewhere = people.as("a", "b");
    expect((await elsewhere.post("/sign-out")).status).toBe(200);
    for (const person of PEOPLE) {
      expect((await people.alive(person))?.user.id, person).toBe(people.people[person].user.id);
    }
    expect((await people.as("a").post("/revoke-sessions")).status).toBe(200);
    expect(await people.alive("a")).toBeNull();
    expect((await people.as("b").post("/sign-out")).status).toBe(200);
    expect(await people.alive("b")).toBeNull();
    expect((await people.alive("platform"))?.user.id).toBe(people.people.platform.user.id);
  });

  it("a refreshed session keeps its tenant", async () => {
    const people = await createPeople(store, { updateAge: 0 });
    const refresh = { query: { disableCookieCache: "true" } };
    for (const person of PEOPLE) {
      const window = people.as(person);
      const first = await window.get<SessionAnswer>("/get-session", refresh);
      const second = await window.get<SessionAnswer>("/get-session", refresh);
      expect(Date.parse(second.data.session.expiresAt)).toBeGreaterThan(
        Date.parse(first.data.session.expiresAt),
      );
      expect(second.data.session.tenantId).toBe(people.ids[person]);
      const { data } = await window.get<SessionAnswer>("/get-session");
      expect(data.session.tenantId).toBe(people.ids[person]);
    }
    for (const [person, at] of ELSEWHERE) {
      expect((await people.as(person, at).get("/get-session", refresh)).data).toBeNull();
    }
  });

  it("update-user changes the sessions of its own user only", async () => {
    const people = await createPeople(store);
    const window = people.as("a");
    expect((await window.post("/update-user", { name: "Renamed" })).status).toBe(200);
    const names = async (query: Record<string, string>) =>
      Promise.all(
        [window, people.as("b"), people.as("platform")].map(
          async (browser) =>
            (await browser.get<SessionAnswer>("/get-session", { query })).data.user.name,
        ),
      );
    const expected = ["Renamed", "Somebody", "Somebody"];
    expect(await names({ disableCookieCache: "true" })).toEqual(expected);
    expect(await names({})).toEqual(expected);
  });

  it("threat: sessions survive deletion: those of a deleted tenant are dead", async () => {
    const people = await createPeople(store);
    const second = people.instance.browser();
    const body = { tenantId: people.a, email: EMAIL, password: PASSWORD };
    expect((await second.post("/tenant/sign-in/email", body)).status).toBe(200);
    await people.instance.api.deleteTenant({ body: { tenantId: people.a } });
    const windows = [
      ...CREDENTIALS.flatMap((credential) => [
        people.as("a", undefined, credential),
        people.as("a", "a", credential),
      ]),
      second,
    ];
    for (const window of windows) {
      expect((await window.fork().get("/get-session")).data).toBeNull();
      const used = await window.fork().post("/update-user", { name: "Still here" });
      const named = "x-tenant-id" in window.headers;
      expect([used.status, used.code]).toEqual(
        named ? [404, "TENANT_NOT_FOUND"] : [401, "UNAUTHORIZED"],
      );
    }
    expect(await people.instance.rows("user", "name = 'Still here'")).toBe(0);
    for (const person of ["b", "platform"] as const) {
      expect((await people.alive(person))?.user.id).toBe(people.people[person].user.id);
    }
  });
});
