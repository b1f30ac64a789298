import { getMigrations } from "better-auth/db/migration";
import { describe, expect, it } from "vitest";
import type { TestDatabase } from "./support/database";
import { createInstance, type Instance, type InstanceOptions, PASSWORD } from "./support/instance";
import { databases } from "./support/servers";

const OURS: InstanceOptions = {
  tenant: {
    schema: {
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
      user: { fields: { tenantId: "organisation_id" } },
      session: { fields: { tenantId: "organisation_id" } },
      account: { fields: { tenantId: "organisation_id" } },
      verification: { fields: { tenantId: "organisation_id" } },
    },
  },
};

/** Two of these columns are the plugin's as well, so it has to be told. */
const TOLD = {
  user: { fields: { email: "email_address" } },
  account: { fields: { accountId: "provider_key" } },
};

const BETTER_AUTHS: InstanceOptions = {
  tenant: { schema: TOLD },
  auth: {
    user: { modelName: "people", fields: { email: "email_address" } },
    session: { modelName: "people_sessions", fields: { userId: "person_id" } },
    account: {
      modelName: "people_accounts",
      fields: { userId: "person_id", accountId: "provider_key" },
    },
    verification: { modelName: "people_tokens" },
  },
};

const TENANT_COLUMN = { fields: { tenantId: "organisation_id" } };
const BOTH = {
  schema: {
    ...OURS.tenant?.schema,
    user: { fields: { ...TENANT_COLUMN.fields, ...TOLD.user.fields } },
    account: { fields: { ...TENANT_COLUMN.fields, ...TOLD.account.fields } },
  },
};

interface Names {
  tenant: string;
  tenantOauthConfig: string;
  user: string;
  session: string;
  account: string;
  tenantColumn: string;
  emailColumn: string;
  accountIdColumn: string;
}

const DEFAULT_NAMES: Names = {
  tenant: "tenant",
  tenantOauthConfig: "tenantOauthConfig",
  user: "user",
  session: "session",
  account: "account",
  tenantColumn: "tenantId",
  emailColumn: "email",
  accountIdColumn: "accountId",
};
const OUR_NAMES = {
  tenant: "organisations",
  tenantOauthConfig: "organisation_providers",
  tenantColumn: "organisation_id",
};
const BETTER_AUTHS_NAMES = {
  user: "people",
  session: "people_sessions",
  account: "people_accounts",
  emailColumn: "email_address",
  accountIdColumn: "provider_key",
};

const USER_EMAIL: InstanceOptions["tenant"] = { schema: { user: { fields: { email: "mail" } } } };

describe.each(databases)("on %s", (database) => {
  it.each<[string, InstanceOptions, Partial<Names>]>([
    ["nothing", {}, {}],
    ["the plugin's tables and columns", OURS, OUR_NAMES],
    ["better-auth's own tables and columns", BETTER_AUTHS, BETTER_AUTHS_NAMES],
    ["both", { ...BETTER_AUTHS, tenant: BOTH }, { ...OUR_NAMES, ...BETTER_AUTHS_NAMES }],
    ["the e-mail through the plugin", { tenant: USER_EMAIL }, { emailColumn: "mail" }],
    [
      "everything, with the e-mail unique over all tenants",
      {
        ...BETTER_AUTHS,
        // The e-mail is better-auth's alone then.
        tenant: { schema: { ...BOTH.schema, user: TENANT_COLUMN }, keepEmailGloballyUnique: true },
      },
      { ...OUR_NAMES, ...BETTER_AUTHS_NAMES },
    ],
  ])("works from end to end with %s renamed", async (_, options, renamed) => {
    await walkThrough(await createInstance({ ...options, database }), {
      ...DEFAULT_NAMES,
      ...renamed,
    });
  });

  it("works with better-auth's names when the instance that has started is migrated", async () => {
    const instance = await createInstance({ ...BETTER_AUTHS, database, migrate: false });
    await instance.context.runMigrations();
    await walkThrough(instance, { ...DEFAULT_NAMES, ...BETTER_AUTHS_NAMES });
  });
});

