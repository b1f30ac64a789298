import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import {
  ACTORS,
  bareTokens,
  createPeople,
  EMAIL,
  type People,
  type PeopleOptions,
  PLACES,
  type Place,
  passwordOf,
  type Way,
} from "./people";

const NEW_EMAIL = "moved@example.com";

/** Everybody has verified their address, or nobody has. */
async function createMovers(isVerified: boolean, options: PeopleOptions = {}) {
  const people = await createPeople(options);
  const { database } = people.instance;
  const columns = `${database.quote("emailVerified")} = ?`;
  const value = database.kind === "postgres" ? isVerified : Number(isVerified);
  await database.query(`update ${database.quote("user")} set ${columns}`, [value]);
  return people;
}

async function askForChange(people: People, place: Place, way: Way, newEmail = NEW_EMAIL) {
  const body = { newEmail, callbackURL: "/moved" };
  const answer = await people.window(place, way).post("/change-email", body);
  expect([answer.status, answer.data]).toEqual([200, { status: true }]);
}

const click = (people: People, url: string) => people.stranger("platform").get(url);

async function expectMoved(people: People, place: Place) {
  expect(await people.userAt(place)).toMatchObject({ email: NEW_EMAIL });
  await people.expectSignsIn(place, passwordOf(place), NEW_EMAIL);
  await people.expectRefused(place);
  expect(await people.instance.rows("user", "email = ?", [EMAIL])).toBe(2);
}

describe.each(databases)("change-email on %s", (database) => {
  describe.each(ACTORS)("at %s, named by %s", (place, way) => {
    it("of a verified address: both addresses are asked, in browsers that name nothing", async () => {
      const people = await createMovers(true, { database });
      await people.touchesOnly(place, async () => {
        await askForChange(people, place, way);
        const first = people.lastMail("change");
        expect(first).toMatchObject({ to: EMAIL, sentIn: people.ids[place] });
        expect((await click(people, first.url)).location).toBe("/moved");
        const second = people.lastMail("verification");
        expect(second).toMatchObject({ to: NEW_EMAIL, sentIn: people.ids[place] });
        expect(await people.userAt(place)).toMatchObject({ email: EMAIL });
        expect((await click(people, second.url)).location).toBe("/moved");
      });
      await expectMoved(people, place);
    });

    it("of an unverified address: the new address is asked", async () => {
      const people = await createMovers(false, { database });
      await people.touchesOnly(place, async () => {
        await askForChange(people, place, way);
        const mail = people.lastMail("verification");
        expect(mail).toMatchObject({ to: NEW_EMAIL, sentIn: people.ids[place] });
        expect((await click(people, mail.url)).location).toBe("/moved");
      });
      await expectMoved(people, place);
    });

    it("at once, with updateEmailWithoutVerification; the mail that follows verifies", async () => {
      const people = await createMovers(false, {
        database,
        auth: { user: { changeEmail: { enabled: true, updateEmailWithoutVerification: true } } },
      });
      await people.touchesOnly(place, async () => {
        await askForChange(people, place, way);
        expect(await people.userAt(place)).toMatchObject({ email: NEW_EMAIL });
        const mail = people.lastMail("verification");
        expect((await click(people, mail.url)).location).toBe("/moved");
      });
      expect(Boolean((await people.userAt(place))?.emailVerified)).toBe(true);
      await expectMoved(people, place);
    });
  });
});

describe("the links of an e-mail change in a tenant", () => {
  it("R3: an address that is taken elsewhere is free here, and one taken here is not", async () => {
    const people = await createMovers(false);
    const taken = { name: "Other", email: "other@example.com", password: "another password" };
    await people.stranger("b").post("/sign-up/email", taken);
    await askForChange(people, "a", "its header", taken.email);
    await click(people, people.lastMail("verification").url);
    expect(await people.userAt("a")).toMatchObject({ email: taken.email });
    people.mails.length = 0;
    // The answer does not tell, but no mail goes out.
    await people.changesNothing(() => askForChange(people, "b", "its header", taken.email));
    expect(people.mails).toEqual([]);
  });

  it("R6: signs the person in where the link belongs", async () => {
    const people = await createMovers(false);
    await askForChange(people, "a", "its header");
    const browser = people.stranger("platform");
    await people.touchesOnly("a", () => browser.get(people.lastMail("verification").url));
    const { data } = await browser.get<{ session: { tenantId: string; userId: string } }>(
      "/get-session",
    );
    expect(data.session).toMatchObject({ tenantId: people.ids.a, userId: people.people.a.id });
  });

  it("R6: is good once", async () => {
    const people = await createMovers(false);
    await askForChange(people, "a", "its header");
    const { url } = people.lastMail("verification");
    await click(people, url);
    const again = await people.changesNothing(() => click(people, url));
    expect([again.status, again.location]).toEqual([302, "/moved?error=USER_NOT_FOUND"]);
  });

  it.each(PLACES)(
    "R6: the confirmation of %s sends no mail when it is replayed elsewhere",
    async (from) => {
      const people = await createMovers(true);
      await askForChange(people, from, "its session alone");
      const mail = people.lastMail("change");
      people.mails.length = 0;
      for (const place of PLACES.filter((other) => other !== from)) {
        // The whole link leads home where nothing else is named.
        const whole = place === "platform" ? [] : [mail.token];
        for (const token of [...whole, ...bareTokens(mail)]) {
          const answer = await people.changesNothing(() =>
            people.stranger(place).get("/verify-email", { query: { token } }),
          );
          expect([place, answer.status, answer.code]).toEqual([place, 401, "INVALID_TOKEN"]);
        }
      }
      expect(people.mails).toEqual([]);
    },
  );

  it("R5, R6: clicked by somebody of another tenant, it changes its own person only", async () => {
    const people = await createMovers(false);
    await askForChange(people, "a", "its header");
    const visitor = people.window("b", "its session alone");
    await people.touchesOnly("a", () => visitor.get(people.lastMail("verification").url));
    await expectMoved(people, "a");
  });
});
