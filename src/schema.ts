import { BetterAuthError } from "better-auth";
import type { BetterAuthPluginDBSchema, DBFieldAttribute } from "better-auth/db";
import { mergeSchema } from "better-auth/db";

/**
 * "No tenant" is stored as an empty string, because a unique index over several columns takes
 * required columns only. Nobody outside the confined adapter ever sees it: what is read is null.
 */
export const PLATFORM = "";

export const tenantColumn = {
  type: "string",
  required: true,
  // Static, so that the column can be added to a table that has rows: they become the platform's.
  defaultValue: PLATFORM,
  input: false,
  // A column that was not selected comes as undefined, and says nothing about the tenant.
  transform: { output: (stored) => (stored === undefined ? undefined : stored || null) },
} satisfies DBFieldAttribute;

const jsonColumn = {
  type: "json",
  required: false,
  // Left to itself better-auth turns strings that look like dates into Dates, and leaves the
  // text of a MariaDB json column unparsed.
  transform: { output: (stored) => parseObject(stored) as typeof stored },
} satisfies DBFieldAttribute;

/** What is no JSON was written past us. In a list: better-auth takes such a text for null. */
function parseObject(stored: unknown) {
  try {
    const value: unknown = typeof stored === "string" ? JSON.parse(stored) : stored;
    if (typeof value !== "string") return value;
  } catch {}
  return [stored];
}

/** As JSON in a text: a list column of Prisma cannot be null, and an empty list is not none. */
const listColumn = {
  type: "string",
  required: false,
  transform: {
    input: (list) => (list ? JSON.stringify(list) : list),
    output: (stored) => (typeof stored === "string" ? JSON.parse(stored) : stored),
  },
} satisfies DBFieldAttribute;

/** Whether the directory created the user of its row: it may have linked one who had signed up. */
const markColumn = { type: "boolean", required: false, input: false } satisfies DBFieldAttribute;

const timestamps = {
  createdAt: { type: "date", required: true, defaultValue: () => new Date() },
  updatedAt: { type: "date", required: true, defaultValue: () => new Date() },
} satisfies Record<string, DBFieldAttribute>;

function tables() {
  return {
    tenant: {
      fields: {
        // Lists are sorted by name, by slug or by age.
        name: { type: "string", required: true, sortable: true, index: true },
        slug: { type: "string", required: true },
        metadata: jsonColumn,
        // Static, so that the column can be added to a table that has rows.
        status: { type: "string", required: true, defaultValue: "active" },
        deleteAt: { type: "date", required: false },
        sessionsEndedAt: { type: "date", required: false },
        policy: jsonColumn,
        ...timestamps,
      },
      // Not `unique` at the column: on MongoDB better-auth creates these here only.
      indexes: [{ fields: ["createdAt"] }, { fields: ["slug"], unique: true }],
    },
    tenantOauthConfig: {
      fields: {
        tenantId: {
          type: "string",
          required: true,
          references: { model: "tenant", field: "id", onDelete: "cascade" },
        },
        providerId: { type: "string", required: true },
        clientId: { type: "string", required: true, returned: false },
        clientSecret: { type: "string", required: true, returned: false },
        options: { type: "string", required: false, returned: false },
        secretChangedAt: { type: "date", required: false },
        scopes: listColumn,
        redirectURI: { type: "string", required: false },
        enabled: { type: "boolean", required: true, defaultValue: true },
        ...timestamps,
      },
      indexes: [{ fields: ["tenantId", "providerId"], unique: true }],
    },
    user: {
      fields: { tenantId: tenantColumn, email: emailColumn() },
      indexes: [{ fields: ["tenantId", "email"], unique: true }],
    },
    session: { fields: { tenantId: { ...tenantColumn, index: true } } },
    account: {
      fields: { tenantId: { ...tenantColumn, index: true }, accountId: accountIdColumn() },
    },
    verification: {
      fields: { tenantId: tenantColumn },
      // better-auth deletes what has expired whenever it looks a value up by its identifier, which
      // has an index of its own. Not one over both: MySQL has it as an unbounded text in old tables.
      indexes: [{ fields: ["tenantId", "expiresAt"] }],
    },
  } satisfies BetterAuthPluginDBSchema;
}

/** better-auth's own column, without its unique index: the same e-mail may exist in every tenant. */
function emailColumn(): DBFieldAttribute {
  return { type: "string", required: true, sortable: true };
}

/**
 * better-auth's own column, with an index: a callback looks for the account by it, and the tenant
 * alone may have a hundred thousand. Not an index over both: that one would be added to tables
 * that are there already, and MySQL cannot, because the column is an unbounded text in them.
 */
function accountIdColumn(): DBFieldAttribute {
  return { type: "string", required: true, index: true };
}

type Tables = ReturnType<typeof tables>;
type OwnModel = "tenant" | "tenantOauthConfig";

/**
 * Renames the plugin's models and fields, as in better-auth's own plugins. The tables of users,
 * sessions, accounts and verifications are renamed in better-auth's own options, those of
 * `scopedModels` in the options of their plugins.
 */
