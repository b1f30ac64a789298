import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { queryOf } from "../support/social";
import { ACTORS, bareTokens, createPeople, EMAIL, type People, PLACES, type Place } from "./people";

const NEW_PASSWORD = "a brand new password";
const INVALID = [400, "INVALID_TOKEN"];

/** Somebody who forgot the password asks for the mail. */
async function askForReset({ stranger, lastMail }: People, place: Place) {
  const body = { email: EMAIL, redirectTo: "/new-password" };
  const answer = await stranger(place).post("/request-password-reset", body);
  expect(answer.status).toBe(200);
  return lastMail("reset");
}

const reset = (people: People, place: Place, token: string) =>
  people.stranger(place).post("/reset-password", { token, newPassword: NEW_PASSWORD });

describe.each(databases)("password reset on %s", (database) => {
  it.each(PLACES)("R6: the whole way at %s, in a browser that names nothing", async (place) => {
    const people = await createPeople({ database });
    const { touchesOnly, stranger, expectSignsIn, expectRefused } = people;
    await touchesOnly(place, async () => {
      const mail = await askForReset(people, place);
      expect(mail).toMatchObject({ userId: people.people[place].id, sentIn: people.ids[place] });
      expect(people.mails).toHaveLength(1);
      const page = await stranger("platform").get(mail.url);
      expect(page.status).toBe(302);
      const { token = "", ...rest } = queryOf(page.location);
      expect([new URL(page.location ?? "").pathname, rest]).toEqual(["/new-password", {}]);
      expect(token).toBe(mail.token);
      const answer = await reset(people, "platform", token);
      expect([answer.status, answer.data]).toEqual([200, { status: true }]);
    });
    await expectSignsIn(place, NEW_PASSWORD);
    await expectRefused(place);
  });
});

describe("the reset link of a tenant", () => {
  it.each(ACTORS)(
    "request-password-reset at %s by %s mails the person there",
    async (place, way) => {
      const people = await createPeople();
      await people.touchesOnly(place, () =>
        people.window(place, way).post("/request-password-reset", { email: EMAIL }),
      );
      const owner = people.people[place].id;
      expect(people.mails).toMatchObject([{ kind: "reset", userId: owner }]);
    },
  );

  it("R6: leads to a token that is good once, also for many at a time", async () => {
    const people = await createPeople();
    const { token } = await askForReset(people, "a");
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => reset(people, "platform", token)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const again = await people.changesNothing(() => reset(people, "platform", token));
    expect([again.status, again.code]).toEqual(INVALID);
  });

  it("R6: is good in its tenant by header as well, and for the token in the query", async () => {
    const people = await createPeople();
    const first = await askForReset(people, "a");
    expect((await people.stranger("a").get(first.url)).location).toContain("token=");
    expect((await reset(people, "a", first.token)).status).toBe(200);
    const { token } = await askForReset(people, "a");
    const answer = await people
      .stranger("platform")
      .post("/reset-password", { newPassword: NEW_PASSWORD }, { query: { token } });
    expect(answer.status).toBe(200);
    await people.expectSignsIn("a", NEW_PASSWORD);
    await people.expectSignsIn("platform");
  });

  it("R6: is refused in another tenant, and still good in its own afterwards", async () => {
    const people = await createPeople();
    const mail = await askForReset(people, "a");
    await people.changesNothing(async () => {
      const link = await people.stranger("b").get(mail.url);
      expect(queryOf(link.location)).toEqual({ error: "INVALID_TOKEN" });
      const answer = await reset(people, "b", mail.token);
      expect([answer.status, answer.code]).toEqual(INVALID);
    });
    expect((await reset(people, "platform", mail.token)).status).toBe(200);
  });

  it("R6: the token of the platform is refused in a tenant, and the other way round", async () => {
    const people = await createPeople();
    const ofPlatform = await askForReset(people, "platform");
    const ofTenant = await askForReset(people, "a");
    await people.changesNothing(async () => {
      for (const [mail, places] of [
        [ofPlatform, ["a", "b"]],
        [ofTenant, ["b", "platform"]],
      ] as const) {
        for (const place of places) {
          for (const token of bareTokens(mail)) {
            const answer = await reset(people, place, token);
            expect([answer.status, answer.code]).toEqual(INVALID);
          }
        }
      }
    });
  });

  it("R4, R6: works for somebody who is signed in elsewhere, and leaves them signed in", async () => {
    const people = await createPeople();
    const { token } = await askForReset(people, "a");
    const visitor = people.window("b", "its session alone");
    await people.touchesOnly("a", async () => {
      const answer = await visitor.post("/reset-password", { token, newPassword: NEW_PASSWORD });
      expect(answer.status).toBe(200);
    });
    const { data } = await visitor.get<{ user: { id: string } }>("/get-session");
    expect(data.user.id).toBe(people.people.b.id);
    await people.expectSignsIn("a", NEW_PASSWORD);
  });

  it("revokeSessionsOnPasswordReset ends the sessions of that person only", async () => {
    const people = await createPeople({
      auth: { emailAndPassword: { enabled: true, revokeSessionsOnPasswordReset: true } },
    });
    const { token } = await askForReset(people, "a");
    await people.touchesOnly("a", () => reset(people, "platform", token));
    expect(await people.rowsIn("a", "session")).toEqual([]);
  });

  it("dies with its tenant", async () => {
    const people = await createPeople();
    const mail = await askForReset(people, "a");
    await people.instance.api.deleteTenant({ body: { tenantId: people.ids.a ?? "" } });
    await people.changesNothing(async () => {
      const answer = await reset(people, "platform", mail.token);
      expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    });
  });
});
