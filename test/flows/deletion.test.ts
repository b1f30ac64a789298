import { describe, expect, it } from "vitest";
import {
  ACTORS,
  bareTokens,
  createPeople,
  type People,
  type PeopleOptions,
  type Place,
  type Way,
} from "./people";

const createLeavers = (options: PeopleOptions = {}) =>
  createPeople({ ...options, deletionByMail: true });

async function askForDeletion(people: People, place: Place, way: Way = "its session alone") {
  const answer = await people.window(place, way).post("/delete-user", { callbackURL: "/bye" });
  expect([answer.status, answer.data.message]).toEqual([200, "Verification email sent"]);
  return people.lastMail("deletion");
}

const expectGone = async ({ everythingIn }: People, place: Place) =>
  expect(await everythingIn(place)).toEqual({
    user: [],
    session: [],
    account: [],
    verification: [],
  });

describe.each(ACTORS)("delete-user by mail at %s, named by %s", (place, way) => {
  it("the link deletes one of the three, in a browser that sends its session alone", async () => {
    const people = await createLeavers();
    const me = people.window(place, "its session alone");
    await people.touchesOnly(place, async () => {
      const mail = await askForDeletion(people, place, way);
      expect(mail).toMatchObject({ userId: people.people[place].id, sentIn: people.ids[place] });
      const answer = await me.get(mail.url);
      expect([answer.status, answer.location]).toEqual([302, "/bye"]);
    });
    await expectGone(people, place);
    expect(me.cookies.size).toBe(0);
    await people.expectRefused(place);
  });

  it("the token deletes as well, sent to /delete-user", async () => {
    const people = await createLeavers();
    await people.touchesOnly(place, async () => {
      const { token } = await askForDeletion(people, place, way);
      const answer = await people.window(place, way).post("/delete-user", { token });
      expect([answer.status, answer.data.message]).toEqual([200, "User deleted"]);
    });
    await expectGone(people, place);
  });
});

describe("the deletion link of a tenant", () => {
  it("R6: needs the session of its person: without one, or with another's, nothing happens", async () => {
    const people = await createLeavers();
    const mail = await askForDeletion(people, "a");
    for (const browser of [
      people.stranger("platform"),
      people.stranger("a"),
      people.window("b", "its session alone"),
      people.window("b", "its header"),
      people.window("platform", "its session alone"),
      people.window("a", "its session alone").fork(people.header("b")),
    ]) {
      const cookies = browser.cookieHeader();
      const answer = await people.changesNothing(() => browser.get(mail.url));
      expect(answer.status).toBe(404);
      expect(["INVALID_TOKEN", "FAILED_TO_GET_USER_INFO"]).toContain(answer.code);
      expect(browser.cookieHeader()).toBe(cookies);
    }
    // It is still good for the person it was sent to.
    await people.touchesOnly("a", () => people.window("a", "its session alone").get(mail.url));
    await expectGone(people, "a");
  });

  it("R6: a token of B or of the platform deletes nobody at A", async () => {
    const people = await createLeavers();
    const mails = [await askForDeletion(people, "b"), await askForDeletion(people, "platform")];
    for (const mail of mails) {
      for (const token of [mail.token, ...bareTokens(mail)]) {
        const me = people.window("a", "its header");
        const answer = await people.changesNothing(() => me.post("/delete-user", { token }));
        expect([answer.status, answer.code]).toEqual([404, "INVALID_TOKEN"]);
      }
    }
  });

  it("R6: is good once", async () => {
    const people = await createLeavers();
    const mail = await askForDeletion(people, "a");
    const [me, copy] = [
      people.window("a", "its session alone"),
      people.window("a", "its session alone"),
    ];
    await me.get(mail.url);
    const again = await people.changesNothing(() => copy.get(mail.url));
    expect([again.status, again.code]).toEqual([404, "FAILED_TO_GET_USER_INFO"]);
  });

  it("finds the tenant's own cookie with sessionCookies per-tenant", async () => {
    const people = await createLeavers({ tenant: { sessionCookies: "per-tenant" } });
    const me = people.window("a", "its header");
    await me.post("/delete-user", { callbackURL: "/bye" });
    const mail = people.lastMail("deletion");
    const tab = me.fork({});
    await people.touchesOnly("a", async () => {
      expect((await tab.get(mail.url)).location).toBe("/bye");
    });
    await expectGone(people, "a");
    expect(tab.cookies.size).toBe(0);
  });
});
