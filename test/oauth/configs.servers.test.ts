import { socialProviderList } from "better-auth/social-providers";
import { beforeEach, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";
import { databases } from "../support/servers";

interface Config {
  id: string;
  tenantId: string;
  providerId: string;
  clientId: string;
  scopes: string[] | null;
  redirectURI: string | null;
  callbackURL: string;
  enabled: boolean;
  options: Record<string, unknown> | null;
  readable: boolean;
  secretChangedAt: string;
  createdAt: string;
  updatedAt: string;
}

const KEYS = [
  "callbackURL",
  "clientId",
  "createdAt",
  "enabled",
  "id",
  "options",
  "providerId",
  "readable",
  "redirectURI",
  "scopes",
  "secretChangedAt",
  "tenantId",
  "updatedAt",
];

const GOOGLE = { providerId: "google", clientId: "google-client", clientSecret: "google-secret" };
/** The one provider that a client id and a secret are not enough for. */
const COGNITO = {
  domain: "acme.auth.eu-west-1.amazoncognito.com",
  region: "eu-west-1",
  userPoolId: "eu-west-1_Acme",
};
const GITHUB = { providerId: "github", clientId: "github-client", clientSecret: "github-secret" };

describe.each(databases)("on %s", (database) => {
  let instance: Instance;
  let operator: Browser;
  let tenantId: string;

  beforeEach(async () => {
    await start();
  });

  async function start(options: InstanceOptions = {}) {
    instance = await createInstance({ database, ...options });
    operator = (await instance.operator()).browser;
    tenantId = (await instance.createTenant()).id;
  }

  const register = (body: object) => operator.post<Config>("/tenant/oauth-config/register", body);
  const list = (query: Record<string, string>) =>
    operator.get<Config[]>("/tenant/oauth-config/list", { query });
  const remove = (body: object) => operator.post("/tenant/oauth-config/delete", body);
  const rows = () => instance.rows("tenantOauthConfig");

  describe("register", () => {
    it("answers the config, with defaults, with exactly its fields and without the secret", async () => {
      const before = Date.now() - 1000;
      const answer = await register({ tenantId, ...GOOGLE });
      expect(answer.status).toBe(200);
      expect(Object.keys(answer.data).sort()).toEqual(KEYS);
      expect(answer.data).toMatchObject({
        tenantId,
        providerId: "google",
        clientId: "google-client",
        scopes: null,
        redirectURI: null,
        callbackURL: "http://localhost:3000/api/auth/tenant/callback/google",
        enabled: true,
        options: null,
        readable: true,
      });
      expect(answer.data.id).toMatch(/\S/);
      expect(Date.parse(answer.data.createdAt)).toBeGreaterThan(before);
      expect(answer.data.updatedAt).toBe(answer.data.createdAt);
      expect(answer.data.secretChangedAt).toBe(answer.data.createdAt);
      expect(JSON.stringify(answer.data)).not.toContain("google-secret");
      expect(await rows()).toBe(1);
    });

    it("keeps every field that is given", async () => {
      const given = {
        scopes: ["openid", "https://www.googleapis.com/auth/drive.file", 'a "quoted, one"'],
        redirectURI: "https://app.example.com/back?from=google",
        enabled: false,
      };
      const answer = await register({ tenantId, ...GOOGLE, ...given });
      expect(answer.data).toMatchObject(given);
      expect((await list({ tenantId })).data).toEqual([answer.data]);
    });

    it("keeps an empty list of scopes apart from none", async () => {
      expect((await register({ tenantId, ...GOOGLE, scopes: [] })).data.scopes).toEqual([]);
      expect((await list({ tenantId })).data[0]?.scopes).toEqual([]);
      expect((await register({ tenantId, ...GOOGLE, scopes: null })).data.scopes).toBeNull();
    });

    it("replaces the config of the same pair as a whole", async () => {
      const first = await register({
        tenantId,
        ...GOOGLE,
        scopes: ["openid"],
        redirectURI: "https://app.example.com/back",
        enabled: false,
      });
      const second = await register({ tenantId, ...GOOGLE, clientId: "another-client" });
      expect(second.status).toBe(200);
      expect(second.data).toEqual({
        ...first.data,
        clientId: "another-client",
        scopes: null,
        redirectURI: null,
        callbackURL: "http://localhost:3000/api/auth/tenant/callback/google",
        enabled: true,
        updatedAt: second.data.updatedAt,
      });
      expect(Date.parse(second.data.updatedAt)).toBeGreaterThanOrEqual(
        Date.parse(first.data.updatedAt),
      );
      expect((await list({ tenantId })).data).toEqual([second.data]);
      expect(await rows()).toBe(1);
    });

    it("keeps tenants and providers apart", async () => {
      const other = (await instance.createTenant()).id;
      await register({ tenantId, ...GOOGLE });
      await register({ tenantId, ...GITHUB });
      await register({ tenantId: other, ...GOOGLE, clientId: "theirs" });
      expect(await rows()).toBe(3);
      expect(clients(await list({ tenantId }))).toEqual(["github-client", "google-client"]);
      expect(clients(await list({ tenantId: other }))).toEqual(["theirs"]);
    });

    it("takes every built-in provider", async () => {
      for (const providerId of socialProviderList) {
        const needs = providerId === "cognito" ? { options: COGNITO } : {};
        const { status } = await register({ tenantId, ...GOOGLE, providerId, ...needs });
        expect([providerId, status]).toEqual([providerId, 200]);
      }
      const listed = (await list({ tenantId })).data.map((config) => config.providerId);
      expect(listed.sort()).toEqual([...socialProviderList].sort());
    });
  });

  describe("list", () => {
    it("is empty without configs", async () => {
      expect(await list({ tenantId })).toMatchObject({ status: 200, data: [] });
    });

    it("answers what register answered, disabled configs included, and no secret", async () => {
      const google = await register({ tenantId, ...GOOGLE, enabled: false });
      const github = await register({ tenantId, ...GITHUB });
      const answer = await list({ tenantId });
      expect(answer.status).toBe(200);
      expect(byProvider(answer.data)).toEqual(byProvider([google.data, github.data]));
      for (const config of answer.data) expect(Object.keys(config).sort()).toEqual(KEYS);
      expect(JSON.stringify(answer.data)).not.toMatch(/-secret/);
    });
  });

  describe("delete", () => {
    it("deletes one config and no other", async () => {
      const other = (await instance.createTenant()).id;
      await register({ tenantId, ...GOOGLE });
      await register({ tenantId, ...GITHUB });
      await register({ tenantId: other, ...GOOGLE });
      expect(await remove({ tenantId, providerId: "google" })).toMatchObject({
        status: 200,
        data: { success: true },
      });
      expect(clients(await list({ tenantId }))).toEqual(["github-client"]);
      expect(clients(await list({ tenantId: other }))).toEqual(["google-client"]);
    });

    it.each(["google", "nobody", "__proto__", "%", "' or 1=1 --"])(
      "answers 404 OAUTH_CONFIG_NOT_FOUND where there is no config for %j",
      async (providerId) => {
        await register({ tenantId, ...GITHUB });
        const answer = await remove({ tenantId, providerId });
        expect([answer.status, answer.code]).toEqual([404, "OAUTH_CONFIG_NOT_FOUND"]);
        expect(await rows()).toBe(1);
      },
    );

    it("answers a provider that no database can store with an error of the caller", async () => {
      await register({ tenantId, ...GITHUB });
      const answer = await remove({ tenantId, providerId: "git\u0000hub" });
      expect(["VALIDATION_ERROR", "OAUTH_CONFIG_NOT_FOUND"]).toContain(answer.code);
      expect(await rows()).toBe(1);
    });

    it("answers 404 the second time, and the pair can be registered again", async () => {
      await register({ tenantId, ...GOOGLE });
      await remove({ tenantId, providerId: "google" });
      const again = await remove({ tenantId, providerId: "google" });
      expect([again.status, again.code]).toEqual([404, "OAUTH_CONFIG_NOT_FOUND"]);
      expect((await register({ tenantId, ...GOOGLE })).status).toBe(200);
      expect(await rows()).toBe(1);
    });

    it("happens to all configs of a tenant that is deleted", async () => {
      const other = (await instance.createTenant()).id;
      await register({ tenantId, ...GOOGLE });
      await register({ tenantId, ...GITHUB });
      await register({ tenantId: other, ...GOOGLE });
      await operator.post("/tenant/delete", { tenantId });
      expect(await rows()).toBe(1);
      const answer = await list({ tenantId });
      expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
    });
  });

  it("does all of it for the server's own code", async () => {
    const { api } = instance;
    const config = await api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE } });
    expect(Object.keys(config).sort()).toEqual(KEYS);
    expect(config).toMatchObject({ tenantId, clientId: "google-client", enabled: true });
    expect(config.createdAt).toBeInstanceOf(Date);
    expect(await api.listTenantOAuthConfigs({ query: { tenantId } })).toEqual([config]);
    expect(await api.deleteTenantOAuthConfig({ body: { tenantId, providerId: "google" } })).toEqual(
      { success: true },
    );
    expect(await rows()).toBe(0);
    await expect(
      api.deleteTenantOAuthConfig({ body: { tenantId, providerId: "google" } }),
    ).rejects.toMatchObject({ statusCode: 404, body: { code: "OAUTH_CONFIG_NOT_FOUND" } });
    await expect(
      api.registerTenantOAuthConfig({ body: { tenantId, ...GOOGLE, providerId: "nobody" } }),
    ).rejects.toMatchObject({ statusCode: 400, body: { code: "UNSUPPORTED_PROVIDER" } });
    await expect(api.listTenantOAuthConfigs({ query: { tenantId: "x" } })).rejects.toMatchObject({
      statusCode: 404,
      body: { code: "TENANT_NOT_FOUND" },
    });
  });

  describe("R1: the tenant", () => {
    const calls = (target: Record<string, string>, options: object) => [
      operator.post("/tenant/oauth-config/register", { ...GOOGLE, ...target }, options),
      operator.post("/tenant/oauth-config/delete", { ...GOOGLE, ...target }, options),
    ];

    it.each([
      ["query", (id: string) => ({ query: { tenantId: id } })],
      ["header", (id: string) => ({ headers: { "x-tenant-id": id } })],
    ])("is named by the %s", async (_, naming) => {
      const options = naming(tenantId);
      const registered = await operator.post<Config>(
        "/tenant/oauth-config/register",
        GOOGLE,
        options,
      );
      expect([registered.status, registered.data.tenantId]).toEqual([200, tenantId]);
      const listed = await operator.get<Config[]>("/tenant/oauth-config/list", options);
      expect(listed.data).toEqual([registered.data]);
      const deleted = await operator.post(
        "/tenant/oauth-config/delete",
        { providerId: "google" },
        options,
      );
      expect(deleted.data).toEqual({ success: true });
      expect(await rows()).toBe(0);
    });

    it("is the body's, then the query's, then the header's", async () => {
      const [inQuery, inHeader] = [await instance.createTenant(), await instance.createTenant()];
      const options = { query: { tenantId: inQuery.id }, headers: { "x-tenant-id": inHeader.id } };
      const byBody = await operator.post<Config>(
        "/tenant/oauth-config/register",
        { tenantId, ...GOOGLE },
        options,
      );
      expect(byBody.data.tenantId).toBe(tenantId);
      const byQuery = await operator.post<Config>("/tenant/oauth-config/register", GOOGLE, options);
      expect(byQuery.data.tenantId).toBe(inQuery.id);
      expect(
        await instance.rows("tenantOauthConfig", `${col("tenantId")} = ?`, [inHeader.id]),
      ).toBe(0);
    });

    it("R7: is the resolver's, and a call about another is refused", async () => {
      let resolved = "";
      await start({ tenant: { resolveTenantId: () => resolved } });
      resolved = (await instance.createTenant()).id;
      const conflict = [409, "TENANT_SCOPE_CONFLICT"];
      const other = await register({ tenantId, ...GOOGLE });
      expect([other.status, other.code]).toEqual(conflict);
      expect(await rows()).toBe(0);
      const answer = await register(GOOGLE);
      expect(answer.data.tenantId).toBe(resolved);
      const listed = await list({ tenantId });
      expect([listed.status, listed.code]).toEqual(conflict);
      expect((await list({})).data).toEqual([answer.data]);
      expect((await remove({ tenantId, providerId: "google" })).status).toBe(409);
      expect((await remove({ providerId: "google" })).status).toBe(200);
      expect(await rows()).toBe(0);
    });

    it("R2: has to be named, and to exist, before anything is written", async () => {
      for (const answer of await Promise.all(calls({}, {}))) {
        expect([answer.status, answer.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
      }
      for (const answer of await Promise.all(calls({ tenantId: "nobody" }, {}))) {
        expect([answer.status, answer.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      }
      const unnamed = await operator.get("/tenant/oauth-config/list");
      expect([unnamed.status, unnamed.code]).toEqual([400, "TENANT_ID_REQUIRED"]);
      const unknown = await list({ tenantId: "nobody" });
      expect([unknown.status, unknown.code]).toEqual([404, "TENANT_NOT_FOUND"]);
      expect(await rows()).toBe(0);
    });
  });

  const col = (name: string) => instance.database.quote(name);
});

function clients({ data }: { data: Config[] }) {
  return data.map((config) => config.clientId).sort();
}

function byProvider(configs: Config[]) {
  return configs.toSorted((a, b) => a.providerId.localeCompare(b.providerId));
}
