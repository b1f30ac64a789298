import { describe, expect, it } from "vitest";
import { databases } from "../support/database";
import { ACTORS, outcome, PLACES, passwordOf, shareWorld } from "../support/world";

const NEW_PASSWORD = "a brand new password";
describe.each(databases)("better-auth's own sign-up and sign-in on %s", (database) => {
  const world = shareWorld({}, database);

  it("R3: one e-mail is three people: each place takes it once, and its password only", async () => {
    const people = await world.namesakes();
    for (const place of PLACES) {
      const body = { name: "Again", email: people.email, password: "another password" };
      const again = await world.unchanged(() => world.at(place).post("/sign-up/email", body));
      expect(outcome(again)).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
      for (const other of PLACES) {
        if (other === place) await people.expectSignsIn(place);
        else await people.expectLockedOut(other, passwordOf(place));
      }
    }
  });

  it.each(ACTORS)("R4: sign-up at %s by %s lands there", async (place, way) => {
    const people = await world.namesakes();
    const body = { name: "New", email: `new-${people.email}`, password: "another password" };
    const answer = await world.touchesOnly(place, () =>
      people.window(place, way).post("/sign-up/email", body),
    );
    expect(answer.data.user).toMatchObject({ email: body.email, tenantId: world.ids[place] });
    expect(await world.rows("user", "email = ?", [body.email])).toBe(1);
  });
});

const theme = { type: "string", required: false } as const;
const world = shareWorld({ auth: { session: { additionalFields: { theme } } } });

describe.each(ACTORS)("sessions at %s, named by %s", (place, way) => {
  /** The person of the place, signed in twice more. */
  async function open() {
    const people = await world.namesakes();
    const signIn = () => world.signIn(place, people.email, passwordOf(place));
    const more = [(await signIn()).person.token, (await signIn()).person.token];
    const tokens = async () =>
      (await people.rowsOf(place, "session")).map(({ token }) => String(token)).sort();
    const mine = people[place].token;
    return { people, mine, more, tokens, me: people.window(place, way) };
  }

  it("update-session: an additional field on this session alone, and no other tenant (R3)", async () => {
    const { me, mine, people } = await open();
    const tenantId = world.ids.globex;
    await world.unchanged(() => me.post("/update-session", { tenantId }));
    const { data } = await world.touchesOnly(place, () =>
      me.post("/update-session", { theme: "dark" }),
    );
    const session = { token: mine, theme: "dark", tenantId: world.ids[place] };
    expect(data.session).toMatchObject(session);
    const sessions = await people.rowsOf(place, "session");
    const dark = sessions.filter((row) => row.theme === "dark");
    expect(dark.map(({ token }) => token)).toEqual([mine]);
    expect((await me.get("/get-session")).data.session).toMatchObject(session);
  });
});

describe.each(ACTORS)("the account at %s, named by %s", (place, way) => {
  const mine = passwordOf(place);
  const open = async () => {
    const people = await world.namesakes();
    return { people, me: people.window(place, way) };
  };

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
});
