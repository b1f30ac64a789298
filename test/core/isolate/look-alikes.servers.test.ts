import { emailOTP, magicLink } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import type { Answer, Browser } from "../../support/browser";
import { servers } from "../../support/database";
import { BASE_URL, newcomer, PASSWORD } from "../../support/instance";
import { createWorld, expectRefused, outcome, type Place, shareMade } from "../../support/world";
import { COLLATIONS, collate, findAlike, lookAlikesOf } from "./collations";

/*
 * By default, MySQL and MariaDB take `boss@pártner.com` for `boss@partner.com`. The owner of the
 * first address must not become the owner of the second account.
 */

const BOSS = "boss@partner.com";
const LOOK_ALIKE = "boss@pártner.com";
const NEW_PASSWORD = "a password of the attacker";
const TAKEN = "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL";
const PLACES = ["acme", "platform"] as const;

/** better-auth lower-cases every email, so these are addresses of others. */
const ADDRESSES = lookAlikesOf(BOSS).filter((email) => email.toLowerCase() !== BOSS);

const create = (collation: string) =>
  shareMade(async (database) => {
    await collate(database, collation);
    return createWorld({
      database,
      auth: {
        user: { changeEmail: { enabled: true, updateEmailWithoutVerification: true } },
      },
      plugins: (send) => [
        emailOTP({ sendVerificationOTP: send("code") }),
        magicLink({ sendMagicLink: send("link") }),
      ],
    });
  }, "mysql");

/** Endpoints that look a user up by an address, and a word of what they do for an address of a user. */
const LOOKUPS: [path: string, finds: string | undefined, body: object][] = [
  ["/sign-in/email", "signed in", { password: PASSWORD }],
  ["/tenant/sign-in/email", "signed in", { password: PASSWORD }],
  ["/request-password-reset", "reset", {}],
  ["/send-verification-email", "verification", {}],
  ["/email-otp/request-password-reset", "code", {}],
  ["/forget-password/email-otp", "code", {}],
  ["/email-otp/send-verification-otp", "code", { type: "email-verification" }],
  ["/email-otp/send-verification-otp", "code", { type: "forget-password" }],
  // These look the code up first.
  ["/email-otp/check-verification-otp", undefined, { type: "sign-in", otp: "123456" }],
  ["/email-otp/verify-email", undefined, { otp: "123456" }],
  ["/email-otp/reset-password", undefined, { otp: "123456", password: NEW_PASSWORD }],
];

describe.skipIf(!servers.asked).each(COLLATIONS)("look-alikes on MariaDB, %s", (collation) => {
  const world = create(collation);
  let alike: string[] = [];
  beforeAll(async () => {
    for (const place of PLACES) await world.signUp(place, BOSS);
    alike = await findAlike(world.database, collation, BOSS, ADDRESSES);
    // Otherwise these tests say nothing.
    expect(alike.length).toBeGreaterThan(3);
    expect(alike).toContain(LOOK_ALIKE);
  });

  /** What a request does with an address, in the words of its answer and its mails. */
  async function ask(place: Place, path: string, email: string, body: object) {
    world.mails.length = 0;
    const browser = world.at(place);
    const answer = await browser.post(path, { ...body, email });
    const mails = world.mails.map(({ kind, to }) => [kind, to === email.toLowerCase()]);
    const signedIn = (await world.whoIs(browser)) ? ["signed in"] : [];
    return { answer: outcome(answer), effects: [...mails, ...signedIn] };
  }

  it.each(PLACES)("threat: a code mailed to a look-alike resets no password: %s", async (place) => {
    const accounts = await world.rowsIn(place, "account");
    const attacker = world.at(place);
    world.mails.length = 0;
    await attacker.post("/email-otp/request-password-reset", { email: LOOK_ALIKE });
    expect(world.mails).toEqual([]);
    await attacker.post("/email-otp/request-password-reset", { email: BOSS });
    const { code: otp } = world.lastMail("code");
    const stolen = { email: LOOK_ALIKE, otp, password: NEW_PASSWORD };
    expectRefused(await attacker.post("/email-otp/reset-password", stolen), 400, "INVALID_OTP");
    expect(await world.rowsIn(place, "account")).toEqual(accounts);
    const signIn = await world.signIn(place, BOSS, NEW_PASSWORD);
    expectRefused(signIn, 401, "INVALID_EMAIL_OR_PASSWORD");

    // The control: the owner of the address resets the password.
    const own = { email: BOSS, otp, password: PASSWORD };
    expect((await attacker.post("/email-otp/reset-password", own)).status).toBe(200);
    expect((await world.signIn(place, BOSS)).status).toBe(200);
  });

  const lookups = PLACES.flatMap((place) =>
    LOOKUPS.filter(([path]) => place !== "platform" || !path.startsWith("/tenant/")).map(
      (lookup) => [place, ...lookup] as const,
    ),
  );
  it.each(lookups)(
    "at %s, %s answers a look-alike like an unknown address, not with %s: %j",
    async (...row) => {
      const [place, path, finds, body] = row;
      const before = await world.rowsIn(place, "account");
      for (const email of alike) {
        const unknown = await ask(place, path, `x${email}`, body);
        expect([email, await ask(place, path, email, body)]).toEqual([email, unknown]);
      }
      expect(await world.rowsIn(place, "account")).toEqual(before);
      // The control: an address in another case is the same address.
      await world.write("user", { emailVerified: false }, { email: BOSS });
      const { effects } = await ask(place, path, BOSS.toUpperCase(), body);
      expect(effects.flat()).toEqual(finds ? expect.arrayContaining([finds]) : []);
    },
  );

  describe.each(PLACES)("an address of %s whose look-alike has a user", (place) => {
    const email = `jane.${place}@partner.com`;
    const taken = `jane.${place}@pártner.com`;
    beforeAll(async () => {
      const { id } = await world.signUp(place, `other.${place}@example.com`);
      // As a provider reports it: better-auth's own sign-up takes no such address.
      await world.write("user", { email: taken }, { id });
    });

    /** Each way to become a user with an address, and its last answer. */
    const WAYS: [name: string, run: (browser: Browser) => Promise<Answer>][] = [
      ["sign-up", (browser) => browser.post("/sign-up/email", { ...newcomer(email) })],
      [
        "a code",
        async (browser) => {
          await browser.post("/email-otp/send-verification-otp", { email, type: "sign-in" });
          return browser.post("/sign-in/email-otp", { email, otp: world.lastMail("code").code });
        },
      ],
      [
        "a link",
        async (browser) => {
          await browser.post("/sign-in/magic-link", { email });
          return browser.get(world.lastMail("link").url);
        },
      ],
      [
        "a change of the email",
        async () => (await world.signUp(place)).post("/change-email", { newEmail: email }),
      ],
    ];
    it.each(WAYS)("is taken: %s", async (_, run) => {
      const browser = world.at(place);
      const answer = await run(browser);
      const error =
        answer.code ?? new URL(answer.location ?? "", BASE_URL).searchParams.get("error");
      expect([TAKEN, "failed_to_create_user"]).toContain(error);
      expect([302, 422]).toContain(answer.status);
      expect(await world.whoIs(browser)).toBe(null);
      const emails = (await world.rowsIn(place, "user")).map((user) => user.email);
      expect(emails).toContain(taken);
      expect(emails).not.toContain(email);
    });
  });
});
