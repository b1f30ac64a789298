import { oauthProvider } from "@better-auth/oauth-provider";
import { jwt } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import type { DatabaseKind } from "../support/database";
import { createInstance } from "../support/instance";
import { databases } from "../support/servers";
import { codeIn, createAuthorizationServer } from "./authorization-server";
import { EMAIL, expectRefused } from "./places";

const plugins = () => [jwt(), oauthProvider({ loginPage: "/login", consentPage: "/consent" })];

const createServer = (database?: DatabaseKind) => createAuthorizationServer(plugins, database);

describe.each(databases)("oauth-provider on the platform, %s", (database) => {
  it("signs people of the platform in at an application", async () => {
    const { register, send, redeem, userInfo, signUp } = await createServer(database);
    const client = await register();
    const { browser, user } = await signUp("platform");
    const { answer, verifier } = await send(browser, client.client_id);
    const { data, status } = await redeem(client, codeIn(answer.location) ?? "", verifier);
    expect(status, JSON.stringify(data)).toBe(200);
    const info = await userInfo(data.access_token);
    expect(info.data).toMatchObject({ sub: user.id, email: EMAIL });
  });

  it("R5: a session of a tenant is no session there, and stays alive", async () => {
    const server = await createServer(database);
    const { register, send, signUp, instance, whoIs, unchanged } = server;
    const client = await register();
    const { browser, user } = await signUp("a");
    const bare = instance.browser();
    for (const [name, value] of browser.cookies) bare.cookies.set(name, value);
    const { answer } = await unchanged(() => send(bare, client.client_id));
    expect(codeIn(answer.location)).toBeUndefined();
    expect([answer.status, answer.location]).toEqual([302, expect.stringContaining("/login")]);
    expect(await whoIs(bare, "a")).toMatchObject({ id: user.id });
    const created = await bare.post("/oauth2/create-client", {
      redirect_uris: ["https://evil.example/back"],
    });
    expect(created.status).toBe(401);
  });

  it.each(["nobody", "somebody of a tenant"])("goes on from the login page as %s", async (who) => {
    const server = await createServer(database);
    const { register, send, redeem, userInfo, signUp, signInFor, instance } = server;
    const client = await register();
    const { user } = await signUp("platform");
    const browser = instance.browser();
    const visitor = who === "nobody" ? browser : (await signUp("a")).browser;
    for (const [name, value] of visitor.cookies) browser.cookies.set(name, value);
    const { answer, verifier } = await send(browser, client.client_id);
    const { data } = await signInFor(browser, answer, EMAIL);
    const tokens = await redeem(client, codeIn(data.url) ?? "", verifier);
    expect((await userInfo(tokens.data.access_token)).data.sub).toBe(user.id);
  });
});

