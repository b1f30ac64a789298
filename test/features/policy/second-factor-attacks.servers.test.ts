import { passkey } from "@better-auth/passkey";
import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { bearer, multiSession, twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import type { TenantPolicy } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { PASSWORD } from "../../support/instance";
import { mapStorage } from "../../support/stores";
import { totpFrom } from "../../support/totp";
import { createWorld, EMAIL, expectRefused, type World } from "../../support/world";
import {
  type Enabled,
  enroll,
  makeRequiring,
  makeWorld,
  REQUIRED,
  registerPasskey,
  signIn,
  signInByPasskey,
  signInTwice,
  startSetup,
} from "./two-factor";

// A thief knows a user's password, and nothing else. The tenant requires a second factor.

/** Sends a token alone: a session cookie that a response sets is not kept. */
function byBearer(world: World, token = ""): Browser {
  const client = world.browser({ ...world.naming("acme"), authorization: `Bearer ${token}` });
  const send = client.send.bind(client);
  client.send = (path, options) => {
    const names = [...client.cookies.keys()].filter((name) => name.includes("session"));
    for (const name of names) client.cookies.delete(name);
    return send(path, options) as never;
  };
  return client;
}

describe.each(["cookie", "bearer token"])("a setup session, by its %s", (kind) => {
  async function start(policy: TenantPolicy) {
    const world = await makeWorld();
    const jane = await world.as("jane", "acme");
    await world.changeUser(jane.id, { emailVerified: true });
    await world.change("acme", { policy });
    const browser = world.at("acme");
    const { token } = (await signIn(browser)).data;
    return { world, thief: kind === "cookie" ? browser : byBearer(world, token) };
  }

  it("sets nothing up once the user has a second factor", async () => {
    const exempt: TenantPolicy = { twoFactor: { required: true, exemptMethods: ["magic-link"] } };
    const { world, thief } = await start(exempt);
    const jane = world.at("acme");
    await jane.post("/sign-in/magic-link", { email: EMAIL });
    await jane.get("/magic-link/verify", { query: { token: world.lastMail("magic").token } });
    await enroll(jane);
    const { answer, authenticator } = await registerPasskey(thief, true);
    expectRefused(answer, 401, "TWO_FACTOR_REQUIRED");
    expectRefused(await thief.post("/two-factor/send-otp"), 401, "TWO_FACTOR_REQUIRED");
    expect(await world.whoIs(thief)).toBeNull();
    expect((await signInByPasskey(world.at("acme"), authenticator)).status).toBe(401);
  });

  it("is not completed by a passkey that does not verify its user", async () => {
    const { world, thief } = await start(REQUIRED);
    const { answer } = await registerPasskey(thief, false);
    expectRefused(answer, 401, "TWO_FACTOR_REQUIRED");
    expect(await world.whoIs(thief)).toBeNull();
    // Nor is it over.
    expect((await registerPasskey(thief, true)).answer.status).toBe(200);
  });

  it("is not completed by a passkey where the policy has none", async () => {
    const { world, thief } = await start({ ...REQUIRED, methods: ["password"] });
    const { answer } = await registerPasskey(thief, true);
    expectRefused(answer, 401, "TWO_FACTOR_REQUIRED");
    expect(await world.whoIs(thief)).toBeNull();
  });
});

it("setups that a slow storage has forgotten end when the owner sets up a second factor", async () => {
  const { storage } = mapStorage();
  const slowly = <T>(run: () => T) => new Promise((done) => setTimeout(done, 3)).then(run);
  const secondaryStorage = {
    ...storage,
    get: (key: string) => slowly(() => storage.get(key)),
    set: (key: string, value: string, ttl?: number) => slowly(() => storage.set(key, value, ttl)),
  };
  const world = await makeRequiring({ auth: { secondaryStorage: secondaryStorage as never } });
  const setups = await Promise.all(Array.from({ length: 4 }, () => signIn(world.at("acme"))));
  const owner = world.at("acme");
  expect((await signIn(owner)).data).toMatchObject({ twoFactorSetupRequired: true });
  const app = await enroll(owner);
  for (const { data } of setups) {
    const thief = byBearer(world, data.token);
    expect((await registerPasskey(thief, true)).answer.status).toBe(401);
    expect(await world.whoIs(thief)).toBeNull();
  }
  expect(await world.whoIs(await signInTwice(world, app))).not.toBeNull();
});

describe("the first step of a user with an app", () => {
  // bearer() before twoFactor() puts the token of the first step into the response.
  const build = (auth: object = {}) =>
    createWorld({
      auth,
      plugins: () => [bearer(), multiSession(), twoFactor(), passkey({ rpID: "localhost" })],
      tenant: { scopedModels: ["passkey"] },
    });

  it.each([
    ["no policy", null, {}],
    ["required", REQUIRED, {}],
    ["required, in a storage and the database", REQUIRED, { storeSessionInDatabase: true }],
  ] as const)("leaves no session behind: %s", async (_, policy, session) => {
    const isStored = "storeSessionInDatabase" in session;
    const world = await build({
      session,
      ...(isStored && { secondaryStorage: mapStorage().storage }),
    });
    await enroll(await world.as("jane", "acme"));
    const before = await world.rowsIn("acme", "session");
    await world.change("acme", { policy });
    const { data, headers } = await signIn(world.at("acme"));
    expect(data).toMatchObject({ twoFactorRedirect: true });
    expect(await world.rowsIn("acme", "session")).toHaveLength(before.length);
    const thief = byBearer(world, headers.get("set-auth-token") ?? "");
    expect(await world.whoIs(thief)).toBeNull();
    await world.change("acme", { policy: null });
    expect(await world.whoIs(thief)).toBeNull();
  });

  it.each(["sign-out", "revoke-other-sessions", "revoke-session", "admin"])(
    "a session that does not count can be ended by %s",
    async (how) => {
      const world = await build();
      const jane = await world.as("jane", "acme");
      const other = world.at("acme");
      const { token = "" } = (await signIn(other)).data;
      const kept = world.at("acme", other);
      await enroll(jane);
      const admin = await world.as("admin", "acme");
      await enroll(admin);
      await world.change("acme", { policy: REQUIRED });
      if (how === "sign-out") await other.post("/sign-out");
      if (how === "revoke-other-sessions") await jane.post("/revoke-other-sessions");
      if (how === "revoke-session") await jane.post("/revoke-session", { token });
      if (how === "admin") await admin.post("/admin/revoke-user-session", { sessionToken: token });
      await world.change("acme", { policy: null });
      expect(await world.whoIs(kept)).toBeNull();
    },
  );
});

describe("what was left behind before the policy is gone once the owner sets up a second factor", () => {
  async function plant(run: (world: World, thief: Browser) => Promise<void>) {
    const world = await makeWorld();
    await world.as("jane", "acme");
    const thief = world.at("acme");
    await signIn(thief);
    await run(world, thief);
    await world.change("acme", { policy: REQUIRED });
    const owner = world.at("acme");
    expect((await signIn(owner)).data).toMatchObject({ twoFactorSetupRequired: true });
    await enroll(owner);
    expect(await world.whoIs(owner)).not.toBeNull();
    expect(await world.whoIs(thief)).toBeNull();
    return { world, thief };
  }
  const password = { password: PASSWORD };

  it("a session with a backup code of an app that was never verified", async () => {
    await plant(async (_, thief) => {
      const { data } = await thief.post<Enabled>("/two-factor/enable", password);
      const code = data.backupCodes[0];
      expect((await thief.post("/two-factor/verify-backup-code", { code })).status).toBe(200);
    });
  });

  it("a session with an app that was switched off again", async () => {
    await plant(async (_, thief) => {
      await enroll(thief);
      expect((await thief.post("/two-factor/disable", password)).status).toBe(200);
    });
  });

  it("a session by a passkey that was deleted afterwards", async () => {
    await plant(async (_, thief) => {
      const { answer, authenticator } = await registerPasskey(thief, true);
      expect((await signInByPasskey(thief, authenticator)).status).toBe(200);
      const { id } = answer.data as { id: string };
      expect((await thief.post("/passkey/delete-passkey", { id })).status).toBe(200);
    });
  });

  it("a trusted device", async () => {
    const { thief, world } = await plant(async (world, thief) => {
      const other = world.at("acme");
      await signIn(other);
      const code = await totpFrom((await enroll(other)).totpURI);
      await signIn(thief);
      const verified = await thief.post("/two-factor/verify-totp", { code, trustDevice: true });
      expect(verified.status).toBe(200);
      expect((await other.post("/two-factor/disable", password)).status).toBe(200);
      await thief.post("/sign-out");
    });
    expect((await signIn(thief)).data).toMatchObject({ twoFactorRedirect: true });
    expect(await world.whoIs(thief)).toBeNull();
  });

  it("an app that an administrator switched off by /admin/update-user", async () => {
    let app: Enabled | undefined;
    const { world } = await plant(async (world, thief) => {
      app = await enroll(thief);
      const userId = (await world.whoIs(thief))?.id;
      const admin = await world.as("admin", "acme");
      const data = { twoFactorEnabled: false };
      expect((await admin.post("/admin/update-user", { userId, data })).status).toBe(200);
    });
    const again = world.at("acme");
    await signIn(again);
    const code = await totpFrom(app?.totpURI ?? "");
    expect((await again.post("/two-factor/verify-totp", { code })).status).toBe(401);
  });
});

it("a second factor that is switched off no longer counts for the session", async () => {
  const { world, jane } = await startSetup();
  await enroll(jane);
  await world.change("acme", { policy: null });
  expect((await jane.post("/two-factor/disable", { password: PASSWORD })).status).toBe(200);
  expect(await world.whoIs(jane)).not.toBeNull();
  await world.change("acme", { policy: REQUIRED });
  expect(await world.whoIs(jane)).toBeNull();
});

describe("legitimate users", () => {
  it("set a second factor up where only their cookie names the tenant", async () => {
    const { world, jane } = await startSetup();
    const window = world.at("platform", jane);
    await enroll(window);
    expect(await world.whoIs(window)).not.toBeNull();
  });

  it("have one session for one sign-in", async () => {
    const world = await makeWorld();
    const jane = await world.as("jane", "acme");
    const app = await enroll(jane);
    await jane.post("/revoke-sessions");
    await world.change("acme", { policy: REQUIRED });
    const browser = await signInTwice(world, app);
    expect((await browser.get<unknown[]>("/list-sessions")).data).toHaveLength(1);
  });

  it("sign in again after a setup, also where a hook reads the session", async () => {
    const before = createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx)));
    const plugins = [twoFactor({ skipVerificationOnEnable: true })];
    const world = await createWorld({ auth: { hooks: { before } }, plugins });
    await world.as("jane", "acme");
    await world.change("acme", { policy: REQUIRED });
    const jane = world.at("acme");
    await signIn(jane);
    const { data } = await jane.post<Enabled>("/two-factor/enable", { password: PASSWORD });
    expect((await signIn(jane)).data).toMatchObject({ twoFactorRedirect: true });
    const code = await totpFrom(data.totpURI);
    expect((await jane.post("/two-factor/verify-totp", { code })).status).toBe(200);
    expect(await world.whoIs(jane)).not.toBeNull();
  });

  it("who do not want to be remembered are not, on a trusted device", async () => {
    const world = await makeWorld();
    const app = await enroll(await world.as("jane", "acme"));
    await world.change("acme", { policy: REQUIRED });
    const browser = await signInTwice(world, app, EMAIL, { trustDevice: true });
    await browser.post("/sign-out");
    await signIn(browser, EMAIL, { rememberMe: false });
    const { data } = await browser.get<{ session: { expiresAt: string } }>("/get-session");
    const days = (new Date(data.session.expiresAt).getTime() - Date.now()) / 86_400_000;
    expect(days).toBeLessThan(1.1);
  });
});
