import { apiKey } from "@better-auth/api-key";
import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware, getSessionFromCtx } from "better-auth/api";
import { multiSession, twoFactor } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runInTenant, type TenantPolicy } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { databases } from "../../support/database";
import { createInstance, PASSWORD } from "../../support/instance";
import { combine, sample } from "../../support/matrix";
import { SORTS } from "../../support/stores";
import { createWorld, EMAIL, expectRefused, type World } from "../../support/world";
import { codeOf, createWays, STORES, wallets } from "./sign-ins";
import {
  type Enabled,
  enroll,
  makeRequiring,
  makeWorld,
  REQUIRED,
  registerPasskey,
  type Setup,
  signIn,
  signInByPasskey,
  signInTwice,
  startSetup,
} from "./two-factor";

afterEach(() => void vi.useRealTimers());

const sessionOf = async (browser: Browser) =>
  (
    await browser.get<{
      session: { signInMethod: string; secondFactorAt: string; expiresAt: string };
    } | null>("/get-session")
  ).data?.session;

/** Without any session, whatever is asked. */
async function expectNobody(browser: Browser) {
  expect((await browser.get("/get-session")).data).toBeNull();
  expect((await browser.get("/list-sessions")).status).toBe(401);
  expect((await browser.post("/update-user", { name: "X" })).status).toBe(401);
}

describe.each(sample(combine(STORES, ["from the start", "since the last step but one"]), 1))(
  "sessions in %s, required %s",
  (store, moment) => {
    it("R14: no sign-in method gives a valid session without a second factor", async () => {
      const { ways, visitor, setPolicy, people } = await createWays(store);
      for (const { name, method, run } of ways) {
        await setPolicy(moment === "from the start" ? REQUIRED : null);
        const before = await people();
        const browser = visitor();
        const answer = await run(browser, () => setPolicy(REQUIRED));
        browser.keepCookies(answer.headers);
        if (method === "password") {
          expect([name, answer.data]).toEqual([
            name,
            { twoFactorSetupRequired: true, token: expect.any(String) },
          ]);
        } else if (method !== "passkey") {
          expect([name, codeOf(answer)]).toEqual([name, "TWO_FACTOR_REQUIRED"]);
          expect([name, await people()]).toEqual([name, before]);
        }
        const isIn = (await browser.get("/get-session")).data !== null;
        expect([name, isIn]).toEqual([name, method === "passkey"]);
      }
    });

    it("a method that is exempt leads in", async () => {
      const { ways, visitor, setPolicy } = await createWays(store);
      for (const { name, method, run } of ways) {
        if (!method || method === "password") continue;
        const exempt = { twoFactor: { required: true, exemptMethods: [method] } };
        // A device is approved in a session with a password.
        await setPolicy(moment === "from the start" && method !== "device" ? exempt : null);
        const browser = visitor();
        const answer = await run(browser, () => setPolicy(exempt));
        browser.keepCookies(answer.headers);
        expect([name, codeOf(answer), answer.status < 400]).toEqual([name, undefined, true]);
        // A device gets its token in the body.
        if (method === "device") continue;
        expect([name, (await browser.get("/get-session")).data === null]).toEqual([name, false]);
      }
    });
  },
);

it("tells the sign-in page", async () => {
  const world = await makeWorld();
  const read = async () => (await world.at("acme").get("/tenant/sign-in-methods")).data;
  const methods = ["password", "magic-link", "passkey"];
  expect(await read()).toMatchObject({ twoFactor: { required: false }, methods });
  await world.change("acme", { policy: REQUIRED });
  const left = ["password", "passkey"];
  expect(await read()).toMatchObject({ twoFactor: { required: true }, methods: left });
});

it("refuses a method before anything is mailed", async () => {
  const world = await makeRequiring();
  world.mails.length = 0;
  const answer = await world.at("acme").post("/sign-in/magic-link", { email: EMAIL });
  expectRefused(answer, 403, "TWO_FACTOR_REQUIRED");
  expect(world.mails).toEqual([]);
});

