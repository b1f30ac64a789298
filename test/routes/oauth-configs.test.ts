import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { fakeNetwork } from "../support/providers";
import {
  type ConfigAnswer,
  expectRefused,
  type OAuthTenant,
  outcome,
  shareWorld,
} from "../support/world";

const GOOGLE = { providerId: "google", clientId: "acme-client", clientSecret: "acme-secret" };
const NAMES = ["register", "list", "update", "check", "delete"] as const;
type Name = (typeof NAMES)[number];
type Named = { tenantId?: string };

const world = shareWorld();

/** A good call of an endpoint, which names a tenant in its body, or as the options say. */
function call(browser: Browser, name: Name, named: Named, options: object = {}) {
  const path = `/tenant/oauth-config/${name}`;
  if (name === "list") return browser.get(path, named.tenantId ? { query: named } : options);
  const { clientId, ...changes } = GOOGLE;
  return browser.post(path, { ...(name === "update" ? changes : GOOGLE), ...named }, options);
}

describe.each(NAMES)("%s", (name) => {
  it("says nothing to those who may not manage, and asks nobody", async () => {
    const acme = await world.oauthTenant();
    await acme.register(GOOGLE);
    const before = await acme.list();
    const sent = fakeNetwork();
    const jane = await world.signUp(acme.id);
    for (const tenantId of [acme.id, "nobody"]) {
      expectRefused(await call(world.browser(), name, { tenantId }), 401, "UNAUTHORIZED");
      expectRefused(await call(jane, name, { tenantId }), 403, "TENANT_MANAGEMENT_NOT_ALLOWED");
    }
    expect(await acme.list()).toEqual(before);
    expect(sent).toEqual([]);
  });

  it("R2: the tenant has to be named, and to exist", async () => {
    const operator = await world.operator();
    await world.unchanged(async () => {
      expectRefused(await call(operator, name, {}), 400, "TENANT_ID_REQUIRED");
      expectRefused(await call(operator, name, { tenantId: "nobody" }), 404, "TENANT_NOT_FOUND");
    });
  });

  it.each([
    ["query", (tenantId: string) => ({ query: { tenantId } })],
    ["header", (tenantId: string) => ({ headers: { "x-tenant-id": tenantId } })],
  ])("R1: the tenant can be named by the %s", async (_, naming) => {
    const acme = await world.oauthTenant();
    if (name !== "register") await acme.register(GOOGLE);
    fakeNetwork();
    const answer = await call(await world.operator(), name, {}, naming(acme.id));
    expect(answer.status).toBe(200);
    if (name === "list") expect(answer.data).toMatchObject([{ tenantId: acme.id }]);
    expect(await acme.list()).toHaveLength(name === "delete" ? 0 : 1);
  });
});

describe("R7: the tenant is the resolver's, and a call about another is refused:", () => {
  let named = "";
  const resolving = shareWorld({ tenant: { resolveTenantId: () => named } });

  it.each(NAMES)("%s", async (name) => {
    named = "";
    const operator = await resolving.operator();
    const { acme, globex } = resolving.ids;
    named = acme;
    const body = { ...GOOGLE, tenantId: acme };
    if (name !== "register") await resolving.api.registerTenantOAuthConfig({ body });
    fakeNetwork();
    const other = await call(operator, name, { tenantId: globex });
    expect(outcome(other)).toEqual([409, "TENANT_SCOPE_CONFLICT"]);
    expect((await call(operator, name, {})).status).toBe(200);
    const configs = await resolving.rowsIn("acme", "tenantOauthConfig");
    expect(configs).toHaveLength(name === "delete" ? 0 : 1);
    expect(await resolving.rowsIn("globex", "tenantOauthConfig")).toEqual([]);
  });
});

it("R1: the body names the tenant, then the query, then the header", async () => {
  const [inBody, inQuery, inHeader] = [
    await world.oauthTenant(),
    await world.oauthTenant(),
    await world.oauthTenant(),
  ];
  const options = { query: { tenantId: inQuery.id }, headers: { "x-tenant-id": inHeader.id } };
  const byBody = await inBody.register(GOOGLE, options);
  expect(byBody.data.tenantId).toBe(inBody.id);
  const byQuery = await inBody.register({ ...GOOGLE, tenantId: undefined }, options);
  expect(byQuery.data.tenantId).toBe(inQuery.id);
  expect(await inHeader.list()).toEqual([]);
});

