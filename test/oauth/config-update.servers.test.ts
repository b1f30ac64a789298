import { symmetricDecrypt } from "better-auth/crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { TenantOAuthConfig } from "../../src/index";
import { createInstance } from "../support/instance";
import { databases } from "../support/servers";
import { shareInstance } from "../support/shared";
import { createAliceOnHerWay, createSocialInstance, queryOf } from "../support/social";

type Config = {
  [Key in keyof TenantOAuthConfig]: TenantOAuthConfig[Key] extends Date
    ? string
    : TenantOAuthConfig[Key];
};

const GOOGLE = {
  providerId: "google",
  clientId: "acme-client",
  clientSecret: "acme-client-secret",
};
const FULL = {
  ...GOOGLE,
  scopes: ["openid", "calendar"],
  redirectURI: "https://acme.example/back",
  options: { hd: "acme.example", prompt: "login" },
};

describe.each(databases)("on %s", (kind) => {
  const shared = shareInstance({}, kind);
  let tenantId: string;

  beforeEach(async () => {
    tenantId = (await shared.instance.createTenant()).id;
  });

  const register = async (config: object = FULL) =>
    (await shared.operator.post<Config>("/tenant/oauth-config/register", { tenantId, ...config }))
      .data;
  const update = (changes: object, options = {}) =>
    shared.operator.post<Config>(
      "/tenant/oauth-config/update",
      { tenantId, providerId: "google", ...changes },
      options,
    );
  const list = async (of = tenantId) =>
    (await shared.operator.get<Config[]>("/tenant/oauth-config/list", { query: { tenantId: of } }))
      .data;
  const col = (name: string) => shared.instance.database.quote(name);
  const stored = async () => {
    const [row] = await shared.instance.database.query(
      `select * from ${col("tenantOauthConfig")} where ${col("tenantId")} = ?`,
      [tenantId],
    );
    return row ?? {};
  };
  const open = async (column: "clientId" | "clientSecret") =>
    symmetricDecrypt({
      key: shared.instance.context.secretConfig,
      data: String((await stored())[column]),
    });

  it.each<[string, Record<string, unknown>]>([
    ["scopes", { scopes: ["openid"] }],
    ["no scopes at all", { scopes: [] }],
    ["the default scopes", { scopes: null }],
    ["the redirect URI", { redirectURI: "https://acme.example/other" }],
    ["the usual redirect URI", { redirectURI: null }],
    ["the options", { options: { accessType: "offline" } }],
    ["an empty set of options", { options: {} }],
    ["no options", { options: null }],
    ["the switch", { enabled: false }],
    ["several at once", { enabled: false, scopes: null, options: { hd: "*" } }],
    ["nothing", {}],
  ])("changes %s, and leaves the rest, the secret too", async (_, changes) => {
    const before = await register();
    const cipher = (await stored()).clientSecret;
    const { status, data } = await update(changes);
    expect(status).toBe(200);
    const { redirectURI = before.redirectURI } = changes as Partial<Config>;
    const callbackURL = redirectURI ?? "http://localhost:3000/api/auth/tenant/callback/google";
    expect(data).toEqual({ ...before, ...changes, callbackURL, updatedAt: data.updatedAt });
    expect(Date.parse(data.updatedAt)).toBeGreaterThanOrEqual(Date.parse(before.updatedAt));
    expect(await list()).toEqual([data]);
    expect((await stored()).clientSecret).toBe(cipher);
  });

  it("takes a new secret alone, and notes when", async () => {
    const before = await register();
    await new Promise((resolve) => setTimeout(resolve, 5));
    const { data } = await update({ clientSecret: "the-next-secret" });
    const { secretChangedAt, updatedAt } = data;
    expect(data).toEqual({ ...before, secretChangedAt, updatedAt });
    expect(Date.parse(secretChangedAt)).toBeGreaterThan(Date.parse(before.secretChangedAt));
    expect(await open("clientSecret")).toBe("the-next-secret");
    expect(await open("clientId")).toBe(GOOGLE.clientId);
    expect(JSON.stringify(data)).not.toContain("secret-");
    // The same secret once more is no change of it.
    const again = await update({ clientSecret: "the-next-secret" });
    expect(again.data.secretChangedAt).toBe(secretChangedAt);
  });

  it("keeps tenants and providers apart", async () => {
    await register();
    await register({ ...GOOGLE, providerId: "github" });
    const other = await shared.instance.createTenant();
    await register({ ...FULL, tenantId: other.id });
    const before = [(await list())[1], ...(await list(other.id))];
    await update({ enabled: false, options: null, clientSecret: "the-next-secret" });
    expect([(await list())[1], ...(await list(other.id))]).toEqual(before);
  });

  it("does it for the server's own code", async () => {
    await register();
    const body = { tenantId, providerId: "google", enabled: false };
    const config = await shared.instance.api.updateTenantOAuthConfig({ body });
    expect(config).toMatchObject({ enabled: false, clientId: GOOGLE.clientId });
    expect(config.updatedAt).toBeInstanceOf(Date);
  });

  it.each([
    ["query", (id: string) => ({ query: { tenantId: id } })],
    ["header", (id: string) => ({ headers: { "x-tenant-id": id } })],
  ])("R1: the tenant can be named by the %s", async (_, naming) => {
    await register();
    const { data } = await update({ tenantId: undefined, enabled: false }, naming(tenantId));
    expect(data).toMatchObject({ tenantId, enabled: false });
  });

  it("R2: the tenant has to be named, and to exist", async () => {
    const unnamed = await update({ tenantId: undefined });
    expect([unnamed.status, unnamed.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
    const unknown = await update({ tenantId: "nobody" });
    expect([unknown.status, unknown.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it.each(["github", "nobody", "Google", "google ", "GOOGLE", "__proto__", "%"])(
    "answers 404 OAUTH_CONFIG_NOT_FOUND for %j, and makes nothing of it",
    async (providerId) => {
      const before = await register();
      const answer = await update({ providerId, enabled: false, options: null });
      expect([answer.status, answer.code]).toEqual([404, "OAUTH_CONFIG_NOT_FOUND"]);
      expect(await list()).toEqual([before]);
    },
  );

  it.each<[string, object, string]>([
    ["a client id", { clientId: "other-client" }, "VALIDATION_ERROR"],
    ["an id", { id: "1" }, "VALIDATION_ERROR"],
    ["a time", { secretChangedAt: new Date(0) }, "VALIDATION_ERROR"],
    ["a field of a database", { client_secret: "s" }, "VALIDATION_ERROR"],
    ["no provider", { providerId: undefined }, "VALIDATION_ERROR"],
    ["a provider that no database can store", { providerId: "a\u0000" }, "VALIDATION_ERROR"],
    ["an empty secret", { clientSecret: "" }, "VALIDATION_ERROR"],
    ["no secret", { clientSecret: null }, "VALIDATION_ERROR"],
    ["scopes in a text", { scopes: "openid" }, "VALIDATION_ERROR"],
    ["null for the switch", { enabled: null }, "VALIDATION_ERROR"],
    ["options in a list", { options: [] }, "VALIDATION_ERROR"],
    ["an unknown option", { options: { unheardOf: 1 } }, "INVALID_PROVIDER_OPTIONS"],
    ["a bad option", { options: { hd: 1 } }, "INVALID_PROVIDER_OPTIONS"],
    ["a bad redirect URI", { redirectURI: "http://acme.example" }, "INVALID_REDIRECT_URI"],
  ])("refuses %s, and changes nothing", async (_, changes, code) => {
    const before = await register();
    const answer = await update({ enabled: false, ...changes });
    expect([answer.status, answer.code]).toEqual([400, code]);
    expect(await list()).toEqual([before]);
  });

  it("refuses options that lack what the provider needs", async () => {
    const options = {
      domain: "acme.auth.eu-west-1.amazoncognito.com",
      region: "eu-west-1",
      userPoolId: "eu-west-1_Acme",
    };
    const before = await register({ ...GOOGLE, providerId: "cognito", options });
    const { region: _, ...incomplete } = options;
    for (const changed of [null, {}, incomplete]) {
      const answer = await update({ providerId: "cognito", options: changed });
      expect([answer.status, answer.code]).toEqual([400, "INVALID_PROVIDER_OPTIONS"]);
    }
    expect(await list()).toEqual([before]);
  });

  it("can switch off a config that cannot be read any more, and says that it is one", async () => {
    await register();
    await shared.instance.database.query(
      `update ${col("tenantOauthConfig")} set ${col("clientId")} = 'broken' where ${col("tenantId")} = ?`,
      [tenantId],
    );
    const { status, data } = await update({ enabled: false, clientSecret: "the-next-secret" });
    expect(status).toBe(200);
    expect(data).toMatchObject({ enabled: false, readable: false, clientId: null, options: null });
  });

  it("races: updates of different fields at once are all kept", async () => {
    await register();
    const changes = [
      { scopes: ["one"] },
      { redirectURI: "https://acme.example/race" },
      { options: { hd: "race.example" } },
      { enabled: false },
    ];
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => update(changes[index % changes.length] ?? {})),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await list()).toMatchObject([Object.assign({}, ...changes)]);
    expect(await open("clientSecret")).toBe(GOOGLE.clientSecret);
  });

  it("races: beside registrations, the id and the secret that are left belong together", async () => {
    await register();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        index % 3
          ? update(index % 2 ? { enabled: false } : { options: { hd: "race.example" } })
          : shared.operator.post("/tenant/oauth-config/register", {
              tenantId,
              ...FULL,
              clientId: `client-${index}`,
              clientSecret: `secret-of-client-${index}`,
            }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(await open("clientSecret")).toBe(`secret-of-${await open("clientId")}`);
    expect(await list()).toHaveLength(1);
  });

  it("races: beside a deletion, an update is done or finds nothing, and brings nothing back", async () => {
    await register();
    const [deleted, ...answers] = await Promise.all([
      shared.operator.post("/tenant/oauth-config/delete", { tenantId, providerId: "google" }),
      ...Array.from({ length: 20 }, () => update({ enabled: false, options: { hd: "*" } })),
    ]);
    expect(deleted.status).toBe(200);
    for (const { status, code } of answers) {
      if (status !== 200) expect([status, code]).toEqual([404, "OAUTH_CONFIG_NOT_FOUND"]);
    }
    expect(await list()).toEqual([]);
  });
});

describe("the next sign-in", () => {
  it("goes by what was changed, with the secret that was kept", async () => {
    const app = await createSocialInstance();
    const { id: tenantId } = await app.createTenant();
    const { clientId, clientSecret } = await app.configure(tenantId);
    const update = (changes: object) =>
      app.api.updateTenantOAuthConfig({ body: { tenantId, providerId: "gitlab", ...changes } });
    await update({ scopes: ["api"], options: { disableSignUp: true } });

    const { data } = await app.start(app.browser(), tenantId);
    expect(queryOf(data.url)).toMatchObject({ client_id: clientId, scope: "read_user api" });
    const refused = await app.signIn(app.browser(), tenantId);
    expect(refused.location).toBe("/failed?error=signup_disabled");
    expect(app.idp.exchanges().at(-1)?.params).toMatchObject({ client_secret: clientSecret });

    await update({ options: null });
    expect((await app.signIn(app.browser(), tenantId)).location).toBe("/welcome");

    await update({ enabled: false });
    const global = await app.start(app.browser(), tenantId);
    expect(queryOf(global.data.url).client_id).toBe("global-client");
    await update({ enabled: true });
    expect((await app.signIn(app.browser(), tenantId)).location).toBe("/welcome");
  });

  it("uses a new secret at once", async () => {
    const app = await createSocialInstance();
    const { id: tenantId } = await app.createTenant();
    const { clientId } = await app.configure(tenantId);
    app.idp.registerClient(clientId, "the-next-secret");
    const late = await app.signIn(app.browser(), tenantId);
    expect(late.location).toMatch(/^\/failed\?error=/);
    const body = { tenantId, providerId: "gitlab", clientSecret: "the-next-secret" };
    await app.api.updateTenantOAuthConfig({ body });
    expect((await app.signIn(app.browser(), tenantId)).location).toBe("/welcome");
    expect(app.idp.exchanges().at(-1)?.params.client_secret).toBe("the-next-secret");
  });
});

describe("threat: a config that changes mid-flow: a sign-in on its way", () => {
  it.each<[string, object]>([
    ["scopes", { scopes: ["api"] }],
    ["redirect URI", { redirectURI: "http://localhost:3000/back" }],
    ["options", { options: { prompt: "login" } }],
    ["secret", { clientSecret: "the-next-secret" }],
    ["switch", { enabled: false }],
  ])("is refused after a change of the %s", async (_, changes) => {
    const { app, tenant, browser, url, expectRefused } = await createAliceOnHerWay({});
    const body = { tenantId: tenant.id, providerId: "gitlab", ...changes };
    await app.api.updateTenantOAuthConfig({ body });
    await expectRefused(await browser.get(url), "state_mismatch");
  });

  it("goes on when nothing was really changed", async () => {
    const { app, tenant, browser, url } = await createAliceOnHerWay({});
    const clientSecret = `secret-${tenant.id}`;
    const body = { tenantId: tenant.id, providerId: "gitlab", clientSecret, enabled: true };
    await app.api.updateTenantOAuthConfig({ body });
    expect((await browser.get(url)).location).toBe("/welcome");
  });
});

it("learns nothing who may not manage", async () => {
  const instance = await createInstance();
  const { id: tenantId } = await instance.createTenant();
  await instance.api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
  const person = (await instance.signUp(tenantId)).browser;
  for (const target of [tenantId, "nobody"]) {
    for (const providerId of ["google", "github", "nobody"]) {
      const body = { tenantId: target, providerId, enabled: false };
      const anonymous = await instance.browser().post("/tenant/oauth-config/update", body);
      expect([anonymous.status, anonymous.code]).toEqual([401, "UNAUTHORIZED"]);
      const user = await person.post("/tenant/oauth-config/update", body);
      expect([user.status, user.code]).toEqual([403, "TENANT_MANAGEMENT_NOT_ALLOWED"]);
    }
  }
  const [config] = await instance.api.listTenantOAuthConfigs({ query: { tenantId } });
  expect(config?.enabled).toBe(true);
});