/** Everything that the plugin stores, written and read once; the rows are looked for by name. */
async function walkThrough(instance: Instance, names: Names) {
  const { api, database } = instance;
  const again = await getMigrations(instance.auth.options);
  expect([...again.toBeCreated, ...again.toBeAdded, ...again.toBeAddedIndexes]).toEqual([]);

  const a = await api.createTenant({ body: { name: "A", slug: "aa", metadata: { plan: "x" } } });
  const b = await instance.createTenant("bb");
  expect(await api.getTenant({ query: { slug: "aa" } })).toEqual(a);
  expect(a).toMatchObject({ name: "A", slug: "aa", metadata: { plan: "x" } });
  expect(await instance.rows(names.tenant)).toBe(2);

  const person = await instance.signUp(a.id, "person@example.com");
  expect(person.user).toMatchObject({ email: "person@example.com", tenantId: a.id });
  for (const table of [names.user, names.session, names.account]) {
    expect(await count(database, table, names.tenantColumn, a.id)).toBe(1);
  }
  expect(await count(database, names.user, names.emailColumn, "person@example.com")).toBe(1);
  expect(await count(database, names.account, names.accountIdColumn, person.user.id)).toBe(1);

  const taken = await instance.browser().post("/tenant/sign-up/email", {
    name: "Somebody",
    email: "person@example.com",
    password: PASSWORD,
    tenantId: a.id,
  });
  expect([taken.status, taken.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);

  const signIn = (tenantId: string) =>
    instance.browser().post("/tenant/sign-in/email", {
      tenantId,
      email: "person@example.com",
      password: PASSWORD,
    });
  expect((await signIn(a.id)).data).toMatchObject({ user: { id: person.user.id } });
  expect((await signIn(b.id)).code).toBe("INVALID_EMAIL_OR_PASSWORD");

  const here = await person.browser.get("/get-session", { headers: { "x-tenant-id": a.id } });
  expect(here.data).toMatchObject({ user: { tenantId: a.id }, session: { tenantId: a.id } });
  const there = await person.browser.get("/get-session", { headers: { "x-tenant-id": b.id } });
  expect(there.data).toBeNull();
  const platform = await instance.signUp(null, "platform@example.com");
  expect(platform.user.tenantId).toBeNull();

  const config = { providerId: "google", clientId: "client", clientSecret: "secret" };
  const registered = await api.registerTenantOAuthConfig({
    body: { tenantId: a.id, ...config, scopes: ["openid"], enabled: false },
  });
  expect(await api.listTenantOAuthConfigs({ query: { tenantId: a.id } })).toEqual([registered]);
  const replaced = await api.registerTenantOAuthConfig({ body: { tenantId: a.id, ...config } });
  expect(replaced).toMatchObject({ id: registered.id, tenantId: a.id, enabled: true });
  expect(await instance.rows(names.tenantOauthConfig)).toBe(1);
  const start = await instance
    .browser()
    .post("/tenant/sign-in/social", { tenantId: a.id, provider: "google" });
  expect(String(start.data.url)).toContain("client_id=client");

  await api.deleteTenant({ body: { tenantId: a.id } });
  expect(await instance.rows(names.tenantOauthConfig)).toBe(0);
  expect(await instance.rows(names.tenant)).toBe(1);
  for (const table of [names.user, names.session, names.account]) {
    expect(await instance.rows(table)).toBe(1);
  }
}

async function count(database: TestDatabase, table: string, column: string, value: string) {
  const [row] = await database.query(
    `select count(*) as n from ${database.quote(table)} where ${database.quote(column)} = ?`,
    [value],
  );
  return Number(row?.n);
}

describe("names of one table", () => {
  const columns = async (options: InstanceOptions, table: string) => {
    const { database } = await createInstance(options);
    const rows = await database.query(`select name from pragma_table_info('${table}')`);
    return rows.map((row) => String(row.name));
  };

  it("stay with that table", async () => {
    const options: InstanceOptions = {
      tenant: {
        schema: {
          tenant: { fields: { createdAt: "created_at" } },
          user: { fields: { tenantId: "organisation_id" } },
        },
      },
    };
    expect(await columns(options, "tenant")).toContain("created_at");
    expect(await columns(options, "tenantOauthConfig")).toContain("createdAt");
    expect(await columns(options, "user")).toContain("organisation_id");
    expect(await columns(options, "session")).toContain("tenantId");
  });

  it("stay with that instance", async () => {
    await createInstance(OURS);
    expect(await columns({}, "tenant")).toEqual(
      expect.arrayContaining(["name", "slug", "metadata", "createdAt", "updatedAt"]),
    );
    for (const table of ["user", "session", "account", "verification"]) {
      expect(await columns({}, table)).toContain("tenantId");
    }
  });
});
