import { apiKey } from "@better-auth/api-key";
import { deviceAuthorization, emailOTP, magicLink, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { SIGN_IN_METHODS } from "../../../src/core/sign-in-endpoints";
import type { SignInMethod, TenantPolicy } from "../../../src/index";
import { KEY_ENABLES_SECOND_FACTOR } from "../../support/differences";
import { PASSWORD } from "../../support/instance";
import { combine, sample } from "../../support/matrix";
import { totpFrom } from "../../support/totp";
import { createWorld, expectRefused, outcome } from "../../support/world";
import { codeOf, createWays, endpointsThatCall, STORES } from "./sign-ins";

describe("R14: the table of ways", () => {
  /** Those of @better-auth/sso, whose helpers make the sessions. */
  const isElsewhere = (path: string) => path.startsWith("/sso/");

  it("has every endpoint of every official plugin that makes a session", () => {
    const calls = /\bcreateSession\(|\bhandleOAuthUserInfo\(|\bvalid\(ctx\b/;
    const helpers = ["internal-adapter", "link-account", "verify-two-factor", "test-utils"];
    const makers = new Set(endpointsThatCall(calls, helpers));
    expect(makers.size).toBeGreaterThan(20);
    const known = Object.keys(SIGN_IN_METHODS).filter((path) => !isElsewhere(path));
    expect([...makers].sort()).toEqual(known.sort());
  });

  it("has every endpoint of @better-auth/sso that signs users in", () => {
    const calls = /(?<!function )\b(handleOIDCCallback|processSAMLResponse)\(/;
    const found = endpointsThatCall(calls, [], ["sso"]);
    expect(found).toHaveLength(3);
    const known = Object.keys(SIGN_IN_METHODS).filter((path) => path.startsWith("/sso/"));
    expect(known.sort()).toEqual(found.sort());
  });
});

/** A method that lets nobody in by this way: one provider is not another. */
function another(method: SignInMethod | null): SignInMethod {
  if (method?.startsWith("social:")) {
    return method === "social:google" ? "social:gitlab" : "social:google";
  }
  return method === "password" ? "social" : "password";
}

/** With ours first and one cookie, or with ours last and a cookie for each tenant. */
const LAST: Parameters<typeof createWays>[1] = {
  tenant: { sessionCookies: "per-tenant" },
  arrange: (ours, others) => [...others.toReversed(), ours],
};
const MOMENTS = ["from the start", "since the last step but one"] as const;

it.each(combine(STORES, MOMENTS, [{}, LAST, { place: "platform" } as const]))(
  "R14: sessions in %s: with its method, %s, a way leads in, and with another it does not",
  async (store, moment, options) => {
    const { ways, visitor, setPolicy, people } = await createWays(store, options);
    for (const { name, method, run } of ways) {
      const enter = async (allowed: SignInMethod) => {
        await setPolicy(moment === "from the start" ? { methods: [allowed] } : null);
        const browser = visitor();
        const answer = await run(browser, () => setPolicy({ methods: [allowed] }));
        browser.keepCookies(answer.headers);
        return { answer, browser };
      };
      const before = await people();
      const { answer, browser } = await enter(another(method));
      expect([name, codeOf(answer)]).toEqual([name, "SIGN_IN_METHOD_NOT_ALLOWED"]);
      // Nothing is left behind: no session, and nobody who could never sign in.
      expect([name, await people()]).toEqual([name, before]);
      expect([name, (await browser.get("/get-session")).data]).toEqual([name, null]);
      const social = method?.startsWith("social:") ? (["social"] as const) : [];
      for (const allowed of [...social, ...(method ? [method] : [])]) {
        const { answer } = await enter(allowed);
        const label = `${name}, with ${allowed}`;
        expect([label, codeOf(answer), answer.status < 400]).toEqual([label, undefined, true]);
      }
    }
  },
);

describe.each(sample(STORES, 1))("sessions in %s", (store) => {
  it("R10: no sign-in method leads into a suspended tenant", async () => {
    const { ways, visitor, people, change, person } = await createWays(store);
    for (const { name, run } of ways) {
      // Who approves devices was signed out along with everybody.
      // With a cookie of a dead session, better-auth's anonymous() takes the new one away again.
      person.cookies.clear();
      await person.post("/sign-in/email", { email: person.email, password: PASSWORD });
      const browser = visitor();
      let before: unknown;
      const answer = await run(browser, async () => {
        await change("acme", { status: "suspended" });
        before = await people();
      });
      expect([name, codeOf(answer)?.toUpperCase()]).toEqual([name, "TENANT_SUSPENDED"]);
      expect([name, await people()]).toEqual([name, before]);
      browser.keepCookies(answer.headers);
      // Sessions stay in secondary storage until they expire, but never become valid again.
      await change("acme", { status: "active" });
      for (const someone of [browser, person]) {
        expect([name, (await someone.get("/get-session")).data]).toEqual([name, null]);
      }
    }
  });
});

describe.each(STORES)("sessions in %s", (store) => {
  it("R14: renewal is no new way in, nor is impersonation by those who may", async () => {
    const { setPolicy, person, join, as, settle, at } = await createWays(store);
    const newPassword = "another good password";
    const change = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true };
    const admins = [at("acme", await as("admin", "platform")), await join("acme", "admin")];
    const { id: userId } = await settle();
    await setPolicy({ methods: ["passkey"], emailDomains: ["example.com"] });
    expect(outcome(await person.post("/change-password", change))).toEqual([200, undefined]);
    expect((await person.get("/get-session")).data).not.toBeNull();
    for (const admin of admins) {
      const answer = await admin.post("/admin/impersonate-user", { userId });
      expect([answer.status, codeOf(answer)]).toEqual([200, undefined]);
    }
  });
});

it("R14: the second step of two-factor follows an allowed first step alone", async () => {
  const world = await createWorld({
    plugins: (send) => [twoFactor({ otpOptions: { sendOTP: send("otp") } })],
  });
  const jane = await world.as("jane", "acme");
  await world.change("acme", { policy: { methods: ["password"] } });
  expect((await jane.post("/two-factor/enable", { password: PASSWORD })).status).toBe(200);
  await world.database.query('update "user" set "twoFactorEnabled" = 1 where id = ?', [jane.id]);
  const { person: again, data } = await world.signIn("acme");
  expect(data).toMatchObject({ twoFactorRedirect: true });
  await again.post("/two-factor/send-otp");
  const { code } = world.lastMail("otp");
  expect((await again.post("/two-factor/verify-otp", { code })).status).toBe(200);
  expect(await world.whoIs(again)).toMatchObject({ id: jane.id });
});

it.each<[code: string, policy: TenantPolicy]>([
  ["SIGN_IN_METHOD_NOT_ALLOWED", { methods: ["social:google"] }],
  ["EMAIL_NOT_VERIFIED", { emailDomains: ["example.com"] }],
])("R14: a second factor ends no sign-in that is %s by then", async (code, policy) => {
  const world = await createWorld({
    plugins: (send) => [twoFactor({ otpOptions: { sendOTP: send("otp") } })],
    auth: GOOGLE,
  });
  const jane = await world.as("jane", "acme");
  await jane.post("/two-factor/enable", { password: PASSWORD });
  await world.database.query('update "user" set "twoFactorEnabled" = 1 where id = ?', [jane.id]);
  const { person } = await world.signIn("acme");
  await person.post("/two-factor/send-otp");
  const { code: otp } = world.lastMail("otp");
  await world.change("acme", { policy });
  expectRefused(await person.post("/two-factor/verify-otp", { code: otp }), 403, code);
  expect(await world.whoIs(person)).toBeNull();
});

const GOOGLE = { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } };

/** Jane, and a machine with a key of hers, in a tenant where no session can be made for it. */
async function withKey(twoFactorOptions: Parameters<typeof twoFactor>[0]) {
  const world = await createWorld({
    plugins: [
      apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } }),
      twoFactor(twoFactorOptions),
    ],
    auth: GOOGLE,
    tenant: { scopedModels: ["apikey"] },
  });
  const jane = await world.as("jane", "acme");
  const { data } = await jane.post<{ key: string }>("/api-key/create", { name: "key" });
  const close = () => world.change("acme", { policy: { methods: ["social:google"] } });
  const machine = world.browser({ ...world.naming("acme"), "x-api-key": data.key });
  const everything = async () => ({ ...(await world.everything()), apikey: [] });
  return { world, jane, machine, close, everything };
}

