import { describe, expect, it } from "vitest";
import { databases } from "../support/servers";
import { ACTORS, bareTokens, createPeople, EMAIL, type People, PLACES, type Place } from "./people";

const verified = async ({ userAt }: People) => {
  const rows = await Promise.all(PLACES.map(userAt));
  return PLACES.filter((_, index) => Boolean(rows[index]?.emailVerified));
};

/** Somebody who is signed in asks for the mail. */
async function askForMail(people: People, place: Place, callbackURL = "/verified") {
  const body = { email: EMAIL, callbackURL };
  const me = people.window(place, "its session alone");
  expect((await me.post("/send-verification-email", body)).status).toBe(200);
  return people.lastMail("verification");
}

describe.each(databases)("e-mail verification on %s", (database) => {
  it.each(PLACES)("R6: the link of %s, in a browser that names nothing", async (place) => {
    const people = await createPeople({ database });
    await people.touchesOnly(place, async () => {
      const mail = await askForMail(people, place);
      expect(mail).toMatchObject({ userId: people.people[place].id, sentIn: people.ids[place] });
      const answer = await people.stranger("platform").get(mail.url);
      expect([answer.status, answer.location]).toEqual([302, "/verified"]);
    });
    expect(await verified(people)).toEqual([place]);
  });
});

describe.each(ACTORS)("send-verification-email at %s, named by %s", (place, way) => {
  it("mails the person there, once", async () => {
    const people = await createPeople();
    const answer = await people.changesNothing(() =>
      people.window(place, way).post("/send-verification-email", { email: EMAIL }),
    );
    expect(answer.status).toBe(200);
    expect(people.mails).toMatchObject([{ to: EMAIL, userId: people.people[place].id }]);
  });
});

describe("the verification link of a tenant", () => {
  it("is sent to somebody who is not signed in, by the tenant's name", async () => {
    const people = await createPeople();
    await people.stranger("b").post("/send-verification-email", { email: EMAIL });
    const mail = people.lastMail("verification");
    expect(mail).toMatchObject({ userId: people.people.b.id, sentIn: people.ids.b });
    await people.touchesOnly("b", () => people.stranger("platform").get(mail.url));
    expect(await verified(people)).toEqual(["b"]);
  });

  it("signs in there with autoSignInAfterVerification, whoever clicks", async () => {
    const people = await createPeople({
      auth: { emailVerification: { autoSignInAfterVerification: true } },
    });
    const mail = await askForMail(people, "a");
    const browser = people.stranger("platform");
    await people.touchesOnly("a", () => browser.get(mail.url));
    const { data } = await browser.get<{ session: { tenantId: string; userId: string } }>(
      "/get-session",
    );
    expect(data.session).toMatchObject({ tenantId: people.ids.a, userId: people.people.a.id });
  });

  it("changes nothing the second time", async () => {
    const people = await createPeople({
      auth: { emailVerification: { autoSignInAfterVerification: true } },
    });
    const mail = await askForMail(people, "a");
    await people.stranger("platform").get(mail.url);
    const again = people.stranger("platform");
    await people.changesNothing(() => again.get(mail.url));
    expect([...again.cookies.keys()]).toEqual([]);
  });

  it("R6: answers errors at its callbackURL", async () => {
    const people = await createPeople();
    const mail = await askForMail(people, "a");
    const answer = await people.changesNothing(() => people.stranger("b").get(mail.url));
    expect([answer.status, answer.location]).toEqual([302, "/verified?error=INVALID_TOKEN"]);
  });

  it("R6: the platform's is refused in a tenant", async () => {
    const people = await createPeople();
    const { token } = await askForMail(people, "platform");
    for (const place of ["a", "b"] as const) {
      const answer = await people.changesNothing(() =>
        people.stranger(place).get("/verify-email", { query: { token } }),
      );
      expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
    }
  });

  it("R6: the tenant's is refused on the platform and elsewhere, with its seal taken off", async () => {
    const people = await createPeople();
    const tokens = bareTokens(await askForMail(people, "a"));
    for (const place of PLACES) {
      for (const token of tokens) {
        const answer = await people.changesNothing(() =>
          people.stranger(place).get("/verify-email", { query: { token } }),
        );
        expect([place, answer.status, answer.code]).toEqual([place, 401, "INVALID_TOKEN"]);
      }
    }
    expect(await verified(people)).toEqual([]);
  });

  it("R4, R6: the platform's, clicked by somebody signed in at a tenant, is the platform's", async () => {
    const people = await createPeople();
    const mail = await askForMail(people, "platform");
    const visitor = people.window("a", "its session alone");
    await people.touchesOnly("platform", () => visitor.get(mail.url));
    expect(await verified(people)).toEqual(["platform"]);
    const { data } = await visitor.get<{ user: { id: string } }>("/get-session");
    expect(data.user.id).toBe(people.people.a.id);
  });

  it("dies with its tenant", async () => {
    const people = await createPeople();
    const mail = await askForMail(people, "a", "/done");
    await people.instance.api.deleteTenant({ body: { tenantId: people.ids.a ?? "" } });
    const answer = await people.changesNothing(() => people.stranger("platform").get(mail.url));
    expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });
});

describe("requireEmailVerification in a tenant", () => {
  it("sends on sign-up and sign-in; the link of the mail lets the person in", async () => {
    const people = await createPeople({
      auth: {
        emailAndPassword: { enabled: true, requireEmailVerification: true },
        emailVerification: { sendOnSignIn: true },
      },
    });
    const refused = await people.signIn("a");
    expect([refused.status, refused.code]).toEqual([403, "EMAIL_NOT_VERIFIED"]);
    const mail = people.lastMail("verification");
    expect(mail).toMatchObject({ userId: people.people.a.id, sentIn: people.ids.a });
    await people.stranger("platform").get(mail.url);
    await people.expectSignsIn("a");
    expect((await people.signIn("b")).status).toBe(403);
    expect((await people.signIn("platform")).status).toBe(403);
  });
});
