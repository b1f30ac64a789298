import { describe, expect, it } from "vitest";
import { ACTORS, outcome, passwordOf, shareWorld } from "../support/world";

const NEW_PASSWORD = "a brand new password";
const world = shareWorld();

describe.each(ACTORS)("the account at %s, named by %s", (place, way) => {
  const mine = passwordOf(place);
  const open = async () => {
    const people = await world.namesakes();
    return { people, me: people.window(place, way) };
  };

  it("update-user", async () => {
    const { people, me } = await open();
    const profile = { name: "New name", image: "https://x.test/i.png" };
    await world.touchesOnly(place, () => me.post("/update-user", profile));
    expect(await people.rowsOf(place, "user")).toMatchObject([profile]);
  });

  it("change-password, with revokeOtherSessions: a new session in the same place", async () => {
    const { people, me } = await open();
    const change = (more: object) =>
      world.touchesOnly(place, () => me.post("/change-password", more));
    const first = { currentPassword: mine, newPassword: NEW_PASSWORD };
    expect((await change(first)).status).toBe(200);
    await people.expectSignsIn(place, NEW_PASSWORD);
    await people.expectLockedOut(place);
    const back = { currentPassword: NEW_PASSWORD, newPassword: mine, revokeOtherSessions: true };
    const { data } = await change(back);
    expect(await people.rowsOf(place, "session")).toMatchObject([{ token: data.token }]);
    expect(await world.whoIs(me)).toMatchObject({ tenantId: world.ids[place] });
  });

  it("set-password, a call of the server's own code", async () => {
    const { people, me } = await open();
    const setPassword = () =>
      world.api.setPassword({
        body: { newPassword: NEW_PASSWORD },
        headers: new Headers({ ...me.headers, cookie: me.cookieHeader() }),
      });
    await world.unchanged(async () => {
      await expect(setPassword()).rejects.toMatchObject({ body: { code: "PASSWORD_ALREADY_SET" } });
    });
    // As somebody who came by a social provider: no password yet.
    await world.database.query(`delete from account where "userId" = ?`, [people[place].id]);
    expect(await world.touchesOnly(place, setPassword)).toEqual({ status: true });
    expect(await people.rowsOf(place, "account")).toHaveLength(1);
    await people.expectSignsIn(place, NEW_PASSWORD);
  });

  it("R3: verify-password, change-password and delete-user take no namesake's password", async () => {
    const { me } = await open();
    const password = passwordOf("globex");
    const change = { currentPassword: password, newPassword: NEW_PASSWORD };
    await world.unchanged(async () => {
      expect((await me.post("/verify-password", { password: mine })).status).toBe(200);
      for (const path of ["/verify-password", "/change-password", "/delete-user"]) {
        const answer = await me.post(path, { password, ...change });
        expect([path, ...outcome(answer)]).toEqual([path, 400, "INVALID_PASSWORD"]);
      }
    });
  });

  it("delete-user with the password: one of the three goes", async () => {
    const { people, me } = await open();
    const leave = () => me.post("/delete-user", { password: mine });
    expect((await world.touchesOnly(place, leave)).data.message).toBe("User deleted");
    for (const model of ["user", "session", "account"]) {
      expect(await people.rowsOf(place, model)).toEqual([]);
    }
    expect(await world.whoIs(me)).toBeNull();
    await people.expectLockedOut(place);
  });
});
