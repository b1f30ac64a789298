import type { BetterAuthPlugin } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { describe, expect, it } from "vitest";
import { createInstance } from "../support/instance";
import { findLeaks, listenTo } from "../support/secret-spy";
import { shareInstance } from "../support/shared";

const SECRET = 'a client secret with "quotes" & more';
const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: SECRET };

/** A plugin that tells what it should not, after every request. */
const leaking = (leak: { body?: string; header?: string }): BetterAuthPlugin => ({
  id: "leaking",
  hooks: {
    after: [
      {
        matcher: () => leak.body !== undefined || leak.header !== undefined,
        handler: createAuthMiddleware(async (ctx) => {
          if (leak.header) ctx.setHeader("x-told", leak.header);
          return leak.body ? ctx.json({ told: leak.body }) : undefined;
        }),
      },
    ],
  },
});

async function createLeakingInstance() {
  const leak: Parameters<typeof leaking>[0] = {};
  const instance = await createInstance({ plugins: [leaking(leak)] });
  const { browser } = await instance.operator();
  const { id: tenantId } = await instance.createTenant();
  const register = (config: object = GOOGLE) =>
    browser.post("/tenant/oauth-config/register", { tenantId, ...config });
  const cipher = async () => {
    const [row] = await instance.database.query("select * from tenantOauthConfig");
    return String(row?.clientSecret);
  };
  return { instance, browser, tenantId, register, cipher, leak };
}

describe("the spy that every test runs under", () => {
  it("is silent while nothing leaks", async () => {
    const { instance, register, tenantId } = await createLeakingInstance();
    await register();
    await instance.api.listTenantOAuthConfigs({ query: { tenantId } });
    expect(await findLeaks()).toEqual([]);
  });

  it("hears a secret in an answer and in a header, of requests and of calls", async () => {
    const { instance, register, leak, tenantId } = await createLeakingInstance();
    await register();
    leak.body = `it is ${SECRET}`;
    await instance.browser().get("/ok");
    expect(await findLeaks()).toEqual(["a secret in the answer of /api/auth/ok"]);
    await instance.auth.handler(new Request("http://localhost:3000/api/auth/ok"));
    expect(await findLeaks()).toEqual(["a secret in the answer of /api/auth/ok"]);
    await instance.api.listTenantOAuthConfigs({ query: { tenantId } });
    expect(await findLeaks()).toContain("a secret in the answer of listTenantOAuthConfigs");
    leak.body = undefined;
    leak.header = encodeURIComponent(SECRET);
    await instance.browser().get("/ok");
    expect(await findLeaks()).toEqual(["a secret in the answer of /api/auth/ok"]);
  });

  it("hears cipher text", async () => {
    const { instance, register, leak, cipher } = await createLeakingInstance();
    await register();
    leak.body = await cipher();
    await instance.browser().get("/ok");
    expect(await findLeaks()).toEqual(["cipher text in the answer of /api/auth/ok"]);
  });

  it("hears the logger, however deep it is told", async () => {
    const { instance, register, cipher } = await createLeakingInstance();
    await register();
    const error = Object.assign(new Error("broken"), { row: { clientSecret: await cipher() } });
    instance.context.logger.error("it broke", { cause: { error } });
    expect(await findLeaks()).toEqual(["cipher text in the log"]);
    instance.context.logger.debug(`with ${SECRET}`);
    expect(await findLeaks()).toEqual(["a secret in the log"]);
  });

  it("hears the console", async () => {
    const { register } = await createLeakingInstance();
    await register();
    const silent = { ...console, error: (..._: unknown[]) => {} };
    listenTo(silent);
    silent.error("it broke", new Error(SECRET));
    expect(await findLeaks()).toEqual(["a secret in the console"]);
    expect(console.error.name).toBe("listening");
  });

  it("knows the secrets of updates, of checks, of refusals, and of calls of the server", async () => {
    const { instance, browser, register, tenantId } = await createLeakingInstance();
    await register({ ...GOOGLE, providerId: "nobody", clientSecret: "a refused secret" });
    await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
    const body = { tenantId, providerId: "google", clientSecret: "an updated secret" };
    await browser.post("/tenant/oauth-config/update", body);
    await instance.api.checkTenantOAuthConfig({
      body: { ...body, providerId: "nobody", clientId: "c", clientSecret: "a checked secret" },
    });
    for (const secret of ["a refused secret", SECRET, "an updated secret", "a checked secret"]) {
      instance.context.logger.info(secret);
      expect([secret, await findLeaks()]).toEqual([secret, ["a secret in the log"]]);
    }
  });

  it("does not take a client id for a secret, nor a word", async () => {
    const { instance, register } = await createLeakingInstance();
    await register({ ...GOOGLE, clientId: "both of them", clientSecret: "both of them" });
    await register({ ...GOOGLE, clientSecret: "secret" });
    instance.context.logger.info("both of them, and a secret");
    expect(await findLeaks()).toEqual([]);
  });
});

describe("an instance that a file shares", () => {
  const shared = shareInstance();

  it("is listened to as well", async () => {
    const { id: tenantId } = await shared.instance.createTenant();
    await shared.operator.post("/tenant/oauth-config/register", { tenantId, ...GOOGLE });
  });

  it("and its secrets are known in the tests that follow", async () => {
    shared.instance.context.logger.warn(SECRET);
    expect(await findLeaks()).toEqual(["a secret in the log"]);
  });
});
