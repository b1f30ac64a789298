import { apiKey } from "@better-auth/api-key";
import { passkey } from "@better-auth/passkey";
import { scim } from "@better-auth/scim";
import { sso } from "@better-auth/sso";
import { BetterAuthError, type BetterAuthPlugin } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { jwt, organization, siwe, twoFactor, username } from "better-auth/plugins";
import { describe, expect, it, onTestFinished } from "vitest";
import { tenantDomains } from "../../../src/features/domains/index";
import { tenantInvitations } from "../../../src/features/invitations/index";
import { type TenantAuthOptions, tenantAuth } from "../../../src/index";
import { invitationsWithMailbox } from "../../features/invitations/world";
import { createDatabase, databases } from "../../support/database";
import {
  createInstance,
  createPlainInstance,
  type InstanceOptions,
  PASSWORD,
} from "../../support/instance";
import { createWorld, type WorldOptions } from "../../support/world";

/** What the start is refused with, and the options that it says to set, as if they were pasted. */
async function refusal(options: InstanceOptions) {
  const error = await createInstance(options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BetterAuthError);
  const { message } = error as BetterAuthError;
  expect(message).toMatch(/^tenantAuth\(\): /);
  const lines = message.match(/^ +(scopedModels|sharedModels|schema): .*$/gm) ?? [];
  const pasted: TenantAuthOptions = new Function(`return { ${lines.join("")} };`)();
  return { message, ...pasted };
}

/** better-auth with plugins in an order of one's own, on a database without tables. */
const start = async (...plugins: BetterAuthPlugin[]) =>
  (await createInstance({ migrate: false, arrange: () => plugins })).context;

/** A plugin that nobody has heard of, with models of the given names. */
const unknownPlugin = (id: string, ...models: string[]): BetterAuthPlugin => ({
  id,
  schema: Object.fromEntries(
    models.map((model) => [model, { fields: { text: { type: "string", required: false } } }]),
  ),
});

/** One that adds a field to somebody's model. */
const withField = (model: string, field: string, fieldName?: string): BetterAuthPlugin => ({
  id: "crm",
  schema: { [model]: { fields: { [field]: { type: "string", required: false, fieldName } } } },
});

/** A world works with these options, in a tenant and on the platform, is migrated and has columns. */
async function expectToWork(options: WorldOptions, columns: Record<string, string[]> = {}) {
  const world = await createWorld(options);
  const { quote, query } = world.database;
  for (const [table, names] of Object.entries(columns)) {
    await query(`select ${names.map(quote).join(", ")} from ${quote(table)}`);
  }
  for (const place of ["acme", "platform"] as const) {
    const jane = await world.as(`jane-of-${place}`, place);
    expect(await world.whoIs(jane)).toMatchObject({ id: jane.id, tenantId: world.ids[place] });
  }
  const again = await getMigrations(world.auth.options);
  expect([...again.toBeCreated, ...again.toBeAdded, ...again.toBeAddedIndexes]).toEqual([]);
  return world;
}

const ORGANIZATION = ["organization", "member", "invitation"];

