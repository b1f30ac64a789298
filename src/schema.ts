import { BetterAuthError } from "better-auth";
import type { BetterAuthPluginDBSchema, DBFieldAttribute } from "better-auth/db";
import { mergeSchema } from "better-auth/db";
import type { ResolvedOptions } from "./options";

/**
 * "No tenant" in the database: a unique index over several columns requires required columns. The
 * isolated adapter returns null instead.
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
  // A column that was not selected is undefined, and says nothing about the tenant.
  transform: { output: (stored) => (stored === undefined ? undefined : stored || null) },
} satisfies DBFieldAttribute;

const indexedTenantColumn = () => ({ ...tenantColumn, index: true });

const jsonColumn = () =>
  ({
    type: "json",
    required: false,
    // By itself, better-auth turns strings that look like dates into Dates, and does not parse the
    // text of a MariaDB json column.
    transform: { output: (stored) => parseObject(stored) as typeof stored },
  }) satisfies DBFieldAttribute;

/** Text that is not JSON was not written by us. In a list, because better-auth reads it as null. */
function parseObject(stored: unknown) {
  try {
    const value: unknown = typeof stored === "string" ? JSON.parse(stored) : stored;
    if (typeof value !== "string") return value;
  } catch {}
  return [stored];
}

const timestamps = () =>
  ({
    createdAt: { type: "date", required: true, defaultValue: () => new Date() },
    updatedAt: { type: "date", required: true, defaultValue: () => new Date() },
  }) satisfies Record<string, DBFieldAttribute>;

/** New objects each time: `mergeSchema` writes the names of the `schema` option into them. */
const tables = () =>
  ({
    tenant: {
      fields: {
        name: { type: "string", required: true, sortable: true, index: true },
        slug: { type: "string", required: true },
        metadata: jsonColumn(),
        status: { type: "string", required: true, defaultValue: "active" },
        deleteAt: { type: "date", required: false },
        sessionsEndedAt: { type: "date", required: false },
        policy: jsonColumn(),
        ...timestamps(),
      },
      // Not `unique` at the column: on MongoDB better-auth creates only these.
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
        // JSON in a text: a list column of Prisma cannot be null, and an empty list is not null.
        scopes: {
          type: "string",
          required: false,
          transform: {
            input: (list) => (list ? JSON.stringify(list) : list),
            output: (stored) => (typeof stored === "string" ? JSON.parse(stored) : stored),
          },
        },
        redirectURI: { type: "string", required: false },
        enabled: { type: "boolean", required: true, defaultValue: true },
        ...timestamps(),
      },
      indexes: [{ fields: ["tenantId", "providerId"], unique: true }],
    },
    user: {
      fields: {
        tenantId: { ...tenantColumn },
        // Without better-auth's unique index: every tenant may have the same email.
        email: { type: "string", required: true, sortable: true },
      },
      indexes: [{ fields: ["tenantId", "email"], unique: true }],
    },
    session: {
      fields: {
        tenantId: indexedTenantColumn(),
        // How the user signed in, and when with a second factor: see `policy/second-factor.ts`.
        signInMethod: { type: "string", required: false, input: false },
        secondFactorAt: { type: "date", required: false, input: false },
      },
    },
    account: {
      fields: {
        tenantId: indexedTenantColumn(),
        // With an index, for callbacks. Not one over both columns: in existing tables of MySQL this
        // one is an unbounded text.
        accountId: { type: "string", required: true, index: true },
      },
    },
    verification: {
      fields: { tenantId: { ...tenantColumn } },
      // For the deletion of expired rows. The identifier has its own index, and is an unbounded text
      // in existing tables of MySQL.
      indexes: [{ fields: ["tenantId", "expiresAt"] }],
    },
  }) satisfies BetterAuthPluginDBSchema;

type Tables = ReturnType<typeof tables>;

/**
 * Renames the plugin's models and fields, as in better-auth's own plugins. The tables of users,
 * sessions, accounts and verifications are renamed in better-auth's own options, those of
 * `scopedModels` in the options of their plugins.
 */
export type TenantAuthSchema = OwnNames | ScopedNames;

type OwnNames = {
  [Model in keyof Tables]?: {
    fields?: { [Field in keyof Tables[Model]["fields"]]?: string };
  } & (Model extends "tenant" | "tenantOauthConfig" ? { modelName?: string } : unknown);
};

/** A union rather than one type, so that TypeScript checks our own names. */
type ScopedNames = { [scopedModel: string]: { fields?: { tenantId?: string } } };

/** Isolated models of our other plugins. */
export const PLUGIN_MODELS = ["tenantInvitation", "tenantDomain"];

/** The models whose rows belong to a tenant or to the platform. Users first: others refer to them. */
export const isolatedModels = ({ scopedModels }: Pick<ResolvedOptions, "scopedModels">) => [
  ...new Set(["user", "session", "account", "verification", ...PLUGIN_MODELS, ...scopedModels]),
];

/** The schema for migrations, the CLI and the database adapter. */
export function storedSchema(
  options: Pick<ResolvedOptions, "keepEmailGloballyUnique" | "scopedModels" | "schema">,
): BetterAuthPluginDBSchema {
  const schema: BetterAuthPluginDBSchema = tables();
  const scoped = () => ({ fields: { tenantId: indexedTenantColumn() } });
  if (options.keepEmailGloballyUnique) schema.user = scoped();
  guardUniqueIndex(schema);
  for (const model of options.scopedModels) schema[model] ??= scoped();
  if (schema.scimUser) {
    // Whether the directory created the user of the row, or linked one who had signed up.
    schema.scimUser.fields.createdUser = { type: "boolean", required: false, input: false };
  }
  assertNames(schema, (options.schema ?? {}) as Names);
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

/** A name for a model or field that does not exist would go unnoticed. */
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
 * The schema for better-auth's parsing of input and output. It lacks better-auth's own columns, which
 * better-auth would require as additional fields. The default of `tenantId` is the current tenant: the
 * made-up users that hide a taken email look real, and sessions outside the database have a tenant.
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

type Inferred<Type> = { type: Type; required: false; input: false };

/** The part of the schema that types are inferred from. */
export type InferredSchema = {
  user: { fields: { tenantId: Inferred<"string"> } };
  session: {
    fields: {
      tenantId: Inferred<"string">;
      signInMethod: Inferred<"string">;
      secondFactorAt: Inferred<"date">;
    };
  };
};

/** The `schema` option, with any model. */
export type Names = Record<
  string,
  { modelName?: string; fields?: Record<string, string> } | undefined
>;

export function refuse(...lines: string[]): never {
  throw new BetterAuthError(`tenantAuth(): ${lines.join("\n")}`);
}
