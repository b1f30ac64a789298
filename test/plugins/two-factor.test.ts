import { createOTP } from "@better-auth/utils/otp";
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { getTenantId } from "../../src/index";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { createPlaces, ELSEWHERE, EMAIL, expectRefused, PLACES, type Place } from "./places";

interface Enabled {
  totpURI: string;
  backupCodes: string[];
}

/** The same e-mail in three places, with two factors in each. */
async function createTwoFactorPlaces() {
  const sent: { otp: string; tenantId: string | null }[] = [];
  const places = await createPlaces([
    twoFactor({
      otpOptions: {
        sendOTP: async ({ otp }) => void sent.push({ otp, tenantId: getTenantId() }),
      },
    }),
  ]);
  const { at, naming, signUp } = places;

  async function enable(place: Place) {
    const { browser, user } = await signUp(place);
    const { data } = await browser.post<Enabled>("/two-factor/enable", { password: PASSWORD });
    const secret = new URL(data.totpURI).searchParams.get("secret") ?? "";
    // The URI carries the secret in base32, and the code is made of the secret itself.
    const totp = () => createOTP(fromBase32(secret), { digits: 6, period: 30 }).totp();
    const answer = await browser.post("/two-factor/verify-totp", { code: await totp() });
    expect(answer.status).toBe(200);
    return { totp, backupCodes: data.backupCodes, userId: user.id };
  }
  const people = { a: await enable("a"), b: await enable("b"), platform: await enable("platform") };

  /** The first factor: a browser that is asked for the second one. */
  async function firstFactor(place: Place, browser: Browser = at(place)) {
    const answer = await browser.post<{ twoFactorRedirect?: boolean }>("/sign-in/email", {
      email: EMAIL,
      password: PASSWORD,
    });
    expect(answer.status).toBe(200);
    return { browser, asked: answer.data.twoFactorRedirect === true };
  }
  /** The same browser in another place. */
  const moved = (browser: Browser, place: Place) => browser.fork(naming(place));
  return { ...places, sent, people, firstFactor, moved };
}

function fromBase32(text: string): string {
  const bits = [...text.replace(/=+$/, "")]
    .map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0"))
    .join("");
  const bytes = bits.match(/.{8}/g) ?? [];
  return String.fromCharCode(...bytes.map((byte) => Number.parseInt(byte, 2)));
}

describe("twoFactor", () => {
  it("asks for a TOTP in each place, and takes its own", async () => {
    const { firstFactor, people, whoIs, ids } = await createTwoFactorPlaces();
    for (const place of PLACES) {
      const { browser, asked } = await firstFactor(place);
      expect(asked).toBe(true);
      expect(await whoIs(browser, place)).toBe(null);
      const code = await people[place].totp();
      expect((await browser.post("/two-factor/verify-totp", { code })).status).toBe(200);
      expect(await whoIs(browser, place)).toEqual({
        id: people[place].userId,
        email: EMAIL,
        tenantId: ids[place],
      });
    }
  });

  it("asks at this plugin's own sign-in as well, without a session", async () => {
    const { at, ids, rows } = await createTwoFactorPlaces();
    const before = await rows("session");
    const body = { email: EMAIL, password: PASSWORD, tenantId: ids.a };
    const answer = await at("platform").post("/tenant/sign-in/email", body);
    expect(answer.data).toMatchObject({ twoFactorRedirect: true });
    expectRefused(answer, 200);
    expect(await rows("session")).toBe(before);
  });

  it.each(ELSEWHERE)("R6: a first factor of A cannot be finished on %s", async (place) => {
    const { firstFactor, people, moved, unchanged } = await createTwoFactorPlaces();
    const { browser } = await firstFactor("a");
    const attempts = [
      ["/two-factor/verify-totp", await people.a.totp()],
      ["/two-factor/verify-totp", await people[place].totp()],
      ["/two-factor/verify-backup-code", people.a.backupCodes[0]],
      ["/two-factor/verify-otp", "123456"],
    ] as const;
    for (const [path, code] of attempts) {
      const refused = await unchanged(() => moved(browser, place).post(path, { code }));
      expectRefused(refused, 401, "INVALID_TWO_FACTOR_COOKIE");
    }
    const sent = await unchanged(() => moved(browser, place).post("/two-factor/send-otp"));
    expectRefused(sent, 401, "INVALID_TWO_FACTOR_COOKIE");
  });

  it.each(ELSEWHERE)("the second factor of A is none on %s", async (place) => {
    const { firstFactor, people, rows } = await createTwoFactorPlaces();
    const sessions = await rows("session");
    const totp = (await firstFactor(place)).browser;
    const wrong = await totp.post("/two-factor/verify-totp", { code: await people.a.totp() });
    expectRefused(wrong, 401, "INVALID_CODE");
    const backup = (await firstFactor(place)).browser;
    const code = people.a.backupCodes[0];
    const used = await backup.post("/two-factor/verify-backup-code", { code });
    expectRefused(used, 401, "INVALID_BACKUP_CODE");
    expect(await rows("session")).toBe(sessions);
    // It was not used up elsewhere.
    const { browser } = await firstFactor("a");
    expect((await browser.post("/two-factor/verify-backup-code", { code })).status).toBe(200);
  });

  it("sends an OTP in the tenant, good for that person only", async () => {
    const { firstFactor, sent, ids, whoIs } = await createTwoFactorPlaces();
    const { browser } = await firstFactor("a");
    expect((await browser.post("/two-factor/send-otp")).status).toBe(200);
    const mail = sent.at(-1);
    expect(mail?.tenantId).toBe(ids.a);
    const other = (await firstFactor("b")).browser;
    await other.post("/two-factor/send-otp");
    const code = mail?.otp;
    expectRefused(await other.post("/two-factor/verify-otp", { code }), 401, "INVALID_CODE");
    expect((await browser.post("/two-factor/verify-otp", { code })).status).toBe(200);
    expect(await whoIs(browser, "a")).toMatchObject({ tenantId: ids.a });
  });

  it.each(ELSEWHERE)(
    "a device that A trusts is not trusted on %s, and A goes on",
    async (place) => {
      const { firstFactor, people, moved, at } = await createTwoFactorPlaces();
      const { browser } = await firstFactor("a");
      const code = await people.a.totp();
      await browser.post("/two-factor/verify-totp", { code, trustDevice: true });
      expect((await firstFactor("a", browser.fork())).asked).toBe(false);
      // Only the cookie of the device: the session of A would lead an unnamed request to A.
      const device = at(place);
      for (const [name, value] of browser.cookies) {
        if (name.includes("trust_device")) device.cookies.set(name, value);
      }
      expect(device.cookies.size).toBe(1);
      expect((await firstFactor(place, device)).asked).toBe(true);
      expect((await firstFactor(place, moved(browser, "b"))).asked).toBe(true);
    },
  );
});