describe("R11: models of other plugins", () => {
  it.each<[string, BetterAuthPlugin, ...models: string[]]>([
    ["api-key", apiKey(), "apikey"],
    ["a plugin that nobody has heard of", unknownPlugin("crm", "lead", "deal"), "lead", "deal"],
  ])("%s is refused until it is decided, and works either way", async (_, plugin, ...models) => {
    const { message, scopedModels, sharedModels } = await refusal({ plugins: [plugin] });
    expect(message).toContain(`  ${plugin.id}: ${models.join(", ")}\n`);
    expect([scopedModels, sharedModels]).toEqual([models, models]);
    for (const tenant of [{ scopedModels }, { sharedModels }] as TenantAuthOptions[]) {
      const { context } = await expectToWork({ tenant, plugins: [plugin] });
      const scoped = models.filter((model) => context.tables[model]?.fields.tenantId);
      expect(scoped).toEqual(tenant.scopedModels ?? []);
    }
  });

  const credentialHashSecret = "x".repeat(32);
  const SCIM = scim({ connections: [], managedConnections: { credentialHashSecret } });
  const SIWE = siwe({
    domain: "app.example",
    getNonce: async () => "nonce",
    verifyMessage: async () => true,
  });
  it.each<[string, BetterAuthPlugin, ...models: string[]]>([
    ["sso", sso(), "ssoProvider"],
    ["organization", organization(), ...ORGANIZATION],
    ["stripe", unknownPlugin("stripe", "user", "subscription"), "subscription"],
    ["scim", SCIM, ...Object.keys(SCIM.schema)],
    ["siwe", SIWE, "walletAddress"],
  ])("%s has to be scoped, and is never shared", async (_, plugin, ...models) => {
    const { message: __, ...said } = await refusal({ plugins: [plugin] });
    expect(said).toEqual({ scopedModels: models });
    await expectToWork({ tenant: said, plugins: [plugin] });
    const refused = await refusal({ plugins: [plugin], tenant: { sharedModels: models } });
    expect(refused.message).toContain("cannot be shared");
    expect(refused.scopedModels).toEqual(models);
  });

  it.each<[string, BetterAuthPlugin]>([
    ["sso", sso()],
    ["scim", SCIM],
    ["api-key", apiKey()],
    ["stripe", unknownPlugin("stripe", "subscription")],
    ["expo", { id: "expo" }],
    ["device-authorization", unknownPlugin("device-authorization", "deviceCode")],
    ["oauth-proxy", { id: "oauth-proxy" }],
    ["tenant-invitations", tenantInvitations({ sendInvitationEmail: () => {} })],
    ["tenant-domains", tenantDomains()],
  ])(
    "%s that another plugin adds in its init is refused, wherever that one is",
    async (id, late) => {
      const isOurs = late.id.startsWith("tenant-");
      const scopedModels = isOurs ? [] : Object.keys(late.schema ?? {});
      const brings = { id: "brings", init: () => ({ options: { plugins: [late] } }) };
      const ours = tenantAuth({ scopedModels });
      const message = new RegExp(
        `another plugin adds ${id} when better-auth starts.*\\nList ${id} `,
      );
      await expect(start(ours, brings)).rejects.toThrow(message);
      await expect(start(brings, ours)).rejects.toThrow(message);
      await expect(start(ours, late)).resolves.toBeDefined();
      // Tenant support was loaded for the listed one alone.
      await expect(start(ours, { ...late }, brings)).rejects.toThrow(message);
      // Plugins without data of their own may come late.
      const harmless = { id: "brings", init: () => ({ options: { plugins: [username()] } }) };
      await expect(start(tenantAuth(), harmless)).resolves.toBeDefined();
    },
  );

  it("identity providers of tenants do not share a callback", async () => {
    const tenant = { scopedModels: ["ssoProvider"] };
    for (const redirectURI of ["/sso/callback", "https://app.example/back"]) {
      const { message } = await refusal({ plugins: [sso({ redirectURI })], tenant });
      expect(message).toContain("redirectURI of sso()");
      expect(message).toContain("\n  /api/auth/sso/callback/<providerId>");
    }
    // To better-auth this is none.
    await expectToWork({ plugins: [sso({ redirectURI: " " })], tenant });
  });

  it.each([
    { sharedModels: ["organization", "member", "invitation"] },
    { scopedModels: ["member"], sharedModels: ["organization", "invitation"] },
  ])("takeover: tenants share no organizations: %j", async (decided) => {
    const { message, scopedModels } = await refusal({
      plugins: [organization()],
      tenant: decided,
    });
    expect(message).toContain("cannot be shared");
    await expectToWork({ plugins: [organization()], tenant: { scopedModels: scopedModels ?? [] } });
  });

  it("the lines hold what the application has decided already", async () => {
    const plugins = [unknownPlugin("crm", "lead", "deal", "label"), passkey()];
    const tenant = { scopedModels: ["deal"], sharedModels: ["label"] };
    const { message, scopedModels, sharedModels } = await refusal({ plugins, tenant });
    expect(message).toContain("\n  crm: lead\n  passkey: passkey\n");
    expect(scopedModels).toEqual(["deal", "lead", "passkey"]);
    expect(sharedModels).toEqual(["label", "lead", "passkey"]);
    await expectToWork({ plugins, tenant: { ...tenant, scopedModels } as TenantAuthOptions });
  });

  it("those found through their user, or without a user, need no decision, and may have one", async () => {
    const plugins = [twoFactor(), jwt()];
    const auth = { rateLimit: { enabled: true, storage: "database" as const } };
    const more = [username(), unknownPlugin("x", "user", "session", "tenant")];
    await expectToWork({ plugins: [...plugins, ...more], auth });
    const tenant = { scopedModels: ["twoFactor"], sharedModels: ["jwks"] };
    await expectToWork({ plugins, tenant });
  });

  it.each([
    ["twoFactor", twoFactor()],
    ["rateLimit", username()],
  ])("%s of another plugin is not decided by its name", async (model, official) => {
    for (const others of [[], [official]]) {
      const said = await refusal({ plugins: [...others, unknownPlugin("vault", model)] });
      expect(said.message).toContain(`\n  vault: ${model}\n`);
      expect(said.scopedModels).toEqual([model]);
    }
  });
});

