import { passkey } from "@better-auth/passkey";
import { bearer, magicLink, twoFactor } from "better-auth/plugins";
import { expect } from "vitest";
import type { TenantPolicy } from "../../../src/index";
import { createAuthenticator } from "../../../src/testing/makers/authenticator";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { totpFrom } from "../../support/totp";
import { createWorld, EMAIL, type World, type WorldOptions } from "../../support/world";

export const REQUIRED: TenantPolicy = { twoFactor: { required: true } };
const ORIGIN = "http://localhost:3000";

export type Setup = {
  twoFactorSetupRequired?: true;
  token?: string;
  user?: object;
  session?: object;
};
export type Enabled = { totpURI: string; backupCodes: string[] };

export const makeWorld = (options: WorldOptions = {}) =>
  createWorld({
    ...options,
    plugins: (send) => [
      twoFactor({ otpOptions: { sendOTP: send("otp") } }),
      passkey({ rpID: "localhost" }),
      bearer(),
      magicLink({ sendMagicLink: send("magic") }),
      ...(Array.isArray(options.plugins) ? options.plugins : []),
    ],
    tenant: {
      scopedModels: ["passkey"],
      tenantRoles: { admin: ["policy:update", "user:reset-two-factor"] },
      ...options.tenant,
    },
  });

export const signIn = (browser: Browser, email = EMAIL, more: object = {}) =>
  browser.post<Setup>("/sign-in/email", { email, password: PASSWORD, ...more });

/** Jane has been at Acme, which requires a second factor now. */
export async function makeRequiring(options?: WorldOptions) {
  const world = await makeWorld(options);
  await world.as("jane", "acme");
  await world.change("acme", { policy: REQUIRED });
  return world;
}

/** The same, where she has signed in with her password, and has to set a second factor up. */
export async function startSetup(options?: WorldOptions) {
  const world = await makeRequiring(options);
  const jane = world.at("acme");
  return { world, jane, answer: await signIn(jane) };
}

/** Sets up an authenticator app, and returns what it needs to make codes. */
export async function enroll(browser: Browser): Promise<Enabled> {
  const { status, data } = await browser.post<Enabled>("/two-factor/enable", {
    password: PASSWORD,
  });
  expect(status).toBe(200);
  const code = await totpFrom(data.totpURI);
  expect((await browser.post("/two-factor/verify-totp", { code })).status).toBe(200);
  return data;
}

/** Signs in with a password and a code. */
export async function signInTwice(
  world: World,
  { totpURI }: Enabled,
  email = EMAIL,
  more: object = {},
) {
  const browser = world.at("acme");
  expect((await signIn(browser, email)).data).toMatchObject({ twoFactorRedirect: true });
  const code = await totpFrom(totpURI);
  expect((await browser.post("/two-factor/verify-totp", { code, ...more })).status).toBe(200);
  return browser;
}

export async function registerPasskey(browser: Browser, verifiesUser: boolean) {
  const authenticator = await createAuthenticator("localhost", verifiesUser);
  const options = await browser.get<{ challenge: string }>("/passkey/generate-register-options");
  const response = await authenticator.register(options.data?.challenge ?? "", ORIGIN);
  const answer = await browser.post("/passkey/verify-registration", { response });
  return { answer, authenticator };
}

export async function signInByPasskey(
  browser: Browser,
  { assert }: Awaited<ReturnType<typeof createAuthenticator>>,
) {
  const path = "/passkey/generate-authenticate-options";
  const { challenge } = (await browser.get<{ challenge: string }>(path)).data;
  return browser.post("/passkey/verify-authentication", {
    response: await assert(challenge, ORIGIN),
  });
}