it("R14: an API key is no session that could be continued", async () => {
  const { world, jane, machine, close, everything } = await withKey({
    skipVerificationOnEnable: true,
  });
  await close();
  expect(await world.whoIs(machine)).toMatchObject({ id: jane.id });
  const before = await everything();
  const newPassword = "another good password";
  const body = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true };
  // Before anything is begun that could not be ended.
  expectRefused(await machine.post("/change-password", body), 401, "UNAUTHORIZED");
  const renewed = await machine.post("/two-factor/enable", { password: PASSWORD });
  expectRefused(renewed, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
  expect(await everything()).toEqual(before);
});

describe("R14: a second factor and an API key", () => {
  const otpOptions = { sendOTP: ({ otp }: { otp: string }) => void sent.push(otp) };
  const sent: string[] = [];
  type Enabled = { totpURI: string; backupCodes: string[] };

  it.each(["enable", "verify-totp", "verify-otp"])(
    "R14: an API key switches no second factor on by %s",
    async (name) => {
      const { jane, machine, close, everything } = await withKey({ otpOptions });
      const { data } = await jane.post<Enabled>("/two-factor/enable", { password: PASSWORD });
      await machine.post("/two-factor/send-otp");
      const code = name === "verify-otp" ? sent.at(-1) : await totpFrom(data.totpURI);
      const body = name === "enable" ? { password: PASSWORD, method: "otp" } : { code };
      await close();
      const before = await everything();
      const answer = await machine.post(`/two-factor/${name}`, body);
      expectRefused(answer, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
      expect(await everything()).toEqual(before);
    },
  );

  it("an API key does what makes no session", async () => {
    const { world, jane, machine, close } = await withKey({ otpOptions });
    await close();
    const body = { password: PASSWORD };
    const { status, data } = await machine.post<Enabled>("/two-factor/enable", body);
    expect(status).toBe(KEY_ENABLES_SECOND_FACTOR ? 200 : 401);
    if (!KEY_ENABLES_SECOND_FACTOR) return;
    await world.database.query('update "user" set "twoFactorEnabled" = 1 where id = ?', [jane.id]);
    await machine.post("/two-factor/send-otp");
    for (const [name, code] of [
      ["verify-otp", sent.at(-1)],
      ["verify-totp", await totpFrom(data.totpURI)],
      ["verify-backup-code", data.backupCodes[0]],
    ]) {
      const answer = await machine.post(`/two-factor/${name}`, { code });
      expect([name, ...outcome(answer)]).toEqual([name, 200, undefined]);
    }
  });
});

it("R14: a device is refused before a user approves it, and its code is good afterwards", async () => {
  const { as, at, change } = await createWorld({
    plugins: [deviceAuthorization({ interval: "1s" })],
    tenant: { scopedModels: ["deviceCode"] },
  });
  const jane = await as("jane", "acme");
  type Codes = { device_code: string; user_code: string };
  const start = () => at("acme").post<Codes>("/device/code", { client_id: "tv" });
  const { device_code, user_code } = (await start()).data;
  await jane.get("/device", { query: { user_code } });
  const approve = () => jane.post("/device/approve", { userCode: user_code });
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const redeem = () =>
    at("acme").post("/device/token", { grant_type, device_code, client_id: "tv" });
  await change("acme", { policy: { methods: ["password"] } });
  for (const refused of [await start(), await approve(), await redeem()]) {
    expectRefused(refused, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
  }
  await change("acme", { policy: { methods: ["password", "device"] } });
  for (const { status } of [await start(), await approve(), await redeem()]) {
    expect(status).toBe(200);
  }
});

it("R14: a way that is not allowed is refused where it begins: nothing is mailed, and no password looked at", async () => {
  const world = await createWorld({
    plugins: (send) => [
      magicLink({ sendMagicLink: send("link") }),
      emailOTP({ sendVerificationOTP: send("code") }),
    ],
    auth: GOOGLE,
  });
  const { email } = await world.as("jane", "acme");
  const ask = (path: string, more = {}) => world.at("acme").post(path, { email, ...more });
  const sendCode = (type: string) => ask("/email-otp/send-verification-otp", { type });
  await world.change("acme", { policy: { methods: ["social"] } });
  world.mails.length = 0;
  for (const answer of [
    await ask("/sign-in/email", { password: "wrong" }),
    await ask("/sign-in/magic-link"),
    await sendCode("sign-in"),
  ]) {
    expectRefused(answer, 403, "SIGN_IN_METHOD_NOT_ALLOWED");
  }
  expect(world.mails).toEqual([]);
  // A code that is for something else signs nobody in.
  expect((await sendCode("email-verification")).status).toBe(200);
  expect(world.lastMail("code").to).toBe(email);
});