it.each([
  ["tenant", "name"],
  ["tenantOauthConfig", "clientSecret"],
  ["tenantInvitation", "email"],
])(
  "takeover: a model of another plugin that is called %s, as ours is, is refused",
  async (model, field) => {
    const { plugin: invitations } = invitationsWithMailbox();
    const plugins = [invitations, withField(model, field)];
    for (const tenant of [{}, { scopedModels: [model] }, { sharedModels: [model] }]) {
      const { message } = await refusal({ plugins, tenant });
      expect(message).toContain(`the plugin crm has a model "${model}"`);
    }
  },
);

it.each(["session", "account"])(
  "takeover: a model of another plugin with the table of %s is refused",
  async (modelName) => {
    const { schema } = unknownPlugin("crm", "login");
    const plugins = [{ id: "crm", schema: { login: { ...schema?.login, modelName } } }] as never;
    for (const tenant of [{ scopedModels: ["login"] }, { sharedModels: ["login"] }]) {
      const { message } = await refusal({ plugins, tenant });
      expect(message).toContain(`the model "login" has the table "${modelName}"`);
    }
  },
);

it("so is one with the table of a model that is decided in another way", async () => {
  const [crm, notes] = [unknownPlugin("crm", "login"), unknownPlugin("notes", "note")];
  const alias = { ...crm.schema?.login, modelName: "note" };
  const plugins = [notes, { id: "crm", schema: { login: alias } }] as never;
  for (const [scopedModels, sharedModels] of [
    [["note"], ["login"]],
    [["login"], ["note"]],
  ]) {
    const { message } = await refusal({ plugins, tenant: { scopedModels, sharedModels } });
    expect(message).toContain('has the table "note" of the model');
  }
});

it("a plugin may add fields to a model of ours, where there is one", async () => {
  const more = unknownPlugin("x", "tenantInvitation");
  await expectToWork({ plugins: [invitationsWithMailbox().plugin, more] });
  // Without ours, it is a model of that plugin alone, which needs a decision.
  const { message } = await refusal({ plugins: [more] });
  expect(message).toContain("neither scoped nor shared");
  await expectToWork({ plugins: [more], tenant: { scopedModels: ["tenantInvitation"] } });
});

describe("R11: mistakes in the decisions", () => {
  it.each<[string, TenantAuthOptions]>([
    [`scopedModels: no plugin has a model "organisation"`, { scopedModels: ["organisation"] }],
    [`sharedModels: no plugin has a model "organisation"`, { sharedModels: ["organisation"] }],
    [`scopedModels: "session" needs no decision`, { scopedModels: ["session"] }],
    [`sharedModels: "tenantOauthConfig" needs no`, { sharedModels: ["tenantOauthConfig"] }],
  ])("%s", async (text, tenant) => {
    const plugins = [unknownPlugin("x", "user", "session")];
    expect((await refusal({ tenant, plugins })).message).toContain(text);
  });

  it("a scoped table with a name of its own has to come after ours", async () => {
    const renamed = organization({ schema: { organization: { modelName: "clubs" } } });
    const scoped = tenantAuth({ scopedModels: ORGANIZATION });
    await expect(start(renamed, scoped)).rejects.toThrow(
      /^tenantAuth\(\): the table of "organization" is called "clubs".*before organization/,
    );
    expect((await start(scoped, renamed)).tables.organization?.modelName).toBe("clubs");
    // It is not blamed on ours where somebody else renames it.
    const { tables } = await start(scoped, renamed, withField("organization", "customerId"));
    expect(tables.organization?.modelName).toBe("organization");
  });
});

const field = { type: "string", required: false } as const;
// better-auth itself stumbles over an optional one on users, before any plugin is asked.
const requiredField = { ...field, required: true, defaultValue: "none" } as const;
const MODELS = ["user", "session", "account", "verification"];
const OURS = { fields: { tenantId: "authTenantId" } };
const onAll = (fields: object) =>
  Object.fromEntries(MODELS.map((model) => [model, { additionalFields: fields }]));
const scopedLead = { scopedModels: ["lead"] };
const RENAMED = {
  user: { fields: { email: "email_address" } },
  account: { fields: { accountId: "account_key" } },
};

interface Clash {
  before: Pick<WorldOptions, "auth" | "plugins" | "tenant">;
  says: string[];
  schema: Record<string, object>;
  /** What the application changes besides: nothing unless told. */
  after?: Clash["before"];
  columns?: Record<string, string[]>;
}

