import { describe, expect, it } from "vitest";
import type { Answer } from "../support/browser";
import { bareTokens, createPeople, EMAIL, type People, PLACES, type Place } from "./people";

const THIEF = "thief@example.com";

/**
 * Somebody signs up at one place with the e-mail of a victim elsewhere, and asks for an e-mail
 * change. The token of that goes to the new address, and says nothing but "this e-mail becomes
 * that one".
 */
async function askForChange(people: People, place: Place) {
  const answer = await people.window(place, "its session alone").post("/change-email", {
    newEmail: THIEF,
  });
  expect(answer.status).toBe(200);
  const mail = people.lastMail("verification");
  expect(mail.to).toBe(THIEF);
  return mail;
}

/** Sends each token to each of the places, from a browser without cookies. */
function replay(people: People, places: Place[], tokens: string[]) {
  return people.changesNothing(() =>
    Promise.all(
      places.flatMap((place) =>
        tokens.map((token) => people.stranger(place).get("/verify-email", { query: { token } })),
      ),
    ),
  );
}

const elsewhere = (from: Place) => PLACES.filter((place) => place !== from);

async function expectNobodyTaken({ instance, expectSignsIn }: People, answers: Answer[]) {
  for (const answer of answers) {
    expect([answer.status, answer.code]).toEqual([401, "INVALID_TOKEN"]);
    expect(answer.headers.getSetCookie()).toEqual([]);
  }
  expect(await instance.rows("user", "email = ?", [EMAIL])).toBe(3);
  expect(await instance.rows("user", "email = ?", [THIEF])).toBe(0);
  for (const place of PLACES) await expectSignsIn(place);
}

describe.each(PLACES)("threat: account takeover by an e-mail change started at %s", (from) => {
  it("R6: its token is refused by every tenant but its own", async () => {
    const people = await createPeople();
    const { token } = await askForChange(people, from);
    const tenants = elsewhere(from).filter((place) => place !== "platform");
    await expectNobodyTaken(people, await replay(people, tenants, [token]));
  });

  it("R6: no part of its token is good elsewhere, on the platform neither", async () => {
    const people = await createPeople();
    const tokens = bareTokens(await askForChange(people, from));
    await expectNobodyTaken(people, await replay(people, elsewhere(from), tokens));
  });
});

describe("threat: account takeover by a link of a tenant that is clicked elsewhere", () => {
  it("R5, R6: a victim who is signed in elsewhere and clicks keeps e-mail and session", async () => {
    const people = await createPeople();
    const mail = await askForChange(people, "a");
    const victim = people.window("platform", "its session alone");
    await people.touchesOnly("a", () => victim.get(mail.url));
    const { data } = await people
      .window("platform", "its session alone")
      .get<{ user: { email: string } }>("/get-session");
    expect(data.user.email).toBe(EMAIL);
  });
});