describe.each(databases)("oauth-provider inside a tenant, %s", (database) => {
  it("threat: nobody of a tenant is authorised at an application, by whichever way", async () => {
    const { register, send, signUp, signInFor, naming, instance, ids, rows } =
      await createServer(database);
    const client = await register();
    const { browser } = await signUp("a");
    const login = await send(instance.browser(), client.client_id);
    const named = await send(browser, client.client_id);
    expectRefused(named.answer, 403, "PLATFORM_ONLY");
    const inQuery = await send(instance.browser(), client.client_id, { tenantId: ids.a ?? "" });
    expectRefused(inQuery.answer, 403, "PLATFORM_ONLY");
    for (const visitor of [browser, instance.browser(naming("a"))]) {
      const answer = await signInFor(visitor, login.answer, EMAIL);
      expectRefused(answer, 403, "PLATFORM_ONLY");
    }
    expect(await rows("verification")).toBe(0);
    expect(await rows("oauthAccessToken")).toBe(0);
  });

  it("threat: a tenant's administrator makes up an address that no application believes", async () => {
    const { register, send, signUp, setRole, signInFor, naming, instance } =
      await createServer(database);
    const client = await register();
    const admin = await signUp("a");
    await setRole(admin.user.id, "admin");
    const victim = { name: "V", email: "victim@example.com", password: "correct horse battery" };
    const body = { ...victim, data: { emailVerified: true } };
    expect((await admin.browser.post("/admin/create-user", body)).status).toBe(200);
    const login = await send(instance.browser(), client.client_id);
    const browser = instance.browser(naming("a"));
    const answer = await signInFor(browser, login.answer, victim.email);
    expectRefused(answer, 403, "PLATFORM_ONLY");
    expect((await browser.post("/sign-in/email", victim)).status).toBe(200);
    for (const visitor of [browser, browser.fork({})]) {
      const sent = await send(visitor, client.client_id);
      expect(codeIn(sent.answer.location)).toBeUndefined();
    }
  });

  it("threat: a tenant's people register no clients, and see none", async () => {
    const { register, signUp, unchanged } = await createServer(database);
    const { client_id } = await register();
    const { browser } = await signUp("a");
    const client = { redirect_uris: ["https://evil.example/back"] };
    const calls = [
      () => browser.post("/oauth2/create-client", client),
      () => browser.post("/oauth2/register", client),
      () => browser.post("/oauth2/update-client", { client_id, update: client }),
      () => browser.post("/oauth2/delete-client", { client_id }),
      () => browser.get("/oauth2/get-clients"),
      () => browser.get("/oauth2/get-client", { query: { client_id } }),
      () => browser.get("/oauth2/public-client", { query: { client_id } }),
      () => browser.get("/oauth2/get-consents"),
    ];
    for (const call of calls) expectRefused(await unchanged(call), 403, "PLATFORM_ONLY");
  });

  it("codes and tokens of the platform are good in no tenant, and stay good", async () => {
    const { register, send, redeem, userInfo, signUp, naming } = await createServer(database);
    const client = await register();
    const { browser } = await signUp("platform");
    const { answer, verifier } = await send(browser, client.client_id);
    const code = codeIn(answer.location) ?? "";
    expectRefused(await redeem(client, code, verifier, naming("a")), 403, "PLATFORM_ONLY");
    const { data } = await redeem(client, code, verifier);
    expectRefused(await userInfo(data.access_token, naming("a")), 403, "PLATFORM_ONLY");
    expect((await userInfo(data.access_token)).status).toBe(200);
  });

  it("threat: a token that jwt() makes inside a tenant is no access token", async () => {
    const { signUp, userInfo } = await createServer(database);
    const { browser } = await signUp("a");
    const { data } = await browser.get<{ token: string }>("/token");
    expect(data.token).toMatch(/^ey/);
    const info = await userInfo(data.token);
    // better-auth breaks down at a token of another issuer, on the platform as well.
    expect(info.status).toBeGreaterThanOrEqual(400);
    expect(JSON.stringify(info.data)).not.toContain(EMAIL);
  });

  it("server code inside a tenant meets an empty table, and makes nothing", async () => {
    const { register, instance, ids, rows } = await createServer(database);
    await register();
    const { adapter } = instance.context;
    const model = "oauthClient";
    await runInTenant(ids.a ?? "", async () => {
      expect(await adapter.findMany({ model })).toEqual([]);
      expect(await adapter.count({ model })).toBe(0);
      expect(await adapter.deleteMany({ model, where: [] })).toBe(0);
      await expect(register()).rejects.toMatchObject({ body: { code: "PLATFORM_ONLY" } });
      await expect(adapter.create({ model, data: {} })).rejects.toMatchObject({
        body: { code: "PLATFORM_ONLY" },
      });
    });
    expect(await rows(model)).toBe(1);
  });

  it("people of a tenant sign out as ever", async () => {
    const { signUp, whoIs, instance } = await createServer(database);
    const { browser } = await signUp("a");
    expect((await browser.post("/sign-out")).status).toBe(200);
    expect(await whoIs(browser, "a")).toBeNull();
    const errors = instance.logs.filter((line) => line.startsWith("error"));
    // Tests start before there are tables.
    expect(errors.filter((line) => !line.includes("schema mismatch"))).toEqual([]);
  });
});

describe("oauth-provider at start", () => {
  it("R11: needs no decision, and takes none", async () => {
    await createInstance({ plugins: plugins() });
    for (const option of ["scopedModels", "sharedModels"] as const) {
      const tenant = { [option]: ["oauthClient"] };
      await expect(createInstance({ plugins: plugins(), tenant })).rejects.toThrow(
        `tenantAuth(): ${option}: "oauthClient" belongs to oauth-provider, which works on the platform only. Leave it out.`,
      );
    }
  });
});
