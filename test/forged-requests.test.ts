import { describe, expect, it } from "vitest";
import { createInstance, PASSWORD } from "./support/instance";

const SIGN_UP = "/tenant/sign-up/email";
const SIGN_IN = "/tenant/sign-in/email";
const ANN = { name: "Ann", email: "ann@example.com", password: PASSWORD };

describe("requests forged by another site", () => {
  const EVIL = { origin: "https://evil.example" };

  it.each([SIGN_UP, SIGN_IN])("%s with a cookie from a foreign origin is 403", async (path) => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    const { browser } = await instance.signUp(tenantId);
    await instance.signUp(tenantId, "taken@example.com");
    const [users, sessions] = [await instance.rows("user"), await instance.rows("session")];
    const email = path === SIGN_IN ? "taken@example.com" : ANN.email;
    const body = { ...ANN, email, tenantId };
    const foreign = await browser.fork(EVIL).post(path, body);
    expect([foreign.status, foreign.code]).toEqual([403, "INVALID_ORIGIN"]);
    const sandboxed = await browser.fork({ origin: "null" }).post(path, body);
    expect([sandboxed.status, sandboxed.code]).toEqual([403, "MISSING_OR_NULL_ORIGIN"]);
    expect(await instance.rows("user")).toBe(users);
    expect(await instance.rows("session")).toBe(sessions);
  });

  it.each([SIGN_UP, SIGN_IN])("%s without a cookie is no way in either", async (path) => {
    const instance = await createInstance();
    const { id: tenantId } = await instance.createTenant();
    await instance.signUp(tenantId, "taken@example.com");
    const email = path === SIGN_IN ? "taken@example.com" : ANN.email;
    const body = { ...ANN, email, tenantId };
    const foreign = await instance.browser(EVIL).post(path, body);
    expect([foreign.status, foreign.code]).toEqual([403, "INVALID_ORIGIN"]);
    const navigation = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    const form = await instance.browser({ ...EVIL, ...navigation }).post(path, body);
    expect([form.status, form.code]).toEqual([403, "CROSS_SITE_NAVIGATION_LOGIN_BLOCKED"]);
    expect(foreign.headers.getSetCookie()).toEqual([]);
    expect(await instance.rows("user")).toBe(1);
    expect(await instance.rows("session")).toBe(1);
  });

  it("an operator's cookie from a foreign origin manages nothing", async () => {
    const instance = await createInstance();
    const tenant = await instance.createTenant();
    const { browser } = await instance.operator();
    const config = { tenantId: tenant.id, providerId: "google" };
    const requests = {
      "/tenant/create": { name: "Evil", slug: "evil" },
      "/tenant/update": { tenantId: tenant.id, name: "Evil" },
      "/tenant/delete": { tenantId: tenant.id },
      "/tenant/oauth-config/register": { ...config, clientId: "evil", clientSecret: "evil" },
      "/tenant/oauth-config/update": { ...config, clientSecret: "evil" },
      "/tenant/oauth-config/check": config,
      "/tenant/oauth-config/delete": config,
    };
    for (const [path, body] of Object.entries(requests)) {
      const answer = await browser.fork(EVIL).post(path, body);
      expect([path, answer.status, answer.code]).toEqual([path, 403, "INVALID_ORIGIN"]);
    }
    expect(await instance.api.listTenants()).toEqual([tenant]);
    expect(await instance.rows("tenantOauthConfig")).toBe(0);
  });

  it("an origin that the application trusts may", async () => {
    const instance = await createInstance({ auth: { trustedOrigins: [EVIL.origin] } });
    const { id: tenantId } = await instance.createTenant();
    const { browser } = await instance.signUp(tenantId);
    const answer = await browser.fork(EVIL).post(SIGN_UP, { ...ANN, tenantId });
    expect(answer.status).toBe(200);
  });
});
