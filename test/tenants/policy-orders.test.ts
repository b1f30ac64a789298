import { jwt } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { createInstance, PASSWORD } from "../support/instance";
import { codeOf, createWays, STORES } from "./ways-in";

describe.each(STORES)("the policy holds where other things differ; sessions in %s", (store) => {
  it("with the plugin behind all others, and a cookie for each tenant", async () => {
    const { ways, at, setPolicy, count } = await createWays(store, {
      tenant: {
        scopedModels: ["deviceCode", "passkey", "walletAddress"],
        sessionCookies: "per-tenant",
      },
      arrange: (ours, others) => [...others.toReversed(), ours],
    });
    for (const { name, makesUser, method, run } of ways) {
      await setPolicy(null);
      const before = [await count("session"), await count("user")];
      const other = method === "password" ? "passkey" : "password";
      const answer = await run(at(), () => setPolicy({ methods: [other] }));
      expect([name, codeOf(answer)]).toEqual([name, "SIGN_IN_METHOD_NOT_ALLOWED"]);
      if (makesUser) {
        await setPolicy(null);
        const closed = await run(at(), () => setPolicy({ signUp: "closed" }));
        expect([name, codeOf(closed)]).toEqual([name, "SIGN_UP_CLOSED"]);
      }
      expect([name, await count("session"), await count("user")]).toEqual([name, ...before]);
    }
  });
});

it.each([true, false])("a plugin that copies the session config: ours first: %s", async (first) => {
  const instance = await createInstance({
    plugins: [jwt()],
    arrange: (ours, others) => (first ? [ours, ...others] : [...others, ours]),
    auth: { session: { cookieCache: { enabled: true } } },
  });
  const { id: tenantId } = await instance.createTenant();
  await instance.api.updateTenant({ body: { tenantId, policy: { session: { expiresIn: 600 } } } });
  const { browser } = await instance.signUp(tenantId);
  const { data } = await browser.get<{ session: { expiresAt: string } }>("/get-session");
  expect(new Date(data.session.expiresAt).getTime()).toBeLessThanOrEqual(Date.now() + 600_000);
  const other = await instance.signUp(null);
  const platform = await other.browser.get<{ session: { expiresAt: string } }>("/get-session");
  const day = 24 * 3600_000;
  expect(new Date(platform.data.session.expiresAt).getTime()).toBeGreaterThan(Date.now() + day);
});

it("a hook that changes the address of a new user does not get around its domain", async () => {
  const before = async (user: { email: string }) => ({
    data: { ...user, email: user.email.replace("@acme.com", "@evil.com") },
  });
  const instance = await createInstance({
    auth: { databaseHooks: { user: { create: { before } } } },
  });
  const { id: tenantId } = await instance.createTenant();
  const policy = { emailDomains: ["acme.com"] };
  await instance.api.updateTenant({ body: { tenantId, policy } });
  const body = { tenantId, name: "Al", email: "al@acme.com", password: PASSWORD };
  await instance.browser().post("/tenant/sign-up/email", body);
  expect(await instance.rows("user")).toBe(0);
});

it("tenantRoles without a role to go by is an error at start", async () => {
  const { betterAuth } = await import("better-auth");
  const options = { tenantRoles: { admin: ["tenant:get" as const] } };
  const auth = betterAuth({
    secret: "a test secret that is long enough",
    plugins: [tenantAuth(options)],
  });
  await expect(auth.$context).rejects.toThrow(/tenantRoles: users have no role/);
});