describe.each(sample(SORTS, 3))("setup, with sessions in $name", (store) => {
  it("leads from the first sign-in to an authenticator app, and asks for its code next time", async () => {
    const {
      world,
      jane,
      answer: { status, data },
    } = await startSetup({ store });
    expect([status, data]).toEqual([
      200,
      { twoFactorSetupRequired: true, token: expect.any(String) },
    ]);
    await expectNobody(jane);
    const machine = world.browser({
      ...world.naming("acme"),
      authorization: `Bearer ${data.token}`,
    });
    await expectNobody(machine);
    const app = await enroll(jane);
    expect(await sessionOf(jane)).toMatchObject({
      signInMethod: "password",
      secondFactorAt: expect.any(String),
    });
    const { expiresAt = "" } = (await sessionOf(jane)) ?? {};
    expect(new Date(expiresAt).getTime() - Date.now()).toBeGreaterThan(6 * 24 * 3600_000);
    // The setup session has ended.
    await expectNobody(machine);
    expect((await machine.post("/two-factor/send-otp")).status).toBe(401);
    const again = await signInTwice(world, app);
    expect(await sessionOf(again)).toMatchObject({ secondFactorAt: expect.any(String) });
  });

  it("leads to codes by mail", async () => {
    const world = await makeRequiring({ store });
    for (const enables of [true, false]) {
      await world.api.resetTenantUserTwoFactor({
        body: { tenantId: world.ids.acme, userId: (await world.as("jane", "acme")).id },
      });
      const jane = world.at("acme");
      await signIn(jane);
      if (enables) {
        // Switched on before a code has arrived, it would lock her out.
        const body = { password: PASSWORD, method: "otp" };
        const answer = await jane.post("/two-factor/enable", body);
        expectRefused(answer, 401, "TWO_FACTOR_REQUIRED");
        await expectNobody(jane);
      }
      expect((await jane.post("/two-factor/send-otp")).status).toBe(200);
      expect((await jane.post("/two-factor/verify-otp", { code: "000000" })).status).toBe(401);
      await expectNobody(jane);
      const { code } = world.lastMail("otp");
      expect((await jane.post("/two-factor/verify-otp", { code })).status).toBe(200);
      expect(await sessionOf(jane)).toMatchObject({ secondFactorAt: expect.any(String) });
    }
  });

  it("leads to a passkey that verifies its user, and to no other", async () => {
    const { world, jane } = await startSetup({ store });
    const weak = await registerPasskey(jane, false);
    expectRefused(weak.answer, 401, "TWO_FACTOR_REQUIRED");
    await expectNobody(jane);
    const { answer, authenticator } = await registerPasskey(jane, true);
    expect(answer.status).toBe(200);
    expect(await sessionOf(jane)).toMatchObject({ secondFactorAt: expect.any(String) });
    const other = world.at("acme");
    expect((await signInByPasskey(other, authenticator)).status).toBe(200);
    expect(await sessionOf(other)).toMatchObject({ signInMethod: "passkey" });
    // A password alone does not replace the passkey.
    expectRefused(await signIn(world.at("acme")), 403, "TWO_FACTOR_REQUIRED");
  });

  it("ends sessions that a policy does not accept, here and in cookies", async () => {
    const world = await makeWorld({ store });
    const jane = await world.as("jane", "acme");
    expect(await world.whoIs(jane)).not.toBeNull();
    await world.change("acme", { policy: REQUIRED });
    await expectNobody(jane);
    expect((await jane.post("/two-factor/enable", { password: PASSWORD })).status).toBe(401);
    await world.change("acme", { policy: null });
    expect((await world.as("jane", "globex")).id).not.toBe(jane.id);
  });
});

it("a passkey that does not verify its user is one factor", async () => {
  const world = await makeWorld();
  const jane = await world.as("jane", "acme");
  const { authenticator } = await registerPasskey(jane, false);
  const { authenticator: another } = await registerPasskey(jane, false);
  const browser = world.at("acme");
  expect((await signInByPasskey(browser, authenticator)).status).toBe(200);
  expect(await sessionOf(browser)).toMatchObject({ secondFactorAt: null });
  await world.change("acme", { policy: REQUIRED });
  await expectNobody(browser);
  const answer = await signInByPasskey(world.at("acme"), another);
  expectRefused(answer, 403, "TWO_FACTOR_REQUIRED");
});

