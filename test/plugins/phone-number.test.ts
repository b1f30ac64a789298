import { phoneNumber } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../support/instance";
import { ELSEWHERE, expectRefused, type Place, shareWorld } from "../support/world";

const world = shareWorld({
  plugins: (send) => [
    phoneNumber({
      sendOTP: send("code"),
      sendPasswordResetOTP: send("code"),
      signUpOnVerification: { getTempEmail: (phone) => `${phone}@phone.example.com` },
    }),
  ],
});

/** The code that comes to a phone. */
async function ask(place: Place, phone: string, path = "send-otp") {
  const body = { phoneNumber: phone };
  expect((await world.at(place).post(`/phone-number/${path}`, body)).status).toBe(200);
  const { to, sentIn, code } = world.lastMail("code");
  expect([to, sentIn]).toEqual([phone, world.ids[place]]);
  return code;
}

describe("phoneNumber", () => {
  const PHONE = "+15550001";

  it("R6: signs up by a code and sets a password, in its tenant only", async () => {
    const proof = { phoneNumber: PHONE, code: await ask("acme", PHONE) };
    const verify = "/phone-number/verify";
    await world.goodAtAcmeOnly((browser) => browser.post(verify, proof), 400, "OTP_NOT_FOUND");
    const otp = await ask("acme", PHONE, "request-password-reset");
    const reset = { phoneNumber: PHONE, otp, newPassword: PASSWORD };
    await world.goodAtAcmeOnly(
      (browser) => browser.post("/phone-number/reset-password", reset),
      400,
      "OTP_NOT_FOUND",
    );
    const person = { phoneNumber: PHONE, password: PASSWORD };
    await world.goodAtAcmeOnly(
      (browser) => browser.post("/sign-in/phone-number", person),
      401,
      "INVALID_PHONE_NUMBER_OR_PASSWORD",
    );
    const browser = world.at("acme");
    await browser.post("/sign-in/phone-number", person);
    const email = `${PHONE}@phone.example.com`;
    expect(await world.whoIs(browser)).toMatchObject({ email, tenantId: world.ids.acme });
  });

  it.each(ELSEWHERE)("R3: a phone of Acme is unknown on %s: nothing is sent", async (place) => {
    const sent = world.mails.length;
    await world.at(place).post("/phone-number/request-password-reset", { phoneNumber: PHONE });
    expect(world.mails).toHaveLength(sent);
  });

  // The plugin's own unique index is over the phone number alone.
  it("its unique column stays global: a phone of Acme is taken elsewhere", async () => {
    const body = { phoneNumber: PHONE, code: await ask("globex", PHONE) };
    const refused = await world.at("globex").post("/phone-number/verify", body);
    expectRefused(refused, refused.status, refused.code);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(await world.rowsIn("globex", "user")).toEqual([]);
    expect(await world.rowsIn("globex", "session")).toEqual([]);
  });
});
