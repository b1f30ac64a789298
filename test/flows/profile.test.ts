import { describe, expect, it } from "vitest";
import { ACTORS, createPeople, passwordOf } from "./people";

const NEW_PASSWORD = "a brand new password";

describe.each(ACTORS)("the account at %s, named by %s", (place, way) => {
  it("update-user", async () => {
    const { window, userAt, touchesOnly } = await createPeople();
    const answer = await touchesOnly(place, () =>
      window(place, way).post("/update-user", { name: "New name", image: "https://x.test/i.png" }),
    );
    expect(answer.status).toBe(200);
    expect(await userAt(place)).toMatchObject({ name: "New name", image: "https://x.test/i.png" });
  });

  it("change-password", async () => {
    const { window, touchesOnly, expectSignsIn, expectRefused } = await createPeople();
    await touchesOnly(place, async () => {
      const answer = await window(place, way).post("/change-password", {
        currentPassword: passwordOf(place),
        newPassword: NEW_PASSWORD,
      });
      expect(answer.status).toBe(200);
    });
    await expectSignsIn(place, NEW_PASSWORD);
    await expectRefused(place);
  });

  it("R3: change-password does not take the password of a namesake elsewhere", async () => {
    const { window, changesNothing } = await createPeople();
    const answer = await changesNothing(() =>
      window(place, way).post("/change-password", {
        currentPassword: passwordOf("b"),
        newPassword: NEW_PASSWORD,
      }),
    );
    expect([answer.status, answer.code]).toEqual([400, "INVALID_PASSWORD"]);
  });

  it("change-password with revokeOtherSessions: a new session, in the same place", async () => {
    const { window, signIn, rowsIn, touchesOnly, ids } = await createPeople();
    await signIn(place);
    const me = window(place, way);
    const answer = await touchesOnly(place, () =>
      me.post<{ token: string }>("/change-password", {
        currentPassword: passwordOf(place),
        newPassword: NEW_PASSWORD,
        revokeOtherSessions: true,
      }),
    );
    expect(answer.status).toBe(200);
    const sessions = await rowsIn(place, "session");
    expect(sessions.map(({ token }) => token)).toEqual([answer.data.token]);
    const { data } = await me.get<{ session: { tenantId: string | null } }>("/get-session");
    expect(data.session.tenantId).toBe(ids[place]);
  });

  it("set-password, a call of the server's own code", async () => {
    const { instance, window, people, touchesOnly, expectSignsIn, rowsIn, changesNothing } =
      await createPeople();
    const me = window(place, way);
    const setPassword = () =>
      instance.api.setPassword({
        body: { newPassword: NEW_PASSWORD },
        headers: new Headers({ ...me.headers, cookie: me.cookieHeader() }),
      });
    await changesNothing(async () => {
      await expect(setPassword()).rejects.toMatchObject({ body: { code: "PASSWORD_ALREADY_SET" } });
    });
    // As somebody who came by a social provider: no password yet.
    const { database } = instance;
    const mine = `${database.quote("userId")} = ?`;
    await database.query(`delete from ${database.quote("account")} where ${mine}`, [
      people[place].id,
    ]);
    await touchesOnly(place, async () => {
      expect(await setPassword()).toEqual({ status: true });
    });
    expect(await rowsIn(place, "account")).toHaveLength(1);
    await expectSignsIn(place, NEW_PASSWORD);
  });

  it("verify-password: the person's own, and no namesake's", async () => {
    const { window, touchesOnly, changesNothing } = await createPeople();
    const me = window(place, way);
    const verify = (password: string) => me.post("/verify-password", { password });
    await touchesOnly(place, async () => {
      const own = await verify(passwordOf(place));
      expect([own.status, own.data]).toEqual([200, { status: true }]);
    });
    const other = await changesNothing(() => verify(passwordOf("b")));
    expect([other.status, other.code]).toEqual([400, "INVALID_PASSWORD"]);
  });

  it("delete-user with the password: one of the three goes", async () => {
    const { window, touchesOnly, everythingIn, expectRefused } = await createPeople();
    const me = window(place, way);
    await touchesOnly(place, async () => {
      const answer = await me.post("/delete-user", { password: passwordOf(place) });
      expect([answer.status, answer.data.message]).toEqual([200, "User deleted"]);
    });
    expect(await everythingIn(place)).toMatchObject({ user: [], session: [], account: [] });
    expect((await me.get("/get-session")).data).toBeNull();
    await expectRefused(place);
  });

  it("R3: delete-user does not take the password of a namesake elsewhere", async () => {
    const { window, changesNothing } = await createPeople();
    const answer = await changesNothing(() =>
      window(place, way).post("/delete-user", { password: passwordOf("b") }),
    );
    expect([answer.status, answer.code]).toEqual([400, "INVALID_PASSWORD"]);
  });
});
