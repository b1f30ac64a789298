import { type EmailOTPOptions, emailOTP } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { createPlaces, ELSEWHERE, EMAIL, expectRefused, PLACES, type Place } from "./places";

async function createOtpPlaces(options: Partial<EmailOTPOptions> = {}) {
  const sent: { email: string; otp: string; type: string; tenantId: string | null }[] = [];
  const places = await createPlaces([
    emailOTP({
      ...options,
      sendVerificationOTP: async (data) => void sent.push({ ...data, tenantId: getTenantId() }),
    }),
  ]);
  /** The code that arrives after a request for one. */
  async function ask(place: Place, type: string, email = EMAIL) {
    const path = "/email-otp/send-verification-otp";
    const { status } = await places.at(place).post(path, { email, type });
    expect(status).toBe(200);
    const mail = sent.at(-1);
    expect(mail).toEqual({ email, type, otp: expect.any(String), tenantId: places.ids[place] });
    return mail?.otp ?? "";
  }
  return { ...places, sent, ask };
}

describe("emailOTP", () => {
  it("signs up and in, as three people with one e-mail", async () => {
    const { at, ask, ids, whoIs, rows } = await createOtpPlaces();
    const people = new Set<string>();
    for (const place of PLACES) {
      const browser = at(place);
      const otp = await ask(place, "sign-in");
      expect((await browser.post("/sign-in/email-otp", { email: EMAIL, otp })).status).toBe(200);
      const person = await whoIs(browser, place);
      expect(person).toEqual({ id: expect.any(String), email: EMAIL, tenantId: ids[place] });
      people.add(person?.id ?? "");
    }
    expect(people.size).toBe(3);
    expect(await rows("user")).toBe(3);
  });

  it.each(ELSEWHERE)(
    "R6: a sign-in code of A is refused on %s, and stays good at A",
    async (to) => {
      const { at, ask, unchanged } = await createOtpPlaces();
      const otp = await ask("a", "sign-in");
      const body = { email: EMAIL, otp };
      const refused = await unchanged(() => at(to).post("/sign-in/email-otp", body));
      expectRefused(refused, 400, "INVALID_OTP");
      expect((await at("a").post("/sign-in/email-otp", body)).status).toBe(200);
    },
  );

  it("is sent on sign-up, by either path, once and in the tenant", async () => {
    const { at, sent, ids } = await createOtpPlaces({ sendVerificationOnSignUp: true });
    for (const path of ["/sign-up/email", "/tenant/sign-up/email"]) {
      const email = `${path.length}@example.com`;
      await at("a").post(path, { name: "Somebody", email, password: PASSWORD });
      const mails = sent.filter((mail) => mail.email === email);
      expect(mails.map(({ type, tenantId }) => [type, tenantId])).toEqual([
        ["email-verification", ids.a],
      ]);
    }
  });

  it("verifies the e-mail of the tenant's user only", async () => {
    const { at, ask, signUp, rows, unchanged } = await createOtpPlaces();
    for (const place of PLACES) await signUp(place);
    const body = { email: EMAIL, otp: await ask("a", "email-verification") };
    for (const place of ELSEWHERE) {
      const refused = await unchanged(() => at(place).post("/email-otp/verify-email", body));
      expectRefused(refused, 400, "INVALID_OTP");
      const checked = await unchanged(() =>
        at(place).post("/email-otp/check-verification-otp", {
          ...body,
          type: "email-verification",
        }),
      );
      expectRefused(checked, 400, "INVALID_OTP");
    }
    expect((await at("a").post("/email-otp/verify-email", body)).status).toBe(200);
    expect(await rows("user", '"emailVerified" = 1')).toBe(1);
  });

  it("resets the password of the tenant's user only", async () => {
    const { at, signUp, sent, unchanged, rows } = await createOtpPlaces();
    for (const place of PLACES) await signUp(place);
    const ask = { email: EMAIL };
    expect((await at("a").post("/email-otp/request-password-reset", ask)).status).toBe(200);
    const body = { email: EMAIL, otp: sent.at(-1)?.otp, password: "a brand new password" };
    for (const place of ELSEWHERE) {
      const refused = await unchanged(() => at(place).post("/email-otp/reset-password", body));
      expectRefused(refused, 400, "INVALID_OTP");
    }
    expect((await at("a").post("/email-otp/reset-password", body)).status).toBe(200);
    expect(await rows("account", "password = ?", [`hashed:${body.password}`])).toBe(1);
    for (const place of PLACES) {
      const password = place === "a" ? body.password : PASSWORD;
      const answer = await at(place).post("/sign-in/email", { email: EMAIL, password });
      expect(answer.status).toBe(200);
    }
  });

  it("threat: one code, redeemed 20 times at once, signs in once", async () => {
    const { at, ask, rows } = await createOtpPlaces();
    const body = { email: EMAIL, otp: await ask("a", "sign-in") };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => at("a").post("/sign-in/email-otp", body)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(await rows("session")).toBe(1);
  });
});