export type TenantAuthSchema = OwnNames | ScopedNames;

type OwnNames = {
  [Model in keyof Tables]?: {
    fields?: { [Field in keyof Tables[Model]["fields"]]?: string };
  } & (Model extends OwnModel ? { modelName?: string } : unknown);
};

/** A union rather than one type, so that mistakes in the names of our own are still found. */
type ScopedNames = { [scopedModel: string]: { fields?: { tenantId?: string } } };

/** Confined models of our other plugins, whose tables are there where those are installed. */
export const PLUGIN_MODELS = ["tenantInvitation"];

/**
 * The models whose rows belong to a tenant or to the platform, and to nobody else. Users stand
 * first: the others may refer to them.
 */
export const isolatedModels = ({ scopedModels }: { scopedModels: string[] }) => [
  ...new Set(["user", "session", "account", "verification", ...PLUGIN_MODELS, ...scopedModels]),
];

/** What migrations, the CLI and the database adapter see. */
export function storedSchema(options: {
  keepEmailGloballyUnique: boolean;
  scopedModels: string[];
  schema?: TenantAuthSchema | undefined;
}): BetterAuthPluginDBSchema {
  const schema: BetterAuthPluginDBSchema = tables();
  const names = (options.schema ?? {}) as Names;
  // Renaming writes into the fields, and some of them are shared above.
  for (const table of Object.values(schema)) {
    table.fields = Object.fromEntries(
      Object.entries(table.fields).map(([name, field]) => [name, { ...field }]),
    );
  }
  if (options.keepEmailGloballyUnique) {
    schema.user = { fields: { tenantId: { ...tenantColumn, index: true } } };
  }
  guardUniqueIndex(schema);
  for (const model of options.scopedModels) {
    schema[model] ??= { fields: { tenantId: { ...tenantColumn, index: true } } };
  }
  if (schema.scimUser) Object.assign(schema.scimUser.fields, { createdUser: { ...markColumn } });
  assertNames(schema, names);
  return mergeSchema(schema, options.schema);
}

/**
 * better-auth refuses a unique index over optional fields before any plugin runs. Ours are required,
 * so an optional `tenantId` is the application's own: the error says what to write instead.
 */
function guardUniqueIndex({ user }: BetterAuthPluginDBSchema) {
  for (const { fields } of user?.indexes ?? []) {
    const some = (isOptional: (field: string) => boolean) => {
      if (isOptional("tenantId")) {
        refuse(
          'user has a field "tenantId" of its own. Rename it and keep its column: appTenantId: { ..., fieldName: "tenantId" }',
          "Set this option of tenantAuth():",
          '  schema: { user: { fields: { tenantId: "authTenantId" } } },',
        );
      }
      return fields.filter(isOptional).length > 0;
    };
    Object.defineProperty(fields, "some", { value: some });
  }
}

/** A name for something that is not there is a mistake, and would go unnoticed. */
function assertNames(schema: BetterAuthPluginDBSchema, names: Names) {
  for (const [model, name] of Object.entries(names)) {
    const unknown = schema[model]
      ? Object.keys(name?.fields ?? {}).find((field) => !schema[model]?.fields[field])
      : "";
    if (unknown !== undefined) {
      const path = ["schema", model, ...(unknown ? ["fields", unknown] : [])].join(".");
      refuse(`${path}: nothing has this name, with the options as they are. Leave it out.`);
    }
    if (name?.modelName && !model.startsWith("tenant")) {
      refuse(`schema.${model}.modelName: set it in the options of better-auth`);
    }
  }
}

/**
 * What better-auth's input and output parsing sees at run time. Two things differ from what is
 * stored: better-auth's own columns are not there, which core would ask for a second time as
 * additional fields; and the default of `tenantId` is whatever tenant the request runs in, so that users made
 * up to hide that an e-mail is taken look like real ones, and sessions that never reach the
 * database carry their tenant.
 */
export function runtimeSchema(
  stored: BetterAuthPluginDBSchema,
  models: string[],
  currentTenant: () => string | null | undefined,
): BetterAuthPluginDBSchema {
  const runtime: BetterAuthPluginDBSchema = { ...stored };
  for (const model of models) {
    if (!stored[model]) continue;
    const { email: _, accountId: __, tenantId, ...fields } = stored[model].fields;
    const column = {
      ...(tenantId as DBFieldAttribute),
      required: false,
      get defaultValue() {
        return currentTenant();
      },
    };
    runtime[model] = { fields: { ...fields, tenantId: column } };
  }
  return runtime;
}

/** The part of the schema that types are inferred from. */
export type InferredSchema = {
  user: { fields: { tenantId: { type: "string"; required: false; input: false } } };
  session: { fields: { tenantId: { type: "string"; required: false; input: false } } };
};

/** Other names for models and fields, where the model comes as a string. */
export type Names = Record<
  string,
  { modelName?: string; fields?: Record<string, string> } | undefined
>;

export function refuse(...lines: string[]): never {
  throw new BetterAuthError(`tenantAuth(): ${lines.join("\n")}`);
}
