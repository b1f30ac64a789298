import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { scim } from "@better-auth/scim";
import { sso } from "@better-auth/sso";
import { BetterAuthError, type BetterAuthPlugin, betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import {
  deviceAuthorization,
  jwt,
  organization,
  siwe,
  twoFactor,
  username,
} from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { type TenantAuthOptions, tenantAuth } from "../src/index";
import { SCIM_MODELS } from "./enterprise/scim-world";
import { createDatabase } from "./support/database";
import {
  createInstance,
  createPlainInstance,
  type Instance,
  type InstanceOptions,
  PASSWORD,
} from "./support/instance";
import { databases } from "./support/servers";

/** What the start is refused with. */
async function refusal(options: InstanceOptions): Promise<string> {
  const error = await createInstance(options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BetterAuthError);
  const { message } = error as BetterAuthError;
  expect(message).toMatch(/^tenantAuth\(\): /);
  return message;
}

/** better-auth with plugins in an order of one's own, on a database without tables. */
async function start(...plugins: BetterAuthPlugin[]) {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  return betterAuth({
    secret: "a test secret that is long enough for everybody",
    baseURL: "http://localhost:3000",
    database: database.option,
    logger: { disabled: true },
    plugins,
  }).$context;
}

/** The option that a message says to set, read as if it had been pasted. */
function pasted(message: string, option: keyof TenantAuthOptions): TenantAuthOptions {
  const line = message.split("\n").find((text) => text.trim().startsWith(`${option}: `));
  return new Function(`return { ${line} };`)();
}

/** A plugin that nobody has heard of, with models of the given names. */
const unknownPlugin = (id: string, ...models: string[]): BetterAuthPlugin => ({
  id,
  schema: Object.fromEntries(
    models.map((model) => [model, { fields: { text: { type: "string", required: false } } }]),
  ),
});

/** One that adds a field to somebody's model. */
const withField = (
  model: string,
  field: string,
  fieldName?: string,
): BetterAuthPlugin & { id: string } => ({
  id: "crm",
  schema: { [model]: { fields: { [field]: { type: "string", required: false, fieldName } } } },
});

async function expectToWork(instance: Instance) {
  const { id: tenantId } = await instance.createTenant();
  const { user, browser } = await instance.signUp(tenantId);
  expect(user.tenantId).toBe(tenantId);
  const { data } = await browser.get<{ session: { tenantId: string } }>("/get-session");
  expect(data.session.tenantId).toBe(tenantId);
  const platform = await instance.signUp(null);
  expect(platform.user.tenantId).toBeNull();
  const again = await getMigrations(instance.auth.options);
  expect([...again.toBeCreated, ...again.toBeAdded, ...again.toBeAddedIndexes]).toEqual([]);
}

describe("R11: models of other plugins", () => {
  const everyTeam = organization({
    teams: { enabled: true },
    dynamicAccessControl: { enabled: true },
  });

  const UNDECIDED: [string, BetterAuthPlugin, string[]][] = [
    ["organization", organization(), ["organization", "member", "invitation"]],
    [
      "organization with all that it has",
      everyTeam,
      ["organization", "organizationRole", "team", "teamMember", "member", "invitation"],
    ],
    ["deviceAuthorization", deviceAuthorization(), ["deviceCode"]],
    [
      "siwe",
      siwe({ domain: "x", getNonce: async () => "n", verifyMessage: async () => true }),
      ["walletAddress"],
    ],
    ["passkey", passkey(), ["passkey"]],
    ["api-key", apiKey(), ["apikey"]],
    ["a plugin that nobody has heard of", unknownPlugin("crm", "lead", "deal"), ["lead", "deal"]],
  ];

  it.each(UNDECIDED)("%s is refused until it is decided", async (_, plugin, models) => {
    const message = await refusal({ plugins: [plugin] });
    expect(message).toContain(`  ${plugin.id}: ${models.join(", ")}\n`);
    const list = models.map((model) => `"${model}"`).join(", ");
    expect(message).toContain(`\n  scopedModels: [${list}],\n`);
    expect(message).toContain(`\n  sharedModels: [${list}],`);
  });

  it.each(UNDECIDED)("%s works with either line", async (_, plugin, models) => {
    const message = await refusal({ plugins: [plugin] });
    for (const option of ["scopedModels", "sharedModels"] as const) {
      const tenant = pasted(message, option);
      expect(tenant).toEqual({ [option]: models });
      const instance = await createInstance({ tenant, plugins: [plugin] });
      await expectToWork(instance);
      for (const model of models) {
        const { fields = {} } = instance.context.tables[model] ?? {};
        expect("tenantId" in fields, model).toBe(option === "scopedModels");
      }
    }
  });

  const NEVER_SHARED: [string, BetterAuthPlugin, string[]][] = [
    ["sso", sso(), ["ssoProvider"]],
    ["stripe", unknownPlugin("stripe", "user", "subscription"), ["subscription"]],
    [
      "scim",
      scim({ connections: [], managedConnections: { credentialHashSecret: "x".repeat(32) } }),
      SCIM_MODELS,
    ],
  ];

  it.each(NEVER_SHARED)("%s has to be scoped, and is never shared", async (_, plugin, models) => {
    const message = await refusal({ plugins: [plugin] });
    const tenant = pasted(message, "scopedModels");
    expect(tenant).toEqual({ scopedModels: models });
    expect(message).not.toContain("sharedModels");
    await expectToWork(await createInstance({ tenant, plugins: [plugin] }));
    const refused = await refusal({ plugins: [plugin], tenant: { sharedModels: models } });
    expect(refused).toContain("cannot be shared");
    expect(pasted(refused, "scopedModels")).toEqual(tenant);
  });

  it("the lines hold what the application has decided already", async () => {
    const plugins = [unknownPlugin("crm", "lead", "deal", "label"), passkey()];
    const tenant = { scopedModels: ["deal"], sharedModels: ["label"] };
    const message = await refusal({ plugins, tenant });
    expect(message).toContain("\n  crm: lead\n  passkey: passkey\n");
    const { scopedModels } = pasted(message, "scopedModels");
    expect(scopedModels).toEqual(["deal", "lead", "passkey"]);
    expect(pasted(message, "sharedModels").sharedModels).toEqual(["label", "lead", "passkey"]);
    await expectToWork(await createInstance({ plugins, tenant: { ...tenant, scopedModels } }));
  });

  it("a model of two plugins is asked for once", async () => {
    const plugins = [organization(), unknownPlugin("stripe", "organization", "subscription")];
    const message = await refusal({ plugins });
    expect(pasted(message, "scopedModels")).toEqual({
      scopedModels: ["organization", "member", "invitation", "subscription"],
    });
  });

  it("those found through their user, or of nobody, need no decision", async () => {
    const instance = await createInstance({
      plugins: [twoFactor(), jwt(), username(), unknownPlugin("x", "user", "session", "tenant")],
      auth: { rateLimit: { enabled: true, storage: "database" } },
    });
    await expectToWork(instance);
  });

  it("may be decided all the same", async () => {
    const plugins = [twoFactor(), jwt()];
    const tenant = { scopedModels: ["twoFactor"], sharedModels: ["jwks"] };
    await expectToWork(await createInstance({ plugins, tenant }));
  });

  it.each([
    ["twoFactor", twoFactor()],
    ["jwks", jwt()],
    ["rateLimit", username()],
    ["oauthClientAssertion", username()],
  ])("%s of another plugin is not decided by its name", async (model, official) => {
    for (const others of [[], [official]]) {
      const message = await refusal({ plugins: [...others, unknownPlugin("vault", model)] });
      expect(message).toContain(`\n  vault: ${model}\n`);
      expect(message).toContain(`\n  scopedModels: ["${model}"],\n`);
    }
  });

  it("the order of the plugins makes no difference", async () => {
    const plugins = (options?: TenantAuthOptions) => [
      organization(),
      tenantAuth(options),
      passkey(),
    ];
    const line = `scopedModels: ["organization", "member", "invitation", "passkey"]`;
    await expect(start(...plugins())).rejects.toThrow(line);
    const { tables } = await start(...plugins(pasted(line, "scopedModels")));
    expect(tables.organization?.fields).toHaveProperty("tenantId");
  });
});

describe("R11: mistakes in the decisions", () => {
  it.each<[string, TenantAuthOptions]>([
    [`scopedModels: no plugin has a model "organisation"`, { scopedModels: ["organisation"] }],
    [`sharedModels: no plugin has a model "organisation"`, { sharedModels: ["organisation"] }],
    [`sharedModels: "user" needs no decision`, { sharedModels: ["user"] }],
    [`scopedModels: "session" needs no decision`, { scopedModels: ["session"] }],
    [
      `sharedModels: "tenantOauthConfig" needs no decision`,
      { sharedModels: ["tenantOauthConfig"] },
    ],
  ])("%s", async (text, tenant) => {
    expect(await refusal({ tenant, plugins: [unknownPlugin("x", "user", "session")] })).toContain(
      text,
    );
  });

  it("a model is either scoped or shared", () => {
    const options = { scopedModels: ["passkey"], sharedModels: ["passkey"] };
    expect(() => tenantAuth(options)).toThrow(/^tenantAuth\(\).*either scoped or shared/s);
  });

  const renamed = organization({ schema: { organization: { modelName: "clubs" } } });
  const scoped = tenantAuth({ scopedModels: ["organization", "member", "invitation"] });
  it("a scoped table with a name of its own has to come after ours", async () => {
    await expect(start(renamed, scoped)).rejects.toThrow(
      /^tenantAuth\(\): the table of "organization" is called "clubs".*before organization/,
    );
    const { tables } = await start(scoped, renamed);
    expect(tables.organization?.modelName).toBe("clubs");
  });

  it("but is not blamed on ours where somebody else renames it", async () => {
    const { tables } = await start(scoped, renamed, withField("organization", "customerId"));
    expect(tables.organization?.modelName).toBe("organization");
  });
});

describe.each(databases)("R11: a tenantId of the application's own, on %s", (database) => {
  const field = { type: "string", required: false } as const;
  // better-auth itself stumbles over an optional one on users, before any plugin is asked.
  const requiredField = { type: "string", required: true, defaultValue: "none" } as const;
  const MODELS = ["user", "session", "account", "verification"] as const;

  describe.each([
    ["optional", field],
    ["required", requiredField],
  ])("%s", (_, tenantId) => {
    it.each(MODELS)("%s.additionalFields.tenantId", async (model) => {
      const message = await refusal({ auth: { [model]: { additionalFields: { tenantId } } } });
      expect(message).toContain(`  ${model}.additionalFields of better-auth's options`);
      expect(message).toContain(`there is a field "tenantId"`);
      expect(message).toContain(`appTenantId: { ..., fieldName: "tenantId" }`);
      expect(message).toContain(
        `\n  schema: { ${model}: { fields: { tenantId: "authTenantId" } } },`,
      );
      const appTenantId = { ...tenantId, fieldName: "tenantId" };
      const instance = await createInstance({
        database,
        tenant: pasted(message, "schema"),
        auth: { [model]: { additionalFields: { appTenantId } } },
      });
      await expectToWork(instance);
      await expectColumns(instance, model, "tenantId", "authTenantId");
    });
  });

  it("keeps what the application has in it, and what it writes there", async () => {
    const own = await createDatabase(database);
    onTestFinished(() => own.close());
    const additionalFields = { tenantId: field };
    const plain = await createPlainInstance(own, { user: { additionalFields } });
    const old = { name: "Old", email: "old@example.com", password: PASSWORD, tenantId: "crm-1" };
    expect((await plain.browser().post("/sign-up/email", old)).status).toBe(200);

    const auth = { user: { additionalFields } };
    const tenant = pasted(await refusal({ database: own, auth }), "schema");
    const instance = await createInstance({
      database: own,
      tenant,
      auth: {
        user: { additionalFields: { appTenantId: { ...field, fieldName: "tenantId" } } },
      },
    });
    await expectToWork(instance);
    const { id: tenantId } = await instance.createTenant();
    const { status, data } = await instance.browser().post("/tenant/sign-up/email", {
      name: "New",
      email: "new@example.com",
      password: PASSWORD,
      appTenantId: "crm-2",
      tenantId,
    });
    expect(status).toBe(200);
    expect(data.user).toMatchObject({ tenantId, appTenantId: "crm-2" });
    const signIn = await instance.browser().post("/sign-in/email", old);
    expect(signIn.data.user).toMatchObject({ tenantId: null, appTenantId: "crm-1" });
    const columns = ["email", "tenantId", "authTenantId"].map(own.quote).join(", ");
    const rows = await own.query(`select ${columns} from ${own.quote("user")}`);
    expect(rows).toContainEqual({
      email: "old@example.com",
      tenantId: "crm-1",
      authTenantId: "",
    });
    expect(rows).toContainEqual({
      email: "new@example.com",
      tenantId: "crm-2",
      authTenantId: tenantId,
    });
  });

  it("on all tables at once: one message says it all", async () => {
    const additionalFields = { tenantId: requiredField };
    const all = Object.fromEntries(MODELS.map((model) => [model, { additionalFields }]));
    const schema = { tenant: { modelName: "organisations" }, user: { fields: { email: "email" } } };
    const message = await refusal({ auth: all, tenant: { schema } });
    const tenant = pasted(message, "schema");
    const fields = { tenantId: "authTenantId" };
    expect(tenant.schema).toEqual({
      tenant: { modelName: "organisations" },
      user: { fields: { email: "email", ...fields } },
      session: { fields },
      account: { fields },
      verification: { fields },
    });
    const renamed = { appTenantId: { ...requiredField, fieldName: "tenantId" } };
    const auth = Object.fromEntries(MODELS.map((model) => [model, { additionalFields: renamed }]));
    await expectToWork(await createInstance({ database, tenant, auth }));
  });

  it.each<[string, InstanceOptions["auth"]]>([
    ["user", { user: { additionalFields: { crmId: { ...field, fieldName: "tenantId" } } } }],
    ["user", { user: { fields: { image: "tenantId" } } }],
    ["session", { session: { fields: { ipAddress: "tenantId" } } }],
    ["account", { account: { fields: { idToken: "TENANTID" } } }],
  ])("as a column of %s: %j", async (model, auth) => {
    const message = await refusal({ auth });
    expect(message).toContain(`the column "tenantId" of ${model} belongs to the field "`);
    expect(message).not.toContain("appTenantId");
    const tenant = pasted(message, "schema");
    expect(tenant.schema).toEqual({ [model]: { fields: { tenantId: "authTenantId" } } });
    const instance = await createInstance({ database, auth, tenant });
    await expectToWork(instance);
  });

  it.each(["user", "session"])("as a field of another plugin's on %s", async (model) => {
    const message = await refusal({ plugins: [withField(model, "tenantId")] });
    expect(message).toMatch(/plugin.*: there is a field "tenantId"/);
    const tenant = pasted(message, "schema");
    const plugins = [withField(model, "appTenantId", "tenantId")];
    await expectToWork(await createInstance({ database, tenant, plugins }));
  });

  it("as a field of a scoped model", async () => {
    const tenant = { scopedModels: ["lead"] };
    const message = await refusal({ tenant, plugins: [withField("lead", "tenantId")] });
    expect(message).toContain("the schema of the plugin crm, model lead: there is a field");
    const names = pasted(message, "schema");
    expect(names.schema).toEqual({ lead: { fields: { tenantId: "authTenantId" } } });
    const plugins = [withField("lead", "appTenantId", "tenantId")];
    const instance = await createInstance({ database, plugins, tenant: { ...tenant, ...names } });
    await expectToWork(instance);
    await expectColumns(instance, "lead", "tenantId", "authTenantId");
  });

  it("as a field of a shared model is the application's own business", async () => {
    const plugins = [withField("lead", "tenantId")];
    await expectToWork(
      await createInstance({ database, plugins, tenant: { sharedModels: ["lead"] } }),
    );
  });

  it("asks for no other column where ours has another name already", async () => {
    const auth = { user: { additionalFields: { tenantId: field } } };
    const tenant: TenantAuthOptions = { schema: { user: { fields: { tenantId: "org_id" } } } };
    const message = await refusal({ auth, tenant });
    expect(message).toContain(`appTenantId: { ..., fieldName: "tenantId" }`);
    expect(message).not.toContain("schema: {");
  });

  it("finds a column that is free", async () => {
    const auth = { user: { additionalFields: { tenantId: requiredField, authTenantId: field } } };
    expect(pasted(await refusal({ auth }), "schema").schema).toEqual({
      user: { fields: { tenantId: "authTenantId_" } },
    });
  });
});

async function expectColumns({ database }: Instance, table: string, ...columns: string[]) {
  const names = columns.map(database.quote).join(", ");
  await database.query(`select ${names} from ${database.quote(table)}`);
}

describe.each(databases)("R11: columns that better-auth's options rename, on %s", (database) => {
  const auth: InstanceOptions["auth"] = {
    user: { fields: { email: "email_address" } },
    account: { fields: { accountId: "account_key" } },
  };

  it("have to be told to the plugin, which says how", async () => {
    const message = await refusal({ auth });
    expect(message).toContain(`user.fields.email of better-auth's options is "email_address"`);
    const tenant = pasted(message, "schema");
    expect(tenant.schema).toEqual(auth);
    const instance = await createInstance({ database, auth, tenant });
    await expectToWork(instance);
    await expectColumns(instance, "user", "email_address");
    await expectColumns(instance, "account", "account_key");
  });

  it("and by the same name", async () => {
    const schema = { user: { fields: { email: "mail" } } };
    const message = await refusal({ auth: { user: auth?.user }, tenant: { schema } });
    expect(message).toContain(`and the plugin has it as "mail"`);
    expect(pasted(message, "schema").schema).toEqual({ user: auth?.user });
  });

  it("except for the e-mail, where it stays better-auth's", async () => {
    const tenant = { keepEmailGloballyUnique: true };
    const instance = await createInstance({ database, auth: { user: auth?.user }, tenant });
    await expectToWork(instance);
    await expectColumns(instance, "user", "email_address");
  });

  it("go into one line with everything else", async () => {
    const user = {
      fields: { email: "email_address" },
      additionalFields: { tenantId: { type: "string" } },
    } as const;
    expect(pasted(await refusal({ auth: { user } }), "schema").schema).toEqual({
      user: { fields: { email: "email_address", tenantId: "authTenantId" } },
    });
  });
});
