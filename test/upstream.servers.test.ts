/*
 * Flaws of better-auth and its packages that docs/upstream.md reports, shown in better-auth alone.
 * A test that fails after an update means that one is mended: then its entry goes, and perhaps what
 * this plugin does about it.
 */
import { apiKey } from "@better-auth/api-key";
import { expo } from "@better-auth/expo";
import { passkey } from "@better-auth/passkey";
import type { BetterAuthOptions, BetterAuthPlugin } from "better-auth";
import {
  admin,
  bearer,
  deviceAuthorization,
  emailOTP,
  magicLink,
  phoneNumber,
} from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, type DatabaseKind, servers } from "./support/database";
import { createPlainInstance, PASSWORD } from "./support/instance";

const BOSS = { name: "Boss", email: "boss@partner.com", password: PASSWORD };

async function start(
  kind: DatabaseKind,
  plugins: BetterAuthPlugin[],
  options: Partial<BetterAuthOptions> = {},
) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  const instance = await createPlainInstance(database, options, plugins);
  const boss = instance.browser();
  const { data } = await boss.post<{ token: string; user: { id: string } }>("/sign-up/email", BOSS);
  const { quote, query } = database;
  const setRole = () => query(`update ${quote("user")} set role = ?`, ["admin"]);
  return { ...instance, boss, token: data.token, userId: data.user?.id, setRole };
}