describe.each(["register", "update", "check"] as const)("%s refuses", (name) => {
  const rows: [string, object, (typeof name)[]?][] = [
    ["no provider", { providerId: undefined }],
    ["an empty provider", { providerId: "" }],
    ["a provider with a NUL", { providerId: "google\u0000" }],
    ["a provider that is no text", { providerId: ["google"] }],
    ["no client id", { clientId: undefined }, ["register", "check"]],
    ["an empty client id", { clientId: "" }, ["register", "check"]],
    ["a client id that is no text", { clientId: ["acme-client"] }, ["register", "check"]],
    ["another client id", { clientId: "other-client" }, ["update"]],
    ["an id", { id: "1" }, ["update"]],
    ["a time", { secretChangedAt: new Date(0) }, ["update"]],
    ["a field of a database", { client_secret: "s" }, ["update"]],
    ["no client secret", { clientSecret: undefined }, ["register", "check"]],
    ["an empty client secret", { clientSecret: "" }],
    ["a client secret that is no text", { clientSecret: { value: "acme-secret" } }],
    ["a client secret that is too long", { clientSecret: "s".repeat(8193) }],
    ["null for the client secret", { clientSecret: null }],
    ["scopes in one text", { scopes: "openid email" }],
    ["scopes that are no text", { scopes: [1] }],
    ["a redirect URI that is no text", { redirectURI: { href: "https://app.example.com" } }],
    ["options in a list", { options: [] }],
    ["options in a text", { options: '{"hd":"acme.example"}' }],
    ["a number for options", { options: 1 }],
    ["a switch for options", { options: true }],
    ["enabled as a text", { enabled: "true" }, ["register", "update"]],
    ["null for enabled", { enabled: null }, ["register", "update"]],
    ["a tenant that is no text", { tenantId: { id: "x" } }],
  ];

  let acme: OAuthTenant;
  let before: ConfigAnswer[];

  beforeAll(async () => {
    acme = await world.oauthTenant();
    if (name !== "register") await acme.register(GOOGLE);
    before = await acme.list();
  });

  afterAll(async () => expect(await acme.list()).toEqual(before));

  it.each(rows.filter(([, , names = [name]]) => names.includes(name)))("%s", async (_, body) => {
    const sent = fakeNetwork();
    const { clientId: _id, ...changes } = GOOGLE;
    const good = name === "update" ? changes : GOOGLE;
    expectRefused(await acme[name]({ ...good, ...body }), 400, "VALIDATION_ERROR");
    expect(sent).toEqual([]);
  });

  it.each(["[]", '"text"', "null"])("%s for a body", async (body) => {
    const operator = await world.operator();
    const answer = await operator.post(`/tenant/oauth-config/${name}`, body);
    expect(outcome(answer)).toEqual([400, "VALIDATION_ERROR"]);
  });
});

describe("register", () => {
  it.each([
    "nobody",
    "Google",
    "google ",
    "credential",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "../google",
  ])("refuses %j, which is no built-in provider", async (providerId) => {
    const acme = await world.oauthTenant();
    const answer = await acme.register({ ...GOOGLE, providerId });
    expect(outcome(answer)).toEqual([400, "UNSUPPORTED_PROVIDER"]);
    expect(await acme.list()).toEqual([]);
  });

  it("ignores what is not for the caller to set, and keeps a client id in any script", async () => {
    const clientId = "client \u{1f511} ключ 'quoted' \\ \"";
    const mine = { id: "mine", createdAt: "2001-01-01", updatedAt: "2001-01-01" };
    const acme = await world.oauthTenant();
    const { data, status } = await acme.register({ ...GOOGLE, clientId, ...mine });
    expect([status, data.clientId]).toEqual([200, clientId]);
    expect(data.id).not.toBe("mine");
    expect(data.createdAt + data.updatedAt).not.toContain("2001");
  });
});

it("the server's own code calls them without a request, and nobody else can rotate", async () => {
  const { api } = world;
  const { id: tenantId } = await world.oauthTenant();
  const body = { tenantId, ...GOOGLE };
  const config = await api.registerTenantOAuthConfig({ body });
  expect(config.createdAt).toBeInstanceOf(Date);
  expect(await api.listTenantOAuthConfigs({ query: { tenantId } })).toEqual([config]);
  const changed = await api.updateTenantOAuthConfig({
    body: { tenantId, providerId: "google", enabled: false },
  });
  const { updatedAt } = changed;
  expect(changed).toEqual({ ...config, enabled: false, updatedAt } satisfies typeof config);
  expect(await api.deleteTenantOAuthConfig({ body })).toEqual({ success: true });
  const failed = (statusCode: number, code: string) => ({ statusCode, body: { code } });
  await expect(api.deleteTenantOAuthConfig({ body })).rejects.toMatchObject(
    failed(404, "OAUTH_CONFIG_NOT_FOUND"),
  );
  await expect(
    api.registerTenantOAuthConfig({ body: { ...body, providerId: "nobody" } }),
  ).rejects.toMatchObject(failed(400, "UNSUPPORTED_PROVIDER"));
  await expect(api.listTenantOAuthConfigs({ query: { tenantId: "x" } })).rejects.toMatchObject(
    failed(404, "TENANT_NOT_FOUND"),
  );

  const operator = await world.operator();
  expect(api.rotateTenantOAuthSecrets).not.toHaveProperty("path", expect.anything());
  for (const path of [
    "/tenant/oauth-config/rotate",
    "/tenant/oauth-config/rotate-secrets",
    "/tenant/rotate-oauth-secrets",
    "/rotateTenantOAuthSecrets",
    "/undefined",
    "/",
    "",
  ]) {
    const statuses = [(await operator.post(path)).status, (await operator.get(path)).status];
    expect([path, statuses]).toEqual([path, [404, 404]]);
  }
});
