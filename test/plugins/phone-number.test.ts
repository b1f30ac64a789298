import { phoneNumber } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { createPlaces, ELSEWHERE, expectRefused, type Place } from "./places";

const PHONE = "+15550001";

async function createPhonePlaces() {
  const sent: { code: string; tenantId: string | null }[] = [];
  const send = async ({ code }: { code: string }) =>
    void sent.push({ code, tenantId: getTenantId() });
  const places = await createPlaces([
    phoneNumber({
      sendOTP: send,
      sendPasswordResetOTP: send,
      signUpOnVerification: { getTempEmail: (phone) => `${phone}@phone.example.com` },
    }),
  ]);
  const { at, ids } = places;
  async function ask(place: Place, path = "/phone-number/send-otp") {
    expect((await at(place).post(path, { phoneNumber: PHONE })).status).toBe(200);
    const { code, tenantId } = sent.at(-1) ?? {};
    expect(tenantId).toBe(ids[place]);
    return code;
  }
  /** Somebody at A with a phone and a password. */
  async function settle() {
    const browser = at("a");
    const body = { phoneNumber: PHONE, code: await ask("a") };
    expect((await browser.post("/phone-number/verify", body)).status).toBe(200);
    const set = await browser.post("/phone-number/request-password-reset", { phoneNumber: PHONE });
    expect(set.status).toBe(200);
    const reset = { phoneNumber: PHONE, otp: sent.at(-1)?.code, newPassword: PASSWORD };
    expect((await browser.post("/phone-number/reset-password", reset)).status).toBe(200);
    return browser;
  }
  return { ...places, sent, ask, settle };
}

describe("phoneNumber", () => {
  it("signs up by a code, and in by phone and password, inside a tenant", async () => {
    const { at, settle, whoIs, ids } = await createPhonePlaces();
    await settle();
    const browser = at("a");
    const body = { phoneNumber: PHONE, password: PASSWORD };
    expect((await browser.post("/sign-in/phone-number", body)).status).toBe(200);
    expect(await whoIs(browser, "a")).toEqual(
      expect.objectContaining({ email: `${PHONE}@phone.example.com`, tenantId: ids.a }),
    );
  });

  it.each(ELSEWHERE)("R6: a code of A is refused on %s, and stays good at A", async (place) => {
    const { at, ask, unchanged } = await createPhonePlaces();
    const body = { phoneNumber: PHONE, code: await ask("a") };
    const refused = await unchanged(() => at(place).post("/phone-number/verify", body));
    expectRefused(refused, 400, "OTP_NOT_FOUND");
    expect((await at("a").post("/phone-number/verify", body)).status).toBe(200);
  });

  it.each(ELSEWHERE)("R3: a phone of A is unknown on %s", async (place) => {
    const { at, settle, unchanged, sent } = await createPhonePlaces();
    await settle();
    const body = { phoneNumber: PHONE, password: PASSWORD };
    const refused = await unchanged(() => at(place).post("/sign-in/phone-number", body));
    expectRefused(refused, 401, "INVALID_PHONE_NUMBER_OR_PASSWORD");
    const before = sent.length;
    await at(place).post("/phone-number/request-password-reset", { phoneNumber: PHONE });
    expect(sent).toHaveLength(before);
  });

  it.each(ELSEWHERE)("R6: a reset code of A resets nothing on %s", async (place) => {
    const { at, settle, ask, unchanged, rows } = await createPhonePlaces();
    await settle();
    const otp = await ask("a", "/phone-number/request-password-reset");
    const body = { phoneNumber: PHONE, otp, newPassword: "a brand new password" };
    const refused = await unchanged(() => at(place).post("/phone-number/reset-password", body));
    expectRefused(refused, 400, "OTP_NOT_FOUND");
    expect((await at("a").post("/phone-number/reset-password", body)).status).toBe(200);
    expect(await rows("account", "password = ?", [`hashed:${body.newPassword}`])).toBe(1);
  });

  // The plugin's own unique index is over the phone number alone.
  it("its unique column stays global: a phone of A is taken at B", async () => {
    const { at, settle, ask, rows } = await createPhonePlaces();
    await settle();
    const body = { phoneNumber: PHONE, code: await ask("b") };
    const refused = await at("b").post("/phone-number/verify", body);
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.headers.getSetCookie()).toEqual([]);
    expect(await rows("user")).toBe(1);
    expect(await rows("session")).toBe(1);
  });
});