it("a setup session lasts ten minutes, however often it is used", async () => {
  const { world, jane } = await startSetup();
  const use = async () => (await jane.post("/two-factor/send-otp")).status;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 9 * 60_000 });
  expect(await use()).toBe(200);
  vi.setSystemTime(Date.now() + 2 * 60_000);
  expect(await use()).toBe(401);
  // better-auth has moved the end of the session that was used.
  await world.change("acme", { policy: null });
  await expectNobody(jane);
});

it("a setup session is of no use once another session has set up a second factor", async () => {
  const world = await makeRequiring();
  await world.change("acme", { policy: null });
  // Who signs in with Google, say, and has a session that a setup does not end.
  const jane = await world.signUp("acme", "other@example.com");
  const thief = world.at("acme");
  await world.change("acme", { policy: REQUIRED });
  await signIn(thief, jane.email);
  await world.change("acme", { policy: null });
  await enroll(jane);
  await world.change("acme", { policy: REQUIRED });
  const password = { password: PASSWORD };
  for (const answer of [
    await thief.post("/two-factor/enable", { ...password, method: "otp" }),
    await thief.post("/two-factor/verify-totp", { code: "000000" }),
    await thief.post("/two-factor/send-otp"),
    await thief.post("/two-factor/verify-otp", { code: "000000" }),
    (await registerPasskey(thief, true)).answer,
  ]) {
    expectRefused(answer, 401, "TWO_FACTOR_REQUIRED");
  }
  await expectNobody(thief);
});

it("there is one setup at a time, and nothing of another one survives", async () => {
  const world = await makeRequiring();
  const [thief, jane] = [world.at("acme"), world.at("acme")];
  await signIn(thief);
  const planted = await thief.post<Enabled>("/two-factor/enable", { password: PASSWORD });
  await signIn(jane);
  expect((await thief.post("/two-factor/enable", { password: PASSWORD })).status).toBe(401);
  await jane.post("/two-factor/send-otp");
  const { code } = world.lastMail("otp");
  expect((await jane.post("/two-factor/verify-otp", { code })).status).toBe(200);
  expect((await signIn(thief)).data).toMatchObject({ twoFactorRedirect: true });
  const [backup] = planted.data.backupCodes;
  expect((await thief.post("/two-factor/verify-backup-code", { code: backup })).status).not.toBe(
    200,
  );
  await expectNobody(thief);
});

it("backup codes of an app that was never verified are no second factor", async () => {
  const world = await makeWorld();
  const jane = await world.as("jane", "acme");
  const { data } = await jane.post<Enabled>("/two-factor/enable", { password: PASSWORD });
  await jane.post("/two-factor/send-otp");
  await jane.post("/two-factor/verify-otp", { code: world.lastMail("otp").code });
  await world.change("acme", { policy: REQUIRED });
  const thief = world.at("acme");
  await signIn(thief);
  const [code] = data.backupCodes;
  const answer = await thief.post("/two-factor/verify-backup-code", { code });
  expectRefused(answer, 403, "TWO_FACTOR_REQUIRED");
  await expectNobody(thief);
});

it("R14: hooks of other plugins find no setup session", async () => {
  const found: unknown[] = [];
  const spy: BetterAuthPlugin = {
    id: "spy",
    hooks: {
      after: [
        {
          matcher: () => true,
          handler: createAuthMiddleware(async (ctx) => {
            const token = ctx.headers?.get("x-token");
            const { internalAdapter, newSession } = ctx.context;
            found.push(newSession, token && (await internalAdapter.findSession(token)));
          }),
        },
      ],
    },
  };
  const world = await makeRequiring({ plugins: [spy, multiSession()] });
  found.length = 0;
  const jane = world.at("acme");
  const { token = "" } = (await signIn(jane)).data;
  expect(found.filter(Boolean)).toEqual([]);
  const named = world.browser({ ...world.naming("acme"), "x-token": token });
  for (const [name, value] of jane.cookies) named.cookies.set(name, value);
  found.length = 0;
  expect((await named.post("/two-factor/verify-otp", { code: "x" })).status).toBe(400);
  expect(found.filter(Boolean)).toEqual([]);
  // Nor does a list of the sessions of a browser.
  const name = [...jane.cookies.keys()].find((cookie) => cookie.endsWith("session_token")) ?? "";
  jane.cookies.set(`${name}_multi-${token.toLowerCase()}`, jane.cookies.get(name) ?? "");
  expect((await jane.get("/multi-session/list-device-sessions")).data).toEqual([]);
});

