import { BetterAuthError } from "better-auth";
import type { BetterAuthPluginDBSchema, DBFieldAttribute } from "better-auth/db";
import { mergeSchema } from "better-auth/db";

/**
 * The `tenantId` of the platform's rows in the database. Not null, because better-auth's unique
 * indexes over several columns need required columns. Adapters return null instead.
 */
export const PLATFORM = "";

export const text = { type: "string", required: true } as const;
export const date = { type: "date", required: true } as const;
export const optionalDate = { type: "date", required: false } as const;

export const tenantColumn = {
  type: "string",
  required: true,
  // Static, so that a migration can add the column: existing rows become the platform's.
  defaultValue: PLATFORM,
  input: false,
  // Undefined means that the column was not selected. It does not mean the platform.
  transform: { output: (stored) => (stored === undefined ? undefined : stored || null) },
} satisfies DBFieldAttribute;

const indexedTenantColumn = () => ({ ...tenantColumn, index: true });

/** A column with an object as JSON. */
export const jsonColumn = () =>
  ({
    type: "json",
    required: false,
    // Without this, better-auth turns strings that look like dates into Dates, and does not parse
    // the text of a MariaDB json column.
    transform: { output: (stored) => parseObject(stored) as typeof stored },
  }) satisfies DBFieldAttribute;

/**
 * Parses stored JSON. Returns other text, which this plugin did not write, in a list: better-auth
 * would read the bare text as null.
 */
function parseObject(stored: unknown) {
  try {
    const value: unknown = typeof stored === "string" ? JSON.parse(stored) : stored;
    if (typeof value !== "string") return value;
  } catch {}
  return [stored];
}

/** Replaced when all sessions of the user end: see `isolate/generations.ts`. */
const generationColumn = {
  type: "string",
  required: false,
  input: false,
  returned: false,
} as const;

/** The dates that a row of ours has. */
export const timestamps = () =>
  ({
    createdAt: { type: "date", required: true, defaultValue: () => new Date() },
    updatedAt: { type: "date", required: true, defaultValue: () => new Date() },
  }) satisfies Record<string, DBFieldAttribute>;

/**
 * The tables and columns of the core. New objects each time: `mergeSchema` writes the names of the
 * `schema` option into them.
 */
export const coreTables = () =>
  ({
    tenant: {
      fields: {
        name: { type: "string", required: true, sortable: true, index: true },
        slug: { type: "string", required: true },
        metadata: jsonColumn(),
        status: { type: "string", required: true, defaultValue: "active" },
        deleteAt: { type: "date", required: false },
        sessionsEndedAt: { type: "date", required: false },
        ...timestamps(),
      },
      // Not `unique` on the column: on MongoDB, better-auth creates only the indexes listed here.
      indexes: [{ fields: ["createdAt"] }, { fields: ["slug"], unique: true }],
    },
    user: {
      fields: {
        tenantId: { ...tenantColumn },
        // Without better-auth's unique index: every tenant may have the same email.
        email: { type: "string", required: true, sortable: true },
        sessionGeneration: { ...generationColumn },
      },
      indexes: [{ fields: ["tenantId", "email"], unique: true }],
    },
    session: {
      fields: {
        tenantId: indexedTenantColumn(),
        // Returned, because the cookie cache holds only fields that are returned.
        generation: { type: "string", required: false, input: false },
      },
    },
    account: {
      fields: {
        tenantId: indexedTenantColumn(),
        // Indexed for OAuth callbacks. Not together with `tenantId`: in existing MySQL tables, this
        // column is an unbounded text.
        accountId: { type: "string", required: true, index: true },
      },
    },
    verification: {
      fields: { tenantId: { ...tenantColumn } },
      // For deleting expired rows. Without `identifier`, which has an index already, and is an
      // unbounded text in existing MySQL tables.
      indexes: [{ fields: ["tenantId", "expiresAt"] }],
    },
  }) satisfies BetterAuthPluginDBSchema;

type Table = BetterAuthPluginDBSchema[string];

/** The options of `tenantAuth()` that change the schema. */
interface SchemaOptions {
  keepEmailGloballyUnique: boolean;
  scopedModels: string[];
  schema?: Names;
}

/**
 * better-auth's models whose rows belong to a tenant or to the platform. Users come first, because
 * others refer to them.
 */
export const BASE_MODELS = ["user", "session", "account", "verification"];

/**
 * Returns the schema for migrations, the CLI and the database adapter. `added` are the tables of
 * features, and their columns in tables of the core.
 */
export function storedSchema(
  options: SchemaOptions,
  added: BetterAuthPluginDBSchema[],
): BetterAuthPluginDBSchema {
  const schema: BetterAuthPluginDBSchema = coreTables();
  const scoped = () => ({ fields: { tenantId: indexedTenantColumn() } });
  if (options.keepEmailGloballyUnique) {
    const { fields } = scoped();
    schema.user = { fields: { ...fields, sessionGeneration: { ...generationColumn } } };
  }
  guardUniqueIndex(schema);
  for (const model of options.scopedModels) schema[model] ??= scoped();
  for (const [model, table] of added.flatMap(Object.entries<Table>)) {
    const { fields } = schema[model] ?? {};
    schema[model] = { ...schema[model], ...table, fields: { ...fields, ...table.fields } };
  }
  assertNames(schema, options.schema ?? {});
  return mergeSchema(schema, options.schema);
}

/**
 * Refuses a field `tenantId` of the application with a message that says what to write. Before any
 * plugin runs, better-auth calls `some` on the fields of a unique index to find optional ones. Ours
 * are required, so an optional `tenantId` is the application's.
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

/** Refuses names for models and fields that do not exist. They would go unnoticed. */
function assertNames(schema: BetterAuthPluginDBSchema, names: Names) {
  for (const [model, { modelName, fields = {} } = {}] of Object.entries(names)) {
    const known = schema[model]?.fields;
    const unknown = known ? Object.keys(fields).find((field) => !known[field]) : "";
    if (unknown !== undefined) {
      const path = ["schema", model, ...(unknown ? ["fields", unknown] : [])].join(".");
      refuse(`${path}: nothing has this name, with the options as they are. Leave it out.`);
    }
    if (modelName && !model.startsWith("tenant")) {
      refuse(`schema.${model}.modelName: set it in the options of better-auth`);
    }
  }
}

/**
 * Returns the schema by which better-auth parses input and output. It lacks better-auth's own
 * columns, which better-auth would require as additional fields. `tenantId` defaults to the current
 * tenant, so that the synthetic users that hide a taken email look real, and sessions outside the
 * database have a tenant.
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

/** The type of a column that better-auth infers for users and sessions. */
export type Inferred<Type> = { type: Type; required: false; input: false };

/** The part of the schema from which better-auth infers the types of users and sessions. */
export type InferredSchema = {
  user: { fields: { tenantId: Inferred<"string"> } };
  session: { fields: { tenantId: Inferred<"string">; generation: Inferred<"string"> } };
};

/** The `schema` option, with any model. */
export type Names = Record<
  string,
  { modelName?: string; fields?: Record<string, string> } | undefined
>;

export function refuse(...lines: string[]): never {
  throw new BetterAuthError(`tenantAuth(): ${lines.join("\n")}`);
}
