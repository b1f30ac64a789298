import { apiKey } from "@better-auth/api-key";
import { twoFactor } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "../support/instance";
import { codeOf, createWays, STORES } from "./ways-in";

describe.each(STORES)("R14: what is no new way in; sessions in %s", (store) => {
  it("renewal: a changed password with other sessions revoked", async () => {
    const { person, setPolicy } = await createWays(store);
    await setPolicy({ methods: ["passkey"] });
    const answer = await person.browser.post("/change-password", {
      currentPassword: PASSWORD,
      newPassword: "another good password",
      revokeOtherSessions: true,
    });
    expect([answer.status, codeOf(answer)]).toEqual([200, undefined]);
    expect((await person.browser.get("/get-session")).data).not.toBeNull();
  });

  it("impersonation by an operator, and by the tenant's own administrator", async () => {
    if (store === "stateless") return;
    const world = await createWays(store);
    const { setPolicy, tenantId, database, person, settle } = world;
    const operator = await world.operator();
    const signedIn = world.browser({ "x-tenant-id": tenantId });
    await database.query('update "user" set role = ? where id = ?', ["admin", person.id]);
    await signedIn.post("/sign-in/email", person);
    const fresh = world.browser();
    await fresh.post("/sign-in/email", { email: operator.email, password: PASSWORD });
    const target = await settle();
    await setPolicy({ methods: ["passkey"], emailDomains: ["example.com"] });
    for (const browser of [fresh.fork({ "x-tenant-id": tenantId }), signedIn]) {
      const answer = await browser.post("/admin/impersonate-user", { userId: target.id });
      expect([answer.status, codeOf(answer)]).toEqual([200, undefined]);
    }
  });
});

it("R14: the second step of two-factor follows an allowed first step alone", async () => {
  const codes: string[] = [];
  const instance = await createInstance({
    plugins: [twoFactor({ otpOptions: { sendOTP: async ({ otp }) => void codes.push(otp) } })],
  });
  const { id: tenantId } = await instance.createTenant();
  const { browser, email } = await instance.signUp(tenantId);
  await instance.api.updateTenant({ body: { tenantId, policy: { methods: ["password"] } } });
  const enabled = await browser.post("/two-factor/enable", { password: PASSWORD });
  expect(enabled.status).toBe(200);
  await instance.database.query('update "user" set "twoFactorEnabled" = 1 where email = ?', [
    email,
  ]);
  const again = instance.browser({ "x-tenant-id": tenantId });
  const first = await again.post("/sign-in/email", { email, password: PASSWORD });
  expect(first.data).toMatchObject({ twoFactorRedirect: true });
  await again.post("/two-factor/send-otp");
  expect((await again.post("/two-factor/verify-otp", { code: codes.at(-1) })).status).toBe(200);
  expect((await again.get("/get-session")).data).not.toBeNull();
});

it("R14: an API key is no session that could be continued", async () => {
  const instance = await createInstance({
    plugins: [apiKey({ enableSessionForAPIKeys: true, rateLimit: { enabled: false } })],
    auth: { socialProviders: { google: { clientId: "id", clientSecret: "secret" } } },
    tenant: { scopedModels: ["apikey"] },
  });
  const { id: tenantId } = await instance.createTenant();
  const { browser } = await instance.signUp(tenantId);
  const { data } = await browser.post<{ key: string }>("/api-key/create", { name: "key" });
  await instance.api.updateTenant({ body: { tenantId, policy: { methods: ["social:google"] } } });
  const machine = instance.browser({ "x-tenant-id": tenantId, "x-api-key": data.key });
  const sessions = await instance.rows("session");
  const answer = await machine.post("/change-password", {
    currentPassword: PASSWORD,
    newPassword: "another good password",
    revokeOtherSessions: true,
  });
  expect([answer.status, answer.code]).not.toEqual([200, undefined]);
  expect(await instance.rows("session")).toBeLessThanOrEqual(sessions);
  expect(answer.headers.getSetCookie().join()).not.toMatch(/session_token=[^;]/);
});
