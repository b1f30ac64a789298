import type { BetterAuthOptions } from "better-auth";
import { bearer, customSession, jwt, multiSession, oneTimeToken } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it } from "vitest";
import { bySubdomain, runInTenant } from "../../src/index";
import { ORDERS } from "../configurations/orders";
import { mapStorage } from "../sessions/stores";
import { Browser } from "../support/browser";
import { createInstance, PASSWORD } from "../support/instance";

const STORES: [string, () => Partial<BetterAuthOptions>][] = [
  ["the database", () => ({})],
  ["secondary storage", () => ({ secondaryStorage: mapStorage().storage })],
  ["a cookie", () => ({ session: { cookieCache: { enabled: true, strategy: "jwt" } } })],
];

const setStatus = (status: "active" | "suspended", tenantId: string) => ({
  body: { tenantId, status },
});

describe.each(ORDERS)("tenantAuth() %s", (_, arrange) => {
  it.each(STORES)("what was made of a session ends with it, in %s", async (_, auth) => {
    const plugins = [
      multiSession(),
      oneTimeToken(),
      bearer(),
      jwt(),
      customSession(async (x) => x),
    ];
    const instance = await createInstance({ auth: auth(), plugins, arrange });
    const [a, b] = [await instance.createTenant(), await instance.createTenant()];
    const email = "same@example.com";
    const { browser, token } = await instance.signUp(a.id, email);
    const both = browser.fork();
    const newcomer = { tenantId: b.id, name: "B", email, password: PASSWORD };
    expect((await both.post("/tenant/sign-up/email", newcomer)).status).toBe(200);
    const once = await browser.get<{ token: string }>("/one-time-token/generate");
    expect((await browser.get("/token")).status).toBe(200);
    const device = (window: Browser) =>
      window.fork().get<unknown[]>("/multi-session/list-device-sessions");

    await instance.api.updateTenant(setStatus("suspended", a.id));
    expect((await device(both)).data).toHaveLength(1);
    expect((await device(browser)).data).toEqual([]);
    expect((await browser.fork().get("/token")).status).toBe(401);
    await instance.api.updateTenant(setStatus("active", a.id));
    const named = instance.browser({ "x-tenant-id": a.id });
    const redeemed = await named.post("/one-time-token/verify", { token: once.data.token });
    expect(redeemed.status).toBeGreaterThanOrEqual(400);
    const chosen = { sessionToken: token };
    const active = await browser.fork().post("/multi-session/set-active", chosen);
    expect(active.status).toBeGreaterThanOrEqual(400);
    expect((await browser.fork().get("/get-session")).data).toBeNull();
  });
});

it("at the tenant's host, operators manage and its people are refused", async () => {
  const instance = await createInstance({
    tenant: { resolveTenantId: bySubdomain({ baseDomain: "example.com" }) },
    auth: {
      trustedOrigins: ["http://*.example.com"],
      baseURL: {
        allowedHosts: ["*.example.com", "example.com"],
        fallback: "http://example.com",
      },
    },
  });
  const { id: tenantId } = await instance.createTenant("acme");
  const at = (host: string) =>
    new Browser(instance.auth.handler, `http://${host}/api/auth`, { host });
  const [person, operator] = [at("acme.example.com"), at("example.com")];
  const somebody = { name: "N", email: "n@example.com", password: PASSWORD };
  for (const browser of [person, operator]) await browser.post("/sign-up/email", somebody);
  await instance.database.query(`update "user" set role = 'admin' where "tenantId" = ''`);
  await operator.post("/tenant/update", { tenantId, status: "suspended" });
  expect((await person.fork().get("/get-session")).data).toBeNull();
  expect((await person.fork().post("/sign-in/email", somebody)).code).toBe("TENANT_SUSPENDED");

  const visiting = at("acme.example.com");
  for (const [name, value] of operator.cookies) visiting.cookies.set(name, value);
  expect((await visiting.fork().get("/admin/list-users")).status).toBe(200);
  // Anywhere else the session of the platform counts for nothing here.
  expect((await visiting.fork().get("/list-sessions")).code).toBe("TENANT_SUSPENDED");
  const resumed = await visiting.post("/tenant/update", { tenantId, status: "active" });
  expect(resumed.data).toMatchObject({ status: "active" });
});

it("a session that a plugin writes past better-auth is none, then and later", async () => {
  const instance = await createInstance();
  const { id } = await instance.createTenant();
  const { user } = await instance.signUp(id);
  const adapter = instance.context.adapter as unknown as DBAdapter;
  const now = new Date();
  const expiresAt = new Date(now.getTime() + 1_000_000);
  const find = () => runInTenant(id, () => instance.context.internalAdapter.findSession("written"));
  await instance.api.updateTenant(setStatus("suspended", id));
  const data = { userId: user.id, token: "written", expiresAt, createdAt: now, updatedAt: now };
  await runInTenant(id, () => adapter.create({ model: "session", data }));
  expect(await find()).toBeNull();
  await instance.api.updateTenant(setStatus("active", id));
  expect(await find()).toBeNull();
});
