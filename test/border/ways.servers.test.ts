import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { apiKey } from "@better-auth/api-key";
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { WAYS } from "../../src/border/ways";
import type { SignInMethod } from "../../src/index";
import { PASSWORD } from "../support/instance";
import { everyCase } from "../support/matrix";
import { createWorld, expectRefused, outcome } from "../support/world";
import { codeOf, createWays, ENDPOINT, endpointsThatCall, STORES } from "./ways-in";

describe("R14: the table of ways", () => {
  /** Those of @better-auth/sso, whose helpers make the sessions, and one whose handler is another's. */
  const isElsewhere = (path: string) => /^\/(sso\/|oauth-proxy-callback$)/.test(path);

  it("has every endpoint of every official plugin that makes a session", () => {
    const calls = /\bcreateSession\(|\bhandleOAuthUserInfo\(|\bvalid\(ctx\b/;
    const helpers = ["internal-adapter", "link-account", "verify-two-factor", "test-utils"];
    const makers = new Set(endpointsThatCall(calls, helpers));
    expect(makers.size).toBeGreaterThan(20);
    const known = Object.keys(WAYS).filter((path) => !isElsewhere(path));
    expect([...makers].sort()).toEqual(known.sort());
  });

  it("has every endpoint of @better-auth/sso that signs people in", () => {
    const code = readFileSync(fileURLToPath(import.meta.resolve("@better-auth/sso")), "utf8");
    const makers = /(?<!function )\b(handleOIDCCallback|processSAMLResponse)\(/;
    expect(code).toMatch(/\bhandleOAuthUserInfo\(/);
    const starts = [...code.matchAll(ENDPOINT)];
    const found = starts.flatMap((start, index) =>
      makers.test(code.slice(start.index, starts[index + 1]?.index)) ? [start[1]] : [],
    );
    expect(found).toHaveLength(3);
    const known = Object.keys(WAYS).filter((path) => path.startsWith("/sso/"));
    expect(known.sort()).toEqual(found.sort());
  });
});

const SOCIAL: SignInMethod[] = ["social", "social:google", "social:gitlab", "social:corp"];
const METHODS: SignInMethod[] = [
  "password",
  ...SOCIAL,
  ...(["magic-link", "email-otp", "phone", "passkey", "siwe", "anonymous", "device"] as const),
];

const includes = (method: SignInMethod, way: SignInMethod | null) =>
  way === method || (method === "social" && way?.startsWith("social:") === true);

/** Each method once with one of the stores and moments, or with all of them. */
const MOMENTS = ["from the start", "since the last step but one"] as const;
const CASES = STORES.flatMap((store) => MOMENTS.map((moment) => ({ store, moment }))).map(
  (one, index, { length }) => ({
    ...one,
    methods: METHODS.filter((_, at) => everyCase || at % length === index),
  }),
);

it.each(CASES)(
  "R14: with a method, $moment, that way leads in and no other; sessions in $store",
  async ({ store, moment, methods }) => {
    const { ways, visitor, setPolicy, people } = await createWays(store);
    for (const method of methods) {
      for (const { name, method: way, run } of ways) {
        const label = `${name}, with ${method}`;
        await setPolicy(moment === "from the start" ? { methods: [method] } : null);
        const before = await people();
        const browser = visitor();
        const answer = await run(browser, () => setPolicy({ methods: [method] }));
        if (includes(method, way)) {
          expect([label, codeOf(answer), answer.status < 400]).toEqual([label, undefined, true]);
          continue;
        }
        expect([label, codeOf(answer)]).toEqual([label, "SIGN_IN_METHOD_NOT_ALLOWED"]);
        // Nothing is left behind: no session, and nobody who could never sign in.
        expect([label, await people()]).toEqual([label, before]);
        browser.keepCookies(answer.headers);
        expect([label, (await browser.get("/get-session")).data]).toEqual([label, null]);
      }
    }
  },
);

describe.each(STORES)("sessions in %s", (store) => {
  it("R10: every way leads in, none at a suspended tenant, and all of them again later", async () => {
    const { ways, visitor, people, setStatus, person } = await createWays(store);
    for (const { name, run } of ways) {
      await setStatus("active");
      // Who approves devices was signed out along with everybody.
      // With a cookie of a dead session, better-auth's anonymous() takes the new one away again.
      person.cookies.clear();
      await person.post("/sign-in/email", { email: person.email, password: PASSWORD });
      const open = await run(visitor());
      expect([name, codeOf(open), open.status < 400]).toEqual([name, undefined, true]);
      const browser = visitor();
      let users = 0;
      const answer = await run(browser, async () => {
        await setStatus("suspended");
        users = (await people()).users;
      });
      expect([name, codeOf(answer)?.toUpperCase()]).toEqual([name, "TENANT_SUSPENDED"]);
      expect([name, await people()]).toEqual([name, { users, sessions: 0 }]);
      browser.keepCookies(answer.headers);
      expect([name, (await browser.get("/get-session")).data]).toEqual([name, null]);
    }
  });

  const isTried = everyCase || store === "secondary storage";
  it.runIf(isTried)(
    "the policy holds in another order, with a cookie for each tenant",
    async () => {
      const { ways, visitor, setPolicy, people } = await createWays(store, {
        tenant: { sessionCookies: "per-tenant" },
        arrange: (ours, others) => [...others.toReversed(), ours],
      });
      for (const { name, makesUser, method, run } of ways) {
        await setPolicy(null);
        const before = await people();
        const other = method === "password" ? "passkey" : "password";
        const answer = await run(visitor(), () => setPolicy({ methods: [other] }));
        expect([name, codeOf(answer)]).toEqual([name, "SIGN_IN_METHOD_NOT_ALLOWED"]);
        if (makesUser) {
          await setPolicy(null);
          const closed = await run(visitor(), () => setPolicy({ signUp: "closed" }));
          expect([name, codeOf(closed)]).toEqual([name, "SIGN_UP_CLOSED"]);
        }
        expect([name, await people()]).toEqual([name, before]);
      }
    },
  );

  it("R14: renewal is no new way in, nor is impersonation by those who may", async () => {
    const { setPolicy, person, join, as, settle, at } = await createWays(store);
    const newPassword = "another good password";
    const change = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true };
    if (store === "stateless") {
      await setPolicy({ methods: ["passkey"] });
      expect(outcome(await person.post("/change-password", change))).toEqual([200, undefined]);
      return;
    }
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

it("R14: an API key is no session that could be continued", async () => {
  const world = await createWorld({
    plugins: [apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } })],
    auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
    tenant: { scopedModels: ["apikey"] },
  });
  const jane = await world.as("jane", "acme");
  const { data } = await jane.post<{ key: string }>("/api-key/create", { name: "key" });
  await world.change("acme", { policy: { methods: ["social:google"] } });
  const machine = world.browser({ ...world.naming("acme"), "x-api-key": data.key });
  expect(await world.whoIs(machine)).toMatchObject({ id: jane.id });
  const sessions = await world.rows("session");
  const newPassword = "another good password";
  const body = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true };
  const answer = await machine.post("/change-password", body);
  expectRefused(answer, 401, "UNAUTHORIZED");
  expect(await world.rows("session")).toBeLessThanOrEqual(sessions);
});
