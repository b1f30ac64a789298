import { phoneNumber, twoFactor, username } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import { totpFrom } from "../support/totp";
import { ELSEWHERE, expectRefused, PLACES, type Place, shareWorld } from "../support/world";

/**
 * What lets people in by a code or a name. Mailed codes: test/core/isolate/storage.servers.test.ts, mailed
 * links: test/core/isolate/links.test.ts, every endpoint: test/testing.
 */
const world = shareWorld({
  plugins: (send) => [
    phoneNumber({
      sendOTP: send("code"),
      signUpOnVerification: { getTempEmail: (phone) => `${phone}@phone.example.com` },
    }),
    twoFactor({ otpOptions: { sendOTP: send("second") } }),
    username(),
  ],
});

/** What Acme has given out is refused elsewhere, changes nothing there, and works in Acme. */
async function expectGoodInAcmeOnly(
  use: (browser: Browser) => Promise<Answer<unknown>>,
  status: number,
  code?: string,
) {
  for (const place of ELSEWHERE) {
    expectRefused(await world.unchanged(() => use(world.at(place))), status, code);
  }
  expect((await use(world.at("acme"))).status).toBe(200);
}

it("R6: phoneNumber signs up by a code in its tenant only, and the same phone elsewhere", async () => {
  const phone = { phoneNumber: "+15550001" };
  const ask = async (place: Place) => {
    await world.at(place).post("/phone-number/send-otp", phone);
    const { code, sentIn } = world.lastMail("code");
    expect(sentIn).toBe(world.ids[place]);
    return { ...phone, code };
  };
  const verify = "/phone-number/verify";
  const proof = await ask("acme");
  await expectGoodInAcmeOnly((to) => to.post(verify, proof), 400, "OTP_NOT_FOUND");
  const proven = await world.at("globex").post(verify, await ask("globex"));
  expect(proven.data).toMatchObject({ user: { ...phone, tenantId: world.ids.globex } });
});

it.each(["/sign-up/email", "/tenant/sign-up/email"])(
  "R15: a username that signed up at %s is unknown elsewhere, and free there",
  async (path) => {
    const name = `alice${path.length}`;
    const body = { name: "A", email: `${name}@example.com`, username: name, password: PASSWORD };
    expect((await world.at("acme").post(path, body)).status).toBe(200);
    const code = "INVALID_USERNAME_OR_PASSWORD";
    await expectGoodInAcmeOnly((to) => to.post("/sign-in/username", body), 401, code);
    expect((await world.at("globex").post(path, body)).status).toBe(200);
    expect((await world.at("globex").post("/sign-in/username", body)).status).toBe(200);
  },
);

describe("twoFactor", () => {
  type Enabled = { totpURI: string; backupCodes: string[] };
  /** The same e-mail in three places, with two factors in each. */
  const factors = {} as Record<Place, Enabled>;
  beforeAll(async () => {
    for (const place of PLACES) {
      const careful = await world.as("careful", place);
      const { data } = await careful.post<Enabled>("/two-factor/enable", { password: PASSWORD });
      const code = await totpFrom(data.totpURI);
      expect((await careful.post("/two-factor/verify-totp", { code })).status).toBe(200);
      factors[place] = data;
    }
  });
  const totp = (place: Place) => totpFrom(factors[place].totpURI);

  /** The first factor: a browser that is asked for the second one. */
  async function firstFactor(place: Place, browser = world.at(place), path = "/sign-in/email") {
    const person = { email: "careful@example.com", password: PASSWORD };
    const answer = await browser.post<{ twoFactorRedirect?: boolean }>(path, person);
    expect(answer.status).toBe(200);
    return { browser, asked: answer.data.twoFactorRedirect === true };
  }

  it.each([
    ["acme", "/sign-in/email"],
    ["acme", "/tenant/sign-in/email"],
    ["platform", "/sign-in/email"],
  ] as const)("asks for a TOTP on %s at %s, and takes its own", async (place, path) => {
    const { browser, asked } = await firstFactor(place, world.at(place), path);
    expect([asked, await world.whoIs(browser)]).toEqual([true, null]);
    const code = await totp(place);
    expect((await browser.post("/two-factor/verify-totp", { code })).status).toBe(200);
    expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids[place] });
  });

  it.each(ELSEWHERE)("R6: a first factor of Acme cannot be finished on %s", async (place) => {
    const moved = world.at(place, (await firstFactor("acme")).browser);
    for (const [path, code] of [
      ["verify-totp", await totp("acme")],
      ["verify-totp", await totp(place)],
      ["verify-backup-code", factors.acme.backupCodes[0]],
      ["send-otp", undefined],
    ] as const) {
      const refused = await world.unchanged(() => moved.post(`/two-factor/${path}`, { code }));
      expectRefused(refused, 401, "INVALID_TWO_FACTOR_COOKIE");
    }
  });

  it("a device that Acme trusts is not trusted elsewhere", async () => {
    const { browser } = await firstFactor("acme");
    const code = await totp("acme");
    await browser.post("/two-factor/verify-totp", { code, trustDevice: true });
    expect((await firstFactor("acme", browser.fork())).asked).toBe(false);
    for (const place of ELSEWHERE) {
      // Only the cookie of the device: the session of Acme would lead an unnamed request there.
      const device = world.at(place);
      for (const [name, value] of browser.cookies) {
        if (name.includes("trust_device")) device.cookies.set(name, value);
      }
      expect(device.cookies.size).toBe(1);
      expect((await firstFactor(place, device)).asked).toBe(true);
    }
  });
});
