import { randomBytes } from "node:crypto";
import {
  emailOTP,
  magicLink,
  oneTimeToken,
  phoneNumber,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import { beforeAll, describe, expect, it } from "vitest";
import { totpFrom } from "../../src/testing/totp";
import type { Browser } from "../support/browser";
import { PASSWORD } from "../support/instance";
import {
  ELSEWHERE,
  EMAIL,
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
let nonces = 0;

/** Every plugin that lets people in by a code, a link or a name. */
const world = shareWorld({
  plugins: (send) => [
    emailOTP({ sendVerificationOTP: send("otp") }),
    magicLink({ generateToken, sendMagicLink: send("link") }),
    oneTimeToken(),
    phoneNumber({
      sendOTP: send("code"),
      sendPasswordResetOTP: send("code"),
      signUpOnVerification: { getTempEmail: (phone) => `${phone}@phone.example.com` },
    }),
    siwe({
      domain: "localhost:3000",
      getNonce: async () => `nonce000${++nonces}`,
      verifyMessage: async ({ signature }) => signature === "good",
    }),
    twoFactor({ otpOptions: { sendOTP: send("second") } }),
    username(),
  ],
  // The wallet table is looked up by address, which everybody can know: it belongs in the scope.
  tenant: { scopedModels: ["walletAddress"] },
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

  it("R6: a code of Acme signs in, verifies and resets there only", async () => {
    await world.janes();
    const signIn = await askFor("acme", "sign-in", EMAIL);
    await world.goodAtAcmeOnly((to) => to.post("/sign-in/email-otp", signIn), 400, "INVALID_OTP");
    const proof = await askFor("acme", "email-verification", EMAIL);
    const verify = "/email-otp/verify-email";
    await world.goodAtAcmeOnly((to) => to.post(verify, proof), 400, "INVALID_OTP");
    const forgot = "/email-otp/request-password-reset";
    const { code: otp } = await ask("acme", "otp", forgot, { email: EMAIL });
    const reset = { email: EMAIL, otp, password: PASSWORD };
    await world.goodAtAcmeOnly(
      (browser) => browser.post("/email-otp/reset-password", reset),
      400,
      "INVALID_OTP",
    );
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

  it("R6: signs up by a code and sets a password, in its tenant only", async () => {
    const { code } = await ask("acme", "code", send, phone);
    const proof = { ...phone, code };
    const verify = "/phone-number/verify";
    await world.goodAtAcmeOnly((to) => to.post(verify, proof), 400, "OTP_NOT_FOUND");
    const forgot = "/phone-number/request-password-reset";
    const { code: otp } = await ask("acme", "code", forgot, phone);
    const reset = { ...phone, otp, newPassword: PASSWORD };
    await world.goodAtAcmeOnly(
      (browser) => browser.post("/phone-number/reset-password", reset),
      400,
      "OTP_NOT_FOUND",
    );
    await world.goodAtAcmeOnly(
      (browser) => browser.post("/sign-in/phone-number", { ...phone, password: PASSWORD }),
      401,
      "INVALID_PHONE_NUMBER_OR_PASSWORD",
    );
    // Where nobody has the number, nothing is sent.
    const sent = world.mails.length;
    for (const place of ELSEWHERE) await world.at(place).post(forgot, phone);
    expect(world.mails).toHaveLength(sent);
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

it("R6: oneTimeToken hands a session over inside its tenant only", async () => {
  const jane = await world.as("handed-over", "acme");
  const generate = "/one-time-token/generate";
  const { data } = await jane.get<{ token: string }>(generate);
  await world.goodAtAcmeOnly((to) => to.post("/one-time-token/verify", data), 400);
  const elsewhere = world.at("globex", jane);
  const refused = await world.unchanged(() => elsewhere.get(generate));
  expectRefused(refused, 401, "UNAUTHORIZED");
});

describe("siwe", () => {
  const WALLET = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
  const askFor = async (where: Where) =>
    (await world.at(where).post<{ nonce: string }>("/siwe/nonce")).data.nonce;

  const verify = (browser: Browser, nonce: string) => {
    const message = [
      `localhost:3000 wants you to sign in with your Ethereum account:\n${WALLET}\n`,
      "Sign in\n",
      "URI: http://localhost:3000",
      "Version: 1",
      "Chain ID: 1",
      `Nonce: ${nonce}`,
      `Issued At: ${new Date().toISOString()}`,
    ].join("\n");
    return browser.post("/siwe/verify", { message, signature: "good" });
  };

  it("R3, R6: the same wallet is three people, and a nonce of Acme is good there only", async () => {
    for (const place of [...PLACES, ...PLACES]) {
      const browser = world.at(place);
      expect((await verify(browser, await askFor(place))).status).toBe(200);
      expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids[place] });
    }
    expect(await world.rows("walletAddress")).toBe(3);
    const nonce = await askFor("acme");
    const code = "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE";
    await world.goodAtAcmeOnly((browser) => verify(browser, nonce), 401, code);
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

  it.each(ELSEWHERE)("the second factor of Acme is none on %s, and stays good", async (place) => {
    const code = factors.acme.backupCodes.shift();
    for (const [path, wrong, error] of [
      ["verify-totp", await totp("acme"), "INVALID_CODE"],
      ["verify-backup-code", code, "INVALID_BACKUP_CODE"],
    ] as const) {
      const { browser } = await firstFactor(place);
      expectRefused(await browser.post(`/two-factor/${path}`, { code: wrong }), 401, error);
    }
    const { browser } = await firstFactor("acme");
    expect((await browser.post("/two-factor/verify-backup-code", { code })).status).toBe(200);
  });

  it("sends an OTP in the tenant, good for that person only", async () => {
    const { browser } = await firstFactor("acme");
    const { browser: other } = await firstFactor("globex");
    await other.post("/two-factor/send-otp");
    expect((await browser.post("/two-factor/send-otp")).status).toBe(200);
    const { sentIn, code } = world.lastMail("second");
    expect(sentIn).toBe(world.ids.acme);
    expectRefused(await other.post("/two-factor/verify-otp", { code }), 401, "INVALID_CODE");
    expect((await browser.post("/two-factor/verify-otp", { code })).status).toBe(200);
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
