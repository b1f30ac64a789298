import { getMigrations } from "better-auth/db/migration";
import { describe, expect, it, onTestFinished } from "vitest";
import type { TenantAuthOptions } from "../../src/index";
import { createDatabase, databases } from "../support/database";
import {
  createInstance,
  createPlainInstance,
  type InstanceOptions,
  PASSWORD,
} from "../support/instance";
import { createWorld, EMAIL, expectRefused, outcome, type WorldOptions } from "../support/world";

const TAKEN = [422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"];

const TENANT_COLUMN = { fields: { tenantId: "organisation_id" } };
const OURS = {
  tenant: {
    modelName: "organisations",
    fields: { name: "title", slug: "handle", metadata: "extra", createdAt: "created_at" },
  },
  tenantOauthConfig: {
    modelName: "organisation_providers",
    fields: {
      tenantId: "organisation_id",
      providerId: "provider_id",
      clientId: "client_id",
      clientSecret: "client_secret",
      redirectURI: "redirect_uri",
      scopes: "scope_list",
      enabled: "is_enabled",
      updatedAt: "updated_at",
    },
  },
  user: TENANT_COLUMN,
  session: TENANT_COLUMN,
  account: TENANT_COLUMN,
  verification: TENANT_COLUMN,
};
/** Two of these columns are the plugin's as well, so it has to be told. */
const EMAIL_COLUMN = { email: "email_address" };
const KEY_COLUMN = { accountId: "provider_key" };
const TOLD = { user: { fields: EMAIL_COLUMN }, account: { fields: KEY_COLUMN } };
const BETTER_AUTHS = {
  user: { modelName: "people", fields: EMAIL_COLUMN },
  session: { modelName: "people_sessions", fields: { userId: "person_id" } },
  account: { modelName: "people_accounts", fields: { userId: "person_id", ...KEY_COLUMN } },
  verification: { modelName: "people_tokens" },
};
const BOTH = {
  ...OURS,
  user: { fields: { ...TENANT_COLUMN.fields, ...EMAIL_COLUMN } },
  account: { fields: { ...TENANT_COLUMN.fields, ...KEY_COLUMN } },
};

type Names = Record<string, { modelName?: string; fields?: Record<string, string> }>;

/** Everything that the plugin stores, written and read once; the rows are looked for by name. */
async function walkThrough(options: WorldOptions) {
  const world = await createWorld(options);
  const { api, database, ids, rows } = world;
  const [ours, theirs] = [options.tenant?.schema, options.auth] as [Names?, Names?];
  const table = (model: string) => ours?.[model]?.modelName ?? theirs?.[model]?.modelName ?? model;
  const count = (model: string, field: string, value: string) => {
    const column = ours?.[model]?.fields?.[field] ?? theirs?.[model]?.fields?.[field] ?? field;
    return rows(table(model), `${database.quote(column)} = ?`, [value]);
  };
  const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(world.auth.options);
  expect([...toBeCreated, ...toBeAdded, ...toBeAddedIndexes]).toEqual([]);

  const body = { name: "A", slug: "aa", metadata: { plan: "x" } };
  const made = await api.createTenant({ body });
  expect(made).toMatchObject(body);
  expect(await api.getTenant({ query: { slug: "aa" } })).toEqual(made);
  expect(await rows(table("tenant"))).toBe(3);

  const jane = await world.as("jane", "acme");
  for (const model of ["user", "session", "account"]) {
    expect(await count(model, "tenantId", ids.acme)).toBe(1);
  }
  expect(await count("user", "email", EMAIL)).toBe(1);
  expect(await count("account", "accountId", jane.id)).toBe(1);
  const again = { name: "Somebody", email: EMAIL, password: PASSWORD };
  expect(outcome(await world.at("acme").post("/sign-up/email", again))).toEqual(TAKEN);
  expect((await world.signIn("acme")).person.id).toBe(jane.id);
  expectRefused(await world.signIn("globex"), 401, "INVALID_EMAIL_OR_PASSWORD");
  expect(await world.whoIs(jane)).toMatchObject({ tenantId: ids.acme });
  expect(await world.whoIs(jane, "globex")).toBeNull();
  expect(await world.whoIs(await world.as("bob", "platform"))).toMatchObject({ tenantId: null });

  const tenantId = ids.acme;
  const config = { tenantId, providerId: "google", clientId: "client", clientSecret: "secret" };
  const registered = await api.registerTenantOAuthConfig({
    body: { ...config, scopes: ["openid"], enabled: false },
  });
  expect(await api.listTenantOAuthConfigs({ query: { tenantId } })).toEqual([registered]);
  const replaced = await api.registerTenantOAuthConfig({ body: config });
  expect(replaced).toMatchObject({ id: registered.id, tenantId, enabled: true });
  expect(await rows(table("tenantOauthConfig"))).toBe(1);
  const social = { tenantId, provider: "google" };
  const start = await world.browser().post("/tenant/sign-in/social", social);
  expect(String(start.data.url)).toContain("client_id=client");

  await api.deleteTenant({ body: { tenantId } });
  expect([await rows(table("tenantOauthConfig")), await rows(table("tenant"))]).toEqual([0, 2]);
  for (const model of ["user", "session", "account"]) expect(await rows(table(model))).toBe(1);
}

describe.each(databases)("names, on %s", (database) => {
  it.each<[string, TenantAuthOptions, InstanceOptions["auth"]?]>([
    ["the plugin's and better-auth's own", { schema: BOTH }, BETTER_AUTHS],
    ["the e-mail through the plugin", { schema: { user: { fields: { email: "mail" } } } }],
    [
      "everything, with the e-mail unique over all tenants",
      // The e-mail is better-auth's alone then.
      { schema: { ...BOTH, user: TENANT_COLUMN }, keepEmailGloballyUnique: true },
      BETTER_AUTHS,
    ],
  ])("work from end to end with %s renamed", async (_, tenant, auth = {}) => {
    await walkThrough({ database, tenant, auth });
  });

  it("work when the instance that has started is migrated", async () => {
    const own = await createDatabase(database);
    onTestFinished(() => own.close());
    const options = { database: own, tenant: { schema: TOLD }, auth: BETTER_AUTHS, migrate: false };
    await (await createInstance(options)).context.runMigrations();
    await walkThrough(options);
  });
});

it("names stay with their table and their instance", async () => {
  const columns = async (tenant: TenantAuthOptions, table: string) => {
    const { database } = await createInstance({ tenant });
    const rows = await database.query(`select name from pragma_table_info('${table}')`);
    return rows.map((row) => String(row.name));
  };
  const schema = { tenant: { fields: { createdAt: "created_at" } }, user: TENANT_COLUMN };
  expect(await columns({ schema }, "tenant")).toContain("created_at");
  expect(await columns({ schema }, "tenantOauthConfig")).toContain("createdAt");
  expect(await columns({ schema }, "session")).toContain("tenantId");
  await createInstance({ tenant: { schema: OURS } });
  const standard = ["name", "slug", "metadata", "createdAt", "updatedAt"];
  expect(await columns({}, "tenant")).toEqual(expect.arrayContaining(standard));
  for (const table of ["user", "session", "account", "verification"]) {
    expect(await columns({}, table)).toContain("tenantId");
  }
});

it.each(databases)(
  "an application that had users before refuses their e-mails in tenants while the old index is there, and says what to do, on %s",
  async (kind) => {
    const database = await createDatabase(kind);
    onTestFinished(() => database.close());
    const body = { name: "Jane", email: EMAIL, password: PASSWORD };
    await (await createPlainInstance(database)).browser().post("/sign-up/email", body);
    const world = await createWorld({ database });
    const signUp = (email: string) => world.at("acme").post("/sign-up/email", { ...body, email });
    await world.signUp("platform", "unique.tenant@example.com");
    for (const email of [EMAIL, "unique.tenant@example.com"]) {
      world.logs.length = 0;
      const answer = await world.unchanged(() => signUp(email));
      expect([answer.status, answer.headers.getSetCookie()]).toEqual([422, []]);
      const advice = world.logs.filter((line) => line.includes("keepEmailGloballyUnique"));
      expect(advice).toEqual([
        expect.stringMatching(/^error .*unique index on the email alone.*Drop that index/),
      ]);
    }
    // An e-mail that is taken in the tenant itself is nothing to give advice about.
    world.logs.length = 0;
    expect((await signUp("new@example.com")).status).toBe(200);
    expect(outcome(await signUp("new@example.com"))).toEqual(TAKEN);
    expect(world.logs.join("\n")).not.toContain("keepEmailGloballyUnique");
  },
);