it("signing out of a setup session clears its cookies, also if a hook has read it", async () => {
  const spy: BetterAuthPlugin = {
    id: "spy",
    hooks: {
      before: [
        {
          matcher: ({ path }) => path === "/sign-out",
          handler: createAuthMiddleware(async (ctx) => void (await getSessionFromCtx(ctx))),
        },
      ],
    },
  };
  const { jane } = await startSetup({ plugins: [spy] });
  const isSessionCookie = (name: string) => name.includes("session_token");
  expect([...jane.cookies.keys()].some(isSessionCookie)).toBe(true);
  expect((await jane.get("/get-session")).data).toBeNull();
  expect([...jane.cookies.keys()].some(isSessionCookie)).toBe(true);
  expect((await jane.post("/sign-out")).status).toBe(200);
  expect([...jane.cookies.keys()].some(isSessionCookie)).toBe(false);
});

it("a session that better-auth fails to take back is not valid", async () => {
  const tokens: string[] = [];
  const world = await makeWorld({
    auth: {
      databaseHooks: {
        session: {
          create: { after: async ({ token }) => void tokens.push(token) },
          delete: { before: async () => !isBroken },
        },
      },
    },
  });
  let isBroken = false;
  await world.as("jane", "acme");
  await world.change("acme", { policy: REQUIRED });
  const jane = world.at("acme");
  await signIn(jane);
  await enroll(jane);
  isBroken = true;
  expect((await signIn(world.at("acme"))).data).toMatchObject({ twoFactorRedirect: true });
  const authorization = `Bearer ${tokens.at(-1)}`;
  const thief = world.browser({ ...world.naming("acme"), authorization });
  await expectNobody(thief);
  expect((await thief.post("/two-factor/enable", { password: PASSWORD })).status).toBe(401);
});

it.each(sample(SORTS, 4))(
  "a trusted device and a backup code count, with sessions in $name",
  async (store) => {
    const { world, jane: first } = await startSetup({ store });
    const app = await enroll(first);
    const jane = await signInTwice(world, app, EMAIL, { trustDevice: true });
    await jane.post("/sign-out");
    expect((await signIn(jane)).data).not.toHaveProperty("twoFactorRedirect");
    expect(await sessionOf(jane)).toMatchObject({
      signInMethod: "password",
      secondFactorAt: expect.any(String),
    });
    const other = world.at("acme");
    await signIn(other);
    const [code] = app.backupCodes;
    expect((await other.post("/two-factor/verify-backup-code", { code })).status).toBe(200);
    expect(await sessionOf(other)).toMatchObject({ secondFactorAt: expect.any(String) });
  },
);

it("while it is required, a second factor cannot be switched off", async () => {
  const world = await makeWorld();
  const jane = await world.as("jane", "acme");
  await enroll(jane);
  await world.change("acme", { policy: REQUIRED });
  const password = { password: PASSWORD };
  const answer = await jane.post("/two-factor/disable", password);
  expectRefused(answer, 403, "TWO_FACTOR_REQUIRED");
  await world.change("acme", { policy: null });
  expect((await jane.post("/two-factor/disable", password)).status).toBe(200);
});

it("a tenant's administrator requires what their own session has", async () => {
  const world = await makeWorld();
  const admin = await world.as("admin", "acme");
  const require = () => admin.post("/tenant/update", { policy: REQUIRED });
  expectRefused(await require(), 409, "POLICY_LOCKS_OUT");
  await enroll(admin);
  expect((await require()).status).toBe(200);
  expect(await world.whoIs(admin)).not.toBeNull();
});

