import { twoFactor } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import { totpFrom } from "../../src/testing/totp";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import {
  ELSEWHERE,
  EMAIL,
  expectRefused,
  type Person,
  PLACES,
  type Place,
  shareWorld,
} from "../support/world";

interface Enabled {
  totpURI: string;
  backupCodes: string[];
}

const world = shareWorld({
  plugins: (send) => [twoFactor({ otpOptions: { sendOTP: send("otp") } })],
});

/** The same e-mail in three places, with two factors in each. */
const factors = {} as Record<Place, Enabled & { person: Person }>;
beforeAll(async () => {
  for (const place of PLACES) {
    const person = await world.as("jane", place);
    const { data } = await person.post<Enabled>("/two-factor/enable", { password: PASSWORD });
    const code = await totpFrom(data.totpURI);
    expect((await person.post("/two-factor/verify-totp", { code })).status).toBe(200);
    factors[place] = { ...data, person };
  }
});

const totp = (place: Place) => totpFrom(factors[place].totpURI);
const backupCode = (place: Place) => factors[place].backupCodes.shift();

/** The first factor: a browser that is asked for the second one. */
async function firstFactor(place: Place, browser: Browser = world.at(place)) {
  const body = { email: EMAIL, password: PASSWORD };
  const answer = await browser.post<{ twoFactorRedirect?: boolean }>("/sign-in/email", body);
  expect(answer.status).toBe(200);
  return { browser, asked: answer.data.twoFactorRedirect === true };
}

describe("twoFactor", () => {
  it.each(PLACES)("asks for a TOTP on %s, and takes its own", async (place) => {
    const { browser, asked } = await firstFactor(place);
    expect([asked, await world.whoIs(browser)]).toEqual([true, null]);
    const code = await totp(place);
    expect((await browser.post("/two-factor/verify-totp", { code })).status).toBe(200);
    const { id } = factors[place].person;
    expect(await world.whoIs(browser)).toMatchObject({ id, tenantId: world.ids[place] });
  });

  it("asks at this plugin's own sign-in as well, without a session", async () => {
    const sessions = await world.rows("session");
    const body = { email: EMAIL, password: PASSWORD, tenantId: world.ids.acme };
    const answer = await world.at("platform").post("/tenant/sign-in/email", body);
    expect(answer.data).toMatchObject({ twoFactorRedirect: true });
    expectRefused(answer, 200);
    expect(await world.rows("session")).toBe(sessions);
  });

  it.each(ELSEWHERE)("R6: a first factor of Acme cannot be finished on %s", async (place) => {
    const moved = world.at(place, (await firstFactor("acme")).browser);
    for (const [path, code] of [
      ["verify-totp", await totp("acme")],
      ["verify-totp", await totp(place)],
      ["verify-backup-code", factors.acme.backupCodes[0]],
      ["verify-otp", "123456"],
      ["send-otp", undefined],
    ] as const) {
      const refused = await world.unchanged(() => moved.post(`/two-factor/${path}`, { code }));
      expectRefused(refused, 401, "INVALID_TWO_FACTOR_COOKIE");
    }
  });

  it.each(ELSEWHERE)("the second factor of Acme is none on %s, and stays good", async (place) => {
    const sessions = await world.rows("session");
    const code = backupCode("acme");
    for (const [path, wrong, error] of [
      ["verify-totp", await totp("acme"), "INVALID_CODE"],
      ["verify-backup-code", code, "INVALID_BACKUP_CODE"],
    ] as const) {
      const { browser } = await firstFactor(place);
      expectRefused(await browser.post(`/two-factor/${path}`, { code: wrong }), 401, error);
    }
    expect(await world.rows("session")).toBe(sessions);
    const { browser } = await firstFactor("acme");
    expect((await browser.post("/two-factor/verify-backup-code", { code })).status).toBe(200);
  });

  it("sends an OTP in the tenant, good for that person only", async () => {
    const { browser } = await firstFactor("acme");
    const { browser: other } = await firstFactor("globex");
    await other.post("/two-factor/send-otp");
    expect((await browser.post("/two-factor/send-otp")).status).toBe(200);
    const { sentIn, code } = world.lastMail("otp");
    expect(sentIn).toBe(world.ids.acme);
    expectRefused(await other.post("/two-factor/verify-otp", { code }), 401, "INVALID_CODE");
    expect((await browser.post("/two-factor/verify-otp", { code })).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids.acme });
  });

  it.each(ELSEWHERE)(
    "a device that Acme trusts is not trusted on %s, and Acme goes on",
    async (place) => {
      const { browser } = await firstFactor("acme");
      const code = await totp("acme");
      await browser.post("/two-factor/verify-totp", { code, trustDevice: true });
      expect((await firstFactor("acme", browser.fork())).asked).toBe(false);
      // Only the cookie of the device: the session of Acme would lead an unnamed request there.
      const device = world.at(place);
      for (const [name, value] of browser.cookies) {
        if (name.includes("trust_device")) device.cookies.set(name, value);
      }
      expect(device.cookies.size).toBe(1);
      expect((await firstFactor(place, device)).asked).toBe(true);
      expect((await firstFactor("globex", world.at("globex", browser))).asked).toBe(true);
    },
  );
});