const CLASHES: Record<string, Clash> = {
  "a field of all tables at once, and names that are set already": {
    before: {
      auth: onAll({ tenantId: requiredField }),
      tenant: {
        schema: { tenant: { modelName: "organisations" }, user: { fields: { email: "email" } } },
      },
    },
    says: [
      ...MODELS.map((model) => `  ${model} has a field "tenantId" of its own`),
      `appTenantId: { ..., fieldName: "tenantId" }`,
    ],
    schema: {
      ...Object.fromEntries(MODELS.map((model) => [model, OURS])),
      tenant: { modelName: "organisations" },
      user: { fields: { email: "email", tenantId: "authTenantId" } },
    },
    after: { auth: onAll({ appTenantId: { ...requiredField, fieldName: "tenantId" } }) },
    columns: Object.fromEntries(MODELS.map((model) => [model, ["tenantId", "authTenantId"]])),
  },
  "a column, in whatever case": {
    before: { auth: { account: { fields: { idToken: "TENANTID" } } } },
    says: [`the column "tenantId" of account belongs to "idToken"\nSet this option`],
    schema: { account: OURS },
  },
  "a field of another plugin's": {
    before: { tenant: scopedLead, plugins: [withField("lead", "tenantId")] },
    says: [`lead has a field "tenantId" of its own`],
    schema: { lead: OURS },
    after: { tenant: scopedLead, plugins: [withField("lead", "appTenantId", "tenantId")] },
    columns: { lead: ["tenantId", "authTenantId"] },
  },
  "columns that better-auth's options rename": {
    before: { auth: RENAMED },
    says: [`user.fields.email of better-auth's options is "email_address"`],
    schema: RENAMED,
    columns: { user: ["email_address"], account: ["account_key"] },
  },
};

describe.each(databases)("R11: names that are taken, on %s", (database) => {
  it.each(Object.entries(CLASHES))("%s", async (_, clash) => {
    const { before, says, schema, after, columns } = clash;
    const said = await refusal(before as InstanceOptions);
    for (const text of says) expect(said.message).toContain(text);
    expect(said.schema).toEqual(schema);
    const { tenant, ...rest } = after ?? before;
    const options = { ...rest, database, tenant: { ...tenant, schema: said.schema } };
    await expectToWork(options as WorldOptions, columns);
  });

  it("keeps what the application has in a tenantId of its own, and what it writes there", async () => {
    const own = await createDatabase(database);
    onTestFinished(() => own.close());
    const auth = { user: { additionalFields: { tenantId: field } } };
    const old = { name: "Old", email: "old@example.com", password: PASSWORD, tenantId: "crm-1" };
    const plain = await createPlainInstance(own, auth);
    expect((await plain.browser().post("/sign-up/email", old)).status).toBe(200);

    const { schema } = await refusal({ database: own, auth });
    const appTenantId = { ...field, fieldName: "tenantId" };
    const world = await expectToWork({
      database: own,
      tenant: { schema } as TenantAuthOptions,
      auth: { user: { additionalFields: { appTenantId } } },
    });
    const tenantId = world.ids.acme;
    const body = { ...old, email: "new@example.com", appTenantId: "crm-2", tenantId };
    const { data } = await world.browser().post("/tenant/sign-up/email", body);
    expect(data.user).toMatchObject({ tenantId, appTenantId: "crm-2" });
    const signIn = await world.at(null).post("/sign-in/email", old);
    expect(signIn.data.user).toMatchObject({ tenantId: null, appTenantId: "crm-1" });
    const rows = await own.query(`select * from ${own.quote("user")}`);
    expect(rows).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ email: old.email, tenantId: "crm-1", authTenantId: "" }),
        expect.objectContaining({ email: body.email, tenantId: "crm-2", authTenantId: tenantId }),
      ]),
    );
  });

  it("is none in a shared model, or of an e-mail column that stays better-auth's", async () => {
    const plugins = [withField("lead", "tenantId")];
    await expectToWork({ database, plugins, tenant: { sharedModels: ["lead"] } });
    const tenant = { keepEmailGloballyUnique: true };
    const auth = { user: { fields: { email: "email_address" } } };
    await expectToWork({ database, auth, tenant }, { user: ["email_address"] });
  });
});

it("R11: ours keeps the name that the application has given it", async () => {
  const user = { additionalFields: { tenantId: requiredField } };
  const tenant: TenantAuthOptions = { schema: { user: { fields: { tenantId: "org_id" } } } };
  const { message, schema } = await refusal({ auth: { user }, tenant });
  expect(message).toContain(`appTenantId: { ..., fieldName: "tenantId" }`);
  expect([schema, message]).toEqual([undefined, expect.not.stringContaining("schema:")]);
});
