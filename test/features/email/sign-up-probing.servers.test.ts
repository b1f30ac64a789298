import { phoneNumber, username } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { databases } from "../../support/database";
import { SIGN_UP_TAKES_PHONE } from "../../support/differences";
import { PASSWORD } from "../../support/instance";
import { outcome, type Place, shareWorld } from "../../support/world";

/*
 * Sign-up checks values before it looks the email up: otherwise a value that no user can have tells
 * which emails have a user.
 */

const EXISTING = "existing@example.com";
const ISSUE = "INVALID_VALUE";
const optional = { required: false } as const;

/** Values that no database stores, or not every one. */
const REFUSED: [name: string, more: object][] = [
  ["a list as a phone number", { phoneNumber: ["abc"] }],
  ["an object as a phone number", { phoneNumber: { a: 1 } }],
  ["an object in a unique field", { badge: { a: 1 } }],
  ["a list in a unique field", { badge: ["a"] }],
  ["half a character", { badge: "\ud800" }],
  ["NUL in the name", { name: "a\u0000b" }],
  ["NUL in the image", { image: "a\u0000b" }],
  ["an object in a text", { note: { a: 1 } }],
  ["a word as a number", { level: "abc" }],
  ["a list as a number", { level: [1] }],
  ["a word as a date", { since: "abc" }],
  ["a word as a truth", { active: "abc" }],
  ["a list as a truth", { active: [true] }],
];
const ON_PLATFORM: typeof REFUSED = [
  ["a tilde in a phone number", { phoneNumber: "a~b" }],
  ["a tilde in a unique field", { badge: "a~b" }],
];
const ON_SERVERS: typeof REFUSED = [
  ["a text that is too long for an index", { badge: "x".repeat(10_000) }],
  ["a number that is too large", { level: 1e15 }],
];
const ON_MYSQL: typeof REFUSED = [["a name that is too long", { name: "x".repeat(300) }]];

const PLACES = ["acme", "platform"] as const;

describe.each(databases)("threat: sign-up tells which emails exist, on %s", (database) => {
  describe.each([
    ["says that an email is taken", {}],
    ["hides that an email is taken", { autoSignIn: false }],
  ])("an application that %s", (_, settings) => {
    const world = shareWorld(
      {
        auth: {
          emailAndPassword: { enabled: true, ...settings },
          user: {
            additionalFields: {
              badge: { type: "string", unique: true, ...optional },
              note: { type: "string", ...optional },
              level: { type: "number", ...optional },
              since: { type: "date", ...optional },
              active: { type: "boolean", ...optional },
            },
          },
        },
        plugins: [phoneNumber({ sendOTP: () => {} }), username()],
      },
      database,
    );
    const signUp = (place: Place, email: string, more: object) => {
      const path = place === "acme" ? "/tenant/sign-up/email" : "/sign-up/email";
      return world.at(place).post(path, { name: "New", email, password: PASSWORD, ...more });
    };
    const free = () => `${crypto.randomUUID()}@example.com`;

    /** What the caller sees for a free email, and for one that has a user. */
    async function compare(place: Place, more: object) {
      await signUp(place, EXISTING, {});
      const [one, other] = [await signUp(place, free(), more), await signUp(place, EXISTING, more)];
      return [one, other].map((answer) => [...outcome(answer), answer.data.message]);
    }

    const cases = PLACES.flatMap((place) =>
      [
        ...REFUSED,
        ...(place === "platform" ? ON_PLATFORM : []),
        ...(database === "sqlite" ? [] : ON_SERVERS),
        ...(database === "mysql" ? ON_MYSQL : []),
      ]
        .filter(([, more]) => SIGN_UP_TAKES_PHONE || !("phoneNumber" in more))
        .map(([name, more]) => [place, name, more] as const),
    );
    it.each(cases)("at %s: %s is refused for every email", async (place, _, more) => {
      const users = await world.rows("user");
      const [one, other] = await compare(place, more);
      expect(one?.slice(0, 2)).toEqual([400, ISSUE]);
      expect(other).toEqual(one);
      expect(await world.rows("user")).toBeLessThanOrEqual(users + 1);
    });

    it.each(PLACES)("at %s: a taken value is refused for every email", async (place) => {
      for (const more of [
        { badge: `taken-${place}` },
        { username: `taken.${place}` },
        ...(SIGN_UP_TAKES_PHONE ? [{ phoneNumber: `+1555${place.length}` }] : []),
      ]) {
        expect((await signUp(place, free(), more)).status).toBe(200);
        const [one, other] = await compare(place, more);
        expect([400, 422]).toContain(one?.[0]);
        expect(other).toEqual(one);
      }
    });

    it.each(PLACES)("at %s: good values are stored", async (place) => {
      const email = free();
      const good = { note: "a", level: 3, since: "2026-01-02T00:00:00.000Z", active: true };
      const unique = { badge: `badge-${place}`, ...(place === "acme" && { note: "a~b" }) };
      const { status, data } = await signUp(place, email, { ...good, ...unique });
      expect([status, data.user]).toEqual([200, expect.objectContaining({ email, level: 3 })]);
      const [row] = (await world.rowsIn(place, "user")).filter((user) => user.email === email);
      expect(row).toMatchObject({ level: 3, note: place === "acme" ? "a~b" : "a" });
    });
  });
});
