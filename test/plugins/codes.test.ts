import { randomBytes } from "node:crypto";
import { emailOTP, magicLink, phoneNumber, twoFactor, username } from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import { totpFrom } from "../../src/testing/totp";
import { PASSWORD } from "../support/instance";
import {
  ELSEWHERE,
  expectRefused,
  PLACES,
  type Place,
  queryOf,
  shareWorld,
  type Where,
} from "../support/world";

/** What better-auth has in its table for magic links. */
const bare: string[] = [];
const generateToken = () => {
  bare.push(randomBytes(16).toString("hex"));
  return bare.at(-1) ?? "";
};

/** What lets people in by a code, a link or a name. Every endpoint of theirs: test/testing. */
const world = shareWorld({
  plugins: (send) => [
    emailOTP({ sendVerificationOTP: send("otp") }),
    magicLink({ generateToken, sendMagicLink: send("link") }),
    phoneNumber({
      sendOTP: send("code"),
      signUpOnVerification: { getTempEmail: (phone) => `${phone}@phone.example.com` },
    }),
    twoFactor({ otpOptions: { sendOTP: send("second") } }),
    username(),
  ],
});

/** What arrives after a request for it, sent in the place. */
async function ask(place: Place, kind: string, path: string, body: object) {
  expect((await world.at(place).post(path, body)).status).toBe(200);
  const mail = world.lastMail(kind);
  expect(mail.sentIn).toBe(world.ids[place]);
  return mail;
}

describe("emailOTP", () => {
  const askFor = async (place: Place, type: string, email: string) => {
    const { code } = await ask(place, "otp", "/email-otp/send-verification-otp", { email, type });
    return { email, otp: code };
  };

  it("R3: signs up three people with one e-mail", async () => {
    const people = new Set<string | undefined>();
    for (const place of PLACES) {
      const browser = world.at(place);
      const body = await askFor(place, "sign-in", "new@example.com");
      expect((await browser.post("/sign-in/email-otp", body)).status).toBe(200);
      const person = await world.whoIs(browser);
      expect(person).toMatchObject({ email: body.email, tenantId: world.ids[place] });
      people.add(person?.id);
    }
    expect(people.size).toBe(3);
  });
});

describe("magicLink", () => {
  const askFor = (place: Place) =>
    ask(place, "link", "/sign-in/magic-link", { email: "link@example.com", callbackURL: "/in" });

  async function expectNothing(place: Place, url: string) {
    const refused = await world.unchanged(() => world.at(place).get(url));
    expect(queryOf(refused.location), url).toEqual({ error: "INVALID_TOKEN" });
    expect(refused.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
  }

  it.each([
    ["acme", "globex"],
    ["platform", "acme"],
  ] as const)("R6: one of %s is none at %s, and leads home unnamed", async (place, elsewhere) => {
    const { url } = await askFor(place);
    await expectNothing(elsewhere, url);
    const browser = world.at("platform");
    const clicked = await browser.get(url);
    expect([clicked.status, new URL(clicked.location ?? "").pathname]).toEqual([302, "/in"]);
    expect(await world.whoIs(browser, place)).toMatchObject({ tenantId: world.ids[place] });
  });

  it("R6: does nothing for somebody who strips or alters its seal", async () => {
    const { token: theirs } = await askFor("globex");
    const { url, token } = await askFor("acme");
    const middle = Math.floor(token.length / 2);
    expect(token).not.toContain(bare.at(-1));
    for (const forged of [
      bare.at(-1) ?? "",
      `${theirs.slice(0, middle)}${token.slice(middle)}`,
      `${token}00`,
    ]) {
      for (const place of ELSEWHERE) await expectNothing(place, url.replace(token, forged));
    }
    expect(queryOf((await world.at("platform").get(url)).location)).toEqual({});
  });
});

describe("phoneNumber", () => {
  const phone = { phoneNumber: "+15550001" };
  const send = "/phone-number/send-otp";

  it("R6: signs up by a code, in its tenant only", async () => {
    const { code } = await ask("acme", "code", send, phone);
    const proof = { ...phone, code };
    const verify = "/phone-number/verify";
    await world.goodAtAcmeOnly((to) => to.post(verify, proof), 400, "OTP_NOT_FOUND");
  });

  // The plugin's own unique index is over the phone number alone: docs/plugins.md says so.
  it("its unique column stays global: a phone of Acme is taken elsewhere", async () => {
    const { code } = await ask("globex", "code", send, phone);
    const users = await world.rowsIn("globex", "user");
    const refused = await world.at("globex").post("/phone-number/verify", { ...phone, code });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
    expect(await world.rowsIn("globex", "user")).toEqual(users);
  });
});

describe("username", () => {
  const signUpAs = (where: Where, name: string, path = "/sign-up/email") => {
    const person = { name: "Somebody", email: `${name}@example.com`, password: PASSWORD };
    return world.at(where).post(path, { ...person, username: name });
  };

  it.each(["/sign-up/email", "/tenant/sign-up/email"])(
    "R3: is taken at %s, signs in inside its tenant, and is unknown elsewhere",
    async (path) => {
      const name = `alice${path.length}`;
      await signUpAs("acme", name, path);
      const body = { username: name, password: PASSWORD };
      const code = "INVALID_USERNAME_OR_PASSWORD";
      await world.goodAtAcmeOnly((to) => to.post("/sign-in/username", body), 401, code);
    },
  );

  // The plugin's own unique index is over the username alone.
  it("its unique column stays global: a username of Acme is taken elsewhere", async () => {
    await signUpAs("acme", "bob");
    const refused = await world.unchanged(() => signUpAs("globex", "bob"));
    expectRefused(refused, 422, "VALUE_TAKEN");
    expect((await signUpAs("globex", "bob2")).status).toBe(200);
  });
});

describe("twoFactor", () => {
  interface Enabled {
    totpURI: string;
    backupCodes: string[];
  }
  const person = { email: "careful@example.com", password: PASSWORD };
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