const swapCase = (text: string) =>
  text.replace(/[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );

describe.runIf(servers.asked)("on MariaDB, whose default collation is not exact", () => {
  it("email-otp mails the code for boss@partner.com to boss@pártner.com", async () => {
    const sent: { email: string; otp: string }[] = [];
    const sendVerificationOTP = async (mail: { email: string; otp: string }) =>
      void sent.push(mail);
    const { browser } = await start("mysql", [emailOTP({ sendVerificationOTP })]);
    const thief = browser();
    const email = "boss@pártner.com";
    await thief.post("/email-otp/request-password-reset", { email });
    expect(sent).toMatchObject([{ email }]);
    const body = { email, otp: sent[0]?.otp, password: "the thief's password" };
    expect((await thief.post("/email-otp/reset-password", body)).status).toBe(200);
    const credentials = { email: BOSS.email, password: body.password };
    expect((await thief.post("/sign-in/email", credentials)).status).toBe(200);
  });

  it("a session token counts in another case", async () => {
    const { browser, token } = await start("mysql", [bearer()]);
    const headers = { authorization: `Bearer ${swapCase(token)}` };
    expect((await browser().get("/get-session", { headers })).data).toMatchObject({
      user: BOSS.email ? { email: BOSS.email } : {},
    });
  });

  it("so does the token of a link that resets a password", async () => {
    const tokens: string[] = [];
    const sendResetPassword = async ({ token }: { token: string }) => void tokens.push(token);
    const { browser } = await start("mysql", [], {
      emailAndPassword: { enabled: true, sendResetPassword },
    });
    await browser().post("/request-password-reset", { email: BOSS.email });
    const body = { token: swapCase(tokens[0] ?? ""), newPassword: "the thief's password" };
    expect((await browser().post("/reset-password", body)).status).toBe(200);
  });

  it("a magic link is a 500: the id of the row that it is reserved with is too long", async () => {
    const tokens: string[] = [];
    const sendMagicLink = async ({ token }: { token: string }) => void tokens.push(token);
    const { browser } = await start("mysql", [magicLink({ sendMagicLink })]);
    await browser().post("/sign-in/magic-link", { email: BOSS.email });
    const query = { token: tokens[0] ?? "" };
    expect((await browser().get("/magic-link/verify", { query })).status).toBe(500);
  });
});

describe.runIf(servers.asked)("on PostgreSQL", () => {
  it("an object as the id of a user is a 500, with serial ids", async () => {
    const { boss, setRole } = await start("postgres", [admin()], {
      advanced: { database: { generateId: "serial" } },
    });
    await setRole();
    expect((await boss.post("/admin/ban-user", { userId: {} })).status).toBe(500);
  });

  it("a NUL in a token is a 500", async () => {
    const { boss } = await start("postgres", []);
    expect((await boss.post("/revoke-session", { token: "\0" })).status).toBe(500);
  });
});

it("a device code that was approved before /revoke-sessions becomes a session after it", async () => {
  const { boss, browser } = await start("sqlite", [deviceAuthorization()]);
  const device = browser();
  const client = { client_id: "app" };
  const { data } = await device.post<{ device_code: string; user_code: string }>(
    "/device/code",
    client,
  );
  await boss.get("/device", { query: { user_code: data.user_code } });
  expect((await boss.post("/device/approve", { userCode: data.user_code })).status).toBe(200);
  expect((await boss.post("/revoke-sessions")).status).toBe(200);
  const grant = "urn:ietf:params:oauth:grant-type:device_code";
  const body = { ...client, grant_type: grant, device_code: data.device_code };
  const answer = await device.post("/device/token", body);
  expect(answer.data).toMatchObject({ access_token: expect.any(String) });
});

it("the API key of a banned user is valid, and gives a session", async () => {
  const keys = apiKey({ enableSessionForAPIKeys: true });
  const { auth, boss, browser, userId } = await start("sqlite", [admin(), keys]);
  const { data } = await boss.post<{ key: string }>("/api-key/create", {});
  const { internalAdapter } = await auth.$context;
  await internalAdapter.updateUser(userId, { banned: true });
  const api = auth.api as unknown as {
    verifyApiKey(input: object): Promise<{ valid: boolean }>;
  };
  expect(await api.verifyApiKey({ body: { key: data.key } })).toMatchObject({ valid: true });
  const headers = { "x-api-key": data.key };
  const answer = await browser().get("/get-session", { headers });
  expect(answer.data).toMatchObject({ user: { id: userId } });
});

it("passkey() registers for a session that was revoked, while the cookie cache has it", async () => {
  const session = { cookieCache: { enabled: true } };
  const { boss, browser } = await start("sqlite", [passkey()], { session });
  const another = browser();
  await another.post("/sign-in/email", BOSS);
  expect((await another.post("/revoke-sessions")).status).toBe(200);
  expect((await boss.get("/passkey/generate-register-options")).status).toBe(200);
});

it("an admin who acts as two users in two windows cannot stop the first: 500", async () => {
  const { boss, browser, setRole } = await start("sqlite", [admin()]);
  await setRole();
  const ids: string[] = [];
  for (const name of ["ann", "bob"]) {
    const body = { name, email: `${name}@partner.com`, password: PASSWORD };
    const { data } = await browser().post<{ user: { id: string } }>("/sign-up/email", body);
    ids.push(data.user.id);
  }
  await boss.post("/admin/impersonate-user", { userId: ids[0] });
  boss.cookies.delete("better-auth.admin_session");
  expect((await boss.post("/admin/stop-impersonating")).status).toBe(500);
});

it("sign-up tells by a refused phone number whether an email is free", async () => {
  const { browser } = await start("sqlite", [phoneNumber({ sendOTP: () => {} })], {
    emailAndPassword: { enabled: true, requireEmailVerification: true },
  });
  const signUp = async (email: string) =>
    (await browser().post("/sign-up/email", { ...BOSS, email, phoneNumber: ["abc"] })).status;
  expect(await signUp(BOSS.email)).not.toBe(await signUp("free@partner.com"));
});

it("expo() signs any state for anyone", async () => {
  const { browser } = await start("sqlite", [expo()]);
  const thief = browser();
  const authorizationURL = "https://accounts.google.com/o/oauth2/v2/auth?state=chosen-by-a-thief";
  await thief.get("/expo-authorization-proxy", { query: { authorizationURL } });
  expect(thief.cookieHeader()).toContain("chosen-by-a-thief.");
});