describe("what a policy may say", () => {
  it.each<[policy: object, named: string]>([
    [{ twoFactor: { required: true, exemptMethods: ["password"] } }, "exemptMethods"],
    [{ twoFactor: { required: true, exemptMethods: ["siwe"] } }, "siwe"],
    [{ twoFactor: { required: "yes" } }, "required"],
    [{ twoFactor: { required: true, more: 1 } }, "more"],
    // It has to leave a method that can have a second factor.
    [{ ...REQUIRED, methods: ["magic-link"] }, "none of the methods"],
  ])("%j is refused", async (policy, named) => {
    const world = await makeWorld();
    const body = { tenantId: world.ids.acme, policy };
    const answer = await (await world.operator()).post<{ message: string }>("/tenant/update", body);
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.data.message).toContain(named);
  });

  it("asks for no such method where no second factor is required", async () => {
    const { auth } = await createInstance({
      auth: { emailAndPassword: { enabled: false } },
      tenant: { platformPolicy: { signUp: "closed" } },
    });
    const policy: TenantPolicy = { signUp: "closed" };
    const tenant = await auth.api.createTenant({ body: { name: "A", slug: "acme", policy } });
    expect(tenant.policy).toEqual(policy);
  });

  it("counts the tenant's own providers among the methods", async () => {
    const { auth } = await createInstance({
      auth: { emailAndPassword: { enabled: false } },
      plugins: [twoFactor()],
    });
    const { id: tenantId } = await auth.api.createTenant({ body: { name: "A", slug: "acme" } });
    const policy: TenantPolicy = {
      twoFactor: { required: true, exemptMethods: ["social:google"] },
    };
    const update = () => auth.api.updateTenant({ body: { tenantId, policy } });
    await expect(update).rejects.toThrow("social:google is not set up");
    const google = { providerId: "google", clientId: "id", clientSecret: "secret" };
    await auth.api.registerTenantOAuthConfig({ body: { tenantId, ...google } });
    expect((await update()).policy).toEqual(policy);
  });

  it("needs better-auth's twoFactor()", async () => {
    const world = await createWorld();
    const operator = await world.operator();
    const body = { tenantId: world.ids.acme, policy: REQUIRED };
    const answer = await operator.post<{ message: string }>("/tenant/update", body);
    expectRefused(answer, 400, "VALIDATION_ERROR");
    expect(answer.data.message).toContain("twoFactor()");
    const platformPolicy = REQUIRED;
    await expect(createWorld({ tenant: { platformPolicy } })).rejects.toThrow("twoFactor()");
  });
});

it("impersonation counts for what the administrator's own session has", async () => {
  const world = await makeWorld();
  const { id: userId } = await world.as("jane", "acme");
  const operator = world.at("acme", await world.operator());
  const admin = await world.as("admin", "acme");
  await enroll(admin);
  await world.change("acme", { policy: REQUIRED });
  for (const browser of [operator, admin]) {
    expect((await browser.post("/admin/impersonate-user", { userId })).status).toBe(200);
    expect(await sessionOf(browser)).toMatchObject({ secondFactorAt: expect.any(String) });
  }
});

it("an API key works as before", async () => {
  const world = await makeWorld({
    plugins: [apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } })],
    tenant: { scopedModels: ["passkey", "apikey"] },
  });
  const jane = await world.as("jane", "acme");
  const { data } = await jane.post<{ key: string }>("/api-key/create", { name: "key" });
  await world.change("acme", { policy: REQUIRED });
  const machine = world.browser({ ...world.naming("acme"), "x-api-key": data.key });
  expect(await world.whoIs(machine)).toMatchObject({ id: jane.id });
});

it("a session that replaces another has its factors", async () => {
  const world = await makeWorld();
  const jane = await world.as("jane", "acme");
  await enroll(jane);
  await world.change("acme", { policy: REQUIRED });
  const change = { currentPassword: PASSWORD, newPassword: "another good password" };
  const body = { ...change, revokeOtherSessions: true };
  expect((await jane.post("/change-password", body)).status).toBe(200);
  expect(await world.whoIs(jane)).not.toBeNull();
});

