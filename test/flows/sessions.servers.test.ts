import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { ACTORS, createPeople, EMAIL, PLACES, passwordOf, type SessionAnswer } from "./people";

type SessionRow = SessionAnswer["session"];

describe.each(databases)("signing up and in on %s", (database) => {
  it("R3: sign-up: one e-mail is three people, and each place takes it once", async () => {
    const { instance, people, ids, stranger, changesNothing } = await createPeople({ database });
    expect(new Set(PLACES.map((place) => people[place].id)).size).toBe(3);
    for (const place of PLACES) {
      const body = { name: "Again", email: EMAIL, password: "another password" };
      const again = await changesNothing(() => stranger(place).post("/sign-up/email", body));
      expect(again.status).toBe(422);
      expect(again.code).toBe("USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
      const where = `email = ? and ${instance.database.quote("tenantId")} = ?`;
      expect(await instance.rows("user", where, [EMAIL, ids[place] ?? ""])).toBe(1);
    }
  });

  it("R3: sign-in: each password opens its own place only", async () => {
    const { people, ids, signIn, expectRefused } = await createPeople({ database });
    for (const place of PLACES) {
      const { status, data, browser } = await signIn(place);
      expect([status, data.user.id]).toEqual([200, people[place].id]);
      const session = await browser.get<SessionAnswer>("/get-session");
      expect(session.data.session.tenantId).toBe(ids[place]);
      for (const other of PLACES.filter((candidate) => candidate !== place)) {
        await expectRefused(other, passwordOf(place));
      }
    }
  });

  it.each(ACTORS)("R4: sign-up at %s by %s lands there", async (place, way) => {
    const { ids, window, touchesOnly, instance } = await createPeople({ database });
    const body = { name: "New", email: "new@example.com", password: "another password" };
    const answer = await touchesOnly(place, () => window(place, way).post("/sign-up/email", body));
    expect(answer.data.user).toMatchObject({ email: body.email, tenantId: ids[place] });
    expect(await instance.rows("user", "email = ?", [body.email])).toBe(1);
  });
});

describe.each(ACTORS)("sessions at %s, named by %s", (place, way) => {
  /** The person of the place, signed in twice more. */
  async function createSessions() {
    const people = await createPeople();
    const more = [(await people.signIn(place)).data.token, (await people.signIn(place)).data.token];
    const tokens = async () =>
      (await people.rowsIn(place, "session")).map(({ token }) => String(token)).sort();
    const own = await people.window(place, way).get<SessionAnswer>("/get-session");
    return { ...people, mine: own.data.session.token, more, tokens, me: people.window(place, way) };
  }

  it("get-session: who is signed in, and where", async () => {
    const { me, people, ids, touchesOnly } = await createSessions();
    const { data } = await touchesOnly(place, () => me.get<SessionAnswer>("/get-session"));
    expect(data.user).toMatchObject({ id: people[place].id, email: EMAIL, tenantId: ids[place] });
    expect(data.session).toMatchObject({ userId: people[place].id, tenantId: ids[place] });
  });

  it("list-sessions: the person's own, and nobody else's", async () => {
    const { me, tokens, mine, more, touchesOnly } = await createSessions();
    const { data } = await touchesOnly(place, () => me.get<SessionRow[]>("/list-sessions"));
    expect(data.map(({ token }) => token).sort()).toEqual([mine, ...more].sort());
    expect(await tokens()).toEqual([mine, ...more].sort());
  });

  it("sign-out: ends this session, here", async () => {
    const { me, tokens, more, touchesOnly } = await createSessions();
    await touchesOnly(place, async () => {
      expect((await me.post("/sign-out")).status).toBe(200);
      expect((await me.get("/get-session")).data).toBeNull();
    });
    expect(await tokens()).toEqual([...more].sort());
  });

  it("revoke-session: one of the person's own; those of others are left alone", async () => {
    const { me, tokens, mine, more, touchesOnly, rowsIn } = await createSessions();
    await touchesOnly(place, async () => {
      for (const other of PLACES.filter((candidate) => candidate !== place)) {
        const [session] = await rowsIn(other, "session");
        await me.post("/revoke-session", { token: session?.token });
      }
      const answer = await me.post("/revoke-session", { token: more[0] });
      expect([answer.status, answer.data]).toEqual([200, { status: true }]);
    });
    expect(await tokens()).toEqual([mine, more[1]].sort());
  });

  it("revoke-other-sessions: this one stays", async () => {
    const { me, tokens, mine, touchesOnly } = await createSessions();
    await touchesOnly(place, async () => {
      expect((await me.post("/revoke-other-sessions")).status).toBe(200);
    });
    expect(await tokens()).toEqual([mine]);
  });

  it("revoke-sessions: none of the person's stays", async () => {
    const { me, tokens, touchesOnly, expectSignsIn } = await createSessions();
    await touchesOnly(place, async () => {
      expect((await me.post("/revoke-sessions")).status).toBe(200);
    });
    expect(await tokens()).toEqual([]);
    await expectSignsIn(place);
  });

  it("update-session: an additional field, on this session alone", async () => {
    const { me, mine, ids, rowsIn, touchesOnly } = await createSessions();
    const { data, status } = await touchesOnly(place, () =>
      me.post<{ session: SessionRow }>("/update-session", { theme: "dark" }),
    );
    expect(status).toBe(200);
    expect(data.session).toMatchObject({ token: mine, theme: "dark", tenantId: ids[place] });
    const themes = (await rowsIn(place, "session")).filter(({ theme }) => theme === "dark");
    expect(themes.map(({ token }) => token)).toEqual([mine]);
    expect((await me.get<SessionAnswer>("/get-session")).data.session.theme).toBe("dark");
  });

  it("R3: update-session: nobody moves to another tenant", async () => {
    const { me, ids, rowsIn, changesNothing } = await createSessions();
    const tenantId = ids[place === "b" ? "a" : "b"];
    await changesNothing(() => me.post("/update-session", { tenantId }));
    expect(await rowsIn(place, "session")).toHaveLength(3);
  });
});

describe("R5: a session of elsewhere", () => {
  it.each([
    ["get", "/list-sessions"],
    ["post", "/revoke-sessions"],
    ["post", "/revoke-other-sessions"],
    ["post", "/update-session"],
    ["post", "/update-user"],
  ] as const)(
    "R5: %s %s is a 401 at B with A's or the platform's session",
    async (method, path) => {
      const { window, header, changesNothing } = await createPeople();
      for (const place of ["a", "platform"] as const) {
        const abroad = window(place, "its session alone").fork(header("b"));
        const answer = await changesNothing(() =>
          method === "get" ? abroad.get(path) : abroad.post(path, { name: "Mine", theme: "dark" }),
        );
        expect([answer.status, answer.code]).toEqual([401, "UNAUTHORIZED"]);
      }
    },
  );
});
