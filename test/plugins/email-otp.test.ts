import { emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { createWorld, EMAIL, PLACES, type Place, shareWorld } from "../support/world";

const world = shareWorld({
  plugins: (send) => [emailOTP({ sendVerificationOTP: send("otp") })],
});

/** The code that arrives after a request for one. */
async function ask(place: Place, type: string, email = EMAIL) {
  const path = "/email-otp/send-verification-otp";
  expect((await world.at(place).post(path, { email, type })).status).toBe(200);
  const { to, sentIn, code } = world.lastMail("otp");
  expect([to, sentIn]).toEqual([email, world.ids[place]]);
  return { email, otp: code };
}

describe("emailOTP", () => {
  it("signs up and in, as three people with one e-mail", async () => {
    const people = new Set<string>();
    for (const place of PLACES) {
      const browser = world.at(place);
      const body = await ask(place, "sign-in", "new@example.com");
      expect((await browser.post("/sign-in/email-otp", body)).status).toBe(200);
      const person = await world.whoIs(browser);
      expect(person).toMatchObject({ email: body.email, tenantId: world.ids[place] });
      people.add(person?.id ?? "");
    }
    expect(people.size).toBe(3);
  });

  it("R6: a code of Acme signs in, verifies and resets there only", async () => {
    await world.janes();
    const signIn = await ask("acme", "sign-in");
    await world.goodAtAcmeOnly((to) => to.post("/sign-in/email-otp", signIn), 400, "INVALID_OTP");
    const proof = await ask("acme", "email-verification");
    const checked = { ...proof, type: "email-verification" };
    for (const [path, body] of [
      ["/email-otp/check-verification-otp", checked],
      ["/email-otp/verify-email", proof],
    ] as const) {
      await world.goodAtAcmeOnly((browser) => browser.post(path, body), 400, "INVALID_OTP");
    }
    await world.at("acme").post("/email-otp/request-password-reset", { email: EMAIL });
    const otp = world.lastMail("otp").code;
    const reset = { email: EMAIL, otp, password: "a brand new password" };
    await world.goodAtAcmeOnly(
      (browser) => browser.post("/email-otp/reset-password", reset),
      400,
      "INVALID_OTP",
    );
    for (const place of PLACES) {
      const password = place === "acme" ? reset.password : PASSWORD;
      expect((await world.signIn(place, EMAIL, password)).status).toBe(200);
      const jane = await world.as("jane", place);
      const row = (await world.rowsIn(place, "user")).find(({ id }) => id === jane.id);
      expect(row?.emailVerified).toBe(place === "acme" ? 1 : 0);
    }
  });

  it("is sent on sign-up, by either path, once and in the tenant", async () => {
    const sending = await createWorld({
      plugins: (send) => [
        emailOTP({ sendVerificationOnSignUp: true, sendVerificationOTP: send("otp") }),
      ],
    });
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      const email = `${path.length}@example.com`;
      await sending.at("acme").post(path, { name: "Somebody", email, password: PASSWORD });
      const mails = sending.mails.filter(({ to }) => to === email);
      expect(mails.map(({ kind, sentIn }) => [kind, sentIn])).toEqual([["otp", sending.ids.acme]]);
    }
  });

  it("threat: one code, redeemed 20 times at once, signs in once", async () => {
    const body = await ask("acme", "sign-in", "raced@example.com");
    const sessions = await world.rows("session");
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => world.at("acme").post("/sign-in/email-otp", body)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await world.rows("session")).toBe(sessions + 1);
  });
});