describe("reset by an administrator", () => {
  const reset = (browser: Browser, userId: string, more: object = {}) =>
    browser.post("/tenant/user/reset-two-factor", { userId, ...more });

  async function lostDevice(world: World) {
    const jane = await world.as("jane", "acme");
    await enroll(jane);
    await registerPasskey(jane, true);
    const admin = await world.as("admin", "acme");
    const factors = await enroll(admin);
    await world.change("acme", { policy: REQUIRED });
    return { jane, admin, factors };
  }

  it.each(databases)("leads into setup at the next sign-in, on %s", async (database) => {
    const scopedModels = ["passkey", "walletAddress"];
    const world = await makeWorld({ database, plugins: [wallets()], tenant: { scopedModels } });
    const { jane, admin, factors } = await lostDevice(world);
    const owned = { userId: jane.id, address: "0x1", chainId: 1, createdAt: new Date() };
    await runInTenant(world.ids.acme, () =>
      world.context.adapter.create({ model: "walletAddress", data: owned }),
    );
    expect((await reset(admin, jane.id)).data).toEqual({ success: true });
    await expectNobody(jane);
    // What is no second factor stays, and nobody else loses anything.
    expect(await world.rows("walletAddress")).toBe(1);
    expect(await world.whoIs(admin)).toMatchObject({ id: admin.id });
    await signInTwice(world, factors, admin.email);
    const again = world.at("acme");
    expect((await signIn(again)).data).toMatchObject({ twoFactorSetupRequired: true });
    await enroll(again);
    expect(await world.whoIs(again)).toMatchObject({ id: jane.id });
  });

  it("is not for a user who may do more, nor by way of another endpoint", async () => {
    const world = await makeWorld({
      tenant: {
        scopedModels: ["passkey"],
        tenantRoles: {
          admin: ["policy:update", "user:reset-two-factor"],
          user: ["user:reset-two-factor"],
        },
      },
    });
    const { jane, admin } = await lostDevice(world);
    expectRefused(await reset(jane, admin.id), 403, "ROLE_NOT_ALLOWED");
    const body = { userId: jane.id, data: { twoFactorEnabled: false } };
    expectRefused(await admin.post("/admin/update-user", body), 403, "TWO_FACTOR_REQUIRED");
  });

  it("R7: is for administrators with the right, about their own tenant", async () => {
    const world = await makeWorld();
    const { jane, admin } = await lostDevice(world);
    const other = await world.as("jane", "globex");
    const refused = "TENANT_MANAGEMENT_NOT_ALLOWED";
    await world.unchanged(async () => {
      expectRefused(await reset(jane, admin.id), 403, refused);
      expectRefused(await reset(admin, other.id, { tenantId: world.ids.globex }), 403, refused);
      expectRefused(await reset(admin, other.id), 403, "USER_NOT_IN_TENANT");
      expectRefused(await reset(admin, "nobody"), 403, "USER_NOT_IN_TENANT");
      expectRefused(await reset(admin, "x".repeat(1000)), 400, "VALIDATION_ERROR");
      expectRefused(await reset(world.at("acme"), jane.id), 401, "UNAUTHORIZED");
    });
  });
});

it("holds on the platform, with platformPolicy", async () => {
  const world = await makeWorld({
    tenant: { scopedModels: ["passkey"], platformPolicy: REQUIRED },
  });
  const browser = world.at("platform");
  const body = { name: "Op", email: "op@example.com", password: PASSWORD };
  const { data } = await browser.post<Setup>("/sign-up/email", body);
  expect(data).toEqual({ twoFactorSetupRequired: true, token: expect.any(String) });
  await expectNobody(browser);
  await enroll(browser);
  expect(await sessionOf(browser)).toMatchObject({ secondFactorAt: expect.any(String) });
  // Acme has no such policy.
  expect(await world.whoIs(await world.as("jane", "acme"))).not.toBeNull();
});

it("a setup session of one tenant is nothing in another", async () => {
  const world = await makeWorld();
  await world.as("jane", "acme");
  await world.as("jane", "globex");
  for (const place of ["acme", "globex"]) await world.change(place, { policy: REQUIRED });
  const jane = world.at("acme");
  const { data } = await signIn(jane);
  const authorization = `Bearer ${data.token}`;
  const elsewhere = world.browser({ ...world.naming("globex"), authorization });
  const body = { password: PASSWORD };
  expect((await elsewhere.post("/two-factor/enable", body)).status).toBe(401);
  expect((await jane.post("/two-factor/enable", body)).status).toBe(200);
});
