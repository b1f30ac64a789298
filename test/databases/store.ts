import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateDrizzleSchema } from "auth/api";
import type { BetterAuthOptions } from "better-auth";
import { admin, organization, phoneNumber, username } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { is, SQL, Table } from "drizzle-orm";
import * as mysql from "drizzle-orm/mysql-core";
import * as pg from "drizzle-orm/pg-core";
import * as sqlite from "drizzle-orm/sqlite-core";
import { onTestFinished } from "vitest";
import { tenantInvitations } from "../../src/features/invitations/index";
import { tenantAuth } from "../../src/index";
import type { DatabaseKind, IdKind, TestDatabase } from "../support/database";
import { createSocialInstance } from "../support/social";

export const DATABASE_NAMES: Record<DatabaseKind, string> = {
  sqlite: "SQLite",
  postgres: "PostgreSQL",
  mysql: "MariaDB",
};

export type Row = Record<string, unknown>;

/** A fresh, empty database behind one of better-auth's adapters. */
export interface Store extends Pick<TestDatabase, "option" | "close"> {
  /** Whether better-auth's own migrations make the tables; otherwise they are there already. */
  migrate: boolean;
  /** Every row of a model as it is stored, of all tenants. */
  rows(model: string): Promise<Row[]>;
}

/** An adapter on a database, with one kind of ids: something that the plugin has to work on. */
export interface Ground {
  name: string;
  ids: IdKind;
  open(): Promise<Store>;
  /** How many come at once: fewer where there is one connection, and less to find. */
  crowd?: number;
  /** Why nothing here keeps a value from being stored twice. */
  noUniqueValues?: string;
  /** Why better-auth cannot join in the database here. */
  noJoins?: string | undefined;
  /** Of two that wait for each other the database ends one, and nobody tries again. */
  deadlocks?: boolean;
}

/** The code that every phone is sent. */
export const CODE = "123456";

const tenant = { scopedModels: ["organization", "member", "invitation"] };

/** Unique columns, and a table of our own. */
const plugins = () => [
  username(),
  phoneNumber({ sendOTP: () => {}, verifyOTP: async ({ code }) => code === CODE }),
  organization(),
  tenantInvitations({ sendInvitationEmail: () => {} }),
];

export const generateId = (ids: IdKind) => (ids === "text" ? undefined : ids);

/** The name of a test, with the reason where this ground cannot stand it. */
export const because = (name: string, reason: string | undefined) =>
  reason ? `${name} (skipped: ${reason})` : name;

export type World = Awaited<ReturnType<typeof createWorld>>;

/** An instance with the fake identity provider, two tenants, and a look at the rows of all tenants. */
export async function createWorld(ground: Ground, { joins = false } = {}) {
  const store = await ground.open();
  onTestFinished(() => store.close());
  const query = async () => {
    throw new Error("Not every adapter has SQL behind it: use rows()");
  };
  const app = await createSocialInstance({
    database: { kind: "sqlite", quote: String, query, statements: [], ...store },
    migrate: store.migrate,
    tenant,
    plugins: plugins(),
    auth: {
      emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
      advanced: { database: { generateId: generateId(ground.ids), joins } },
    },
  });

  return {
    ...app,
    a: await app.createTenant("acme"),
    b: await app.createTenant("bolt"),
    rows: store.rows,
    /** The rows of a tenant, or of the platform. */
    rowsOf: async (model: string, tenantId: string | null) =>
      (await store.rows(model)).filter((row) => String(row.tenantId) === (tenantId ?? "")),
    count: async (model: string) => (await store.rows(model)).length,
  };
}

type DrizzleProvider = "pg" | "sqlite" | "mysql";

/** The options that the suite starts better-auth with, as far as the tables are concerned. */
export const tableOptions = (ids: IdKind): BetterAuthOptions => ({
  plugins: [tenantAuth(tenant), admin(), ...plugins()],
  advanced: { database: { generateId: generateId(ids) } },
});

/** The schema for Drizzle, by the generator behind `npx auth generate`. */
export async function generateDrizzle(provider: DrizzleProvider, ids: IdKind): Promise<string> {
  const { code } = await generateDrizzleSchema({
    options: tableOptions(ids),
    adapter: { options: { provider } } as unknown as DBAdapter,
    file: "there-is-no-such-file.ts",
  });
  if (!code) throw new Error("nothing was generated");
  return code;
}

/** A place where packages are found, and where nobody looks for sources. */
export function writeGenerated(name: string, code: string): string {
  const folder = join(import.meta.dirname, "../../node_modules/.cache/better-auth-tenant");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${process.pid}-${name}`);
  writeFileSync(file, code);
  return file;
}

const modules = new Map<string, Promise<Record<string, unknown>>>();

/** The tables and relations that the generated schema exports. It has no types in it, so Node reads it. */
export function loadDrizzle(provider: DrizzleProvider, ids: IdKind) {
  const name = `${provider}-${ids}.mjs`;
  const load = async () => {
    const file = writeGenerated(name, await generateDrizzle(provider, ids));
    const schema = await import(/* @vite-ignore */ file);
    rmSync(file);
    return { ...schema };
  };
  const known = modules.get(name) ?? load();
  modules.set(name, known);
  return known;
}

const DIALECTS = {
  pg: {
    config: pg.getTableConfig,
    sql: new pg.PgDialect(),
    counts: "generated by default as identity",
  },
  sqlite: {
    config: sqlite.getTableConfig,
    sql: new sqlite.SQLiteSyncDialect(),
    counts: "autoincrement",
  },
  mysql: { config: mysql.getTableConfig, sql: new mysql.MySqlDialect(), counts: "auto_increment" },
};

type Config = ReturnType<typeof pg.getTableConfig>;

/** The descriptions differ in details that nobody here looks at. */
const tableConfig = (provider: DrizzleProvider, table: Table) =>
  (DIALECTS[provider].config as unknown as (table: Table) => Config)(table);

type Column = Config["columns"][number] & { autoIncrement?: boolean };

/**
 * The statements that make the tables of a Drizzle schema, as Drizzle itself describes them. Its
 * own tool does the same and much more, and weighs more than all the rest of Drizzle.
 */
export function createTables(provider: DrizzleProvider, schema: Record<string, unknown>): string[] {
  const dialect = DIALECTS[provider];
  const tables = Object.values(schema)
    .filter((value) => is(value, Table))
    .map((table) => tableConfig(provider, table))
    // Those that refer to others come after them.
    .sort((a, b) => a.foreignKeys.length - b.foreignKeys.length);
  const quote = (name: string) => (provider === "mysql" ? `\`${name}\`` : `"${name}"`);
  const list = (columns: { name: string }[]) => columns.map(({ name }) => quote(name)).join(", ");

  const literal = (value: unknown) => {
    if (is(value, SQL)) return dialect.sql.sqlToQuery(value).sql;
    return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
  };

  const column = (column: Column) =>
    [
      quote(column.name),
      column.getSQLType(),
      column.primary && "primary key",
      (column.generatedIdentity || column.autoIncrement) && dialect.counts,
      column.default !== undefined && `default ${literal(column.default)}`,
      column.notNull && "not null",
      column.isUnique && "unique",
    ]
      .filter(Boolean)
      .join(" ");

  const foreignKey = ({ reference, onDelete }: Config["foreignKeys"][number]) => {
    const { columns, foreignColumns, foreignTable } = reference();
    const target = tableConfig(provider, foreignTable).name;
    return `foreign key (${list(columns)}) references ${quote(target)} (${list(foreignColumns)}) on delete ${onDelete}`;
  };

  return tables.flatMap(({ name, columns, foreignKeys, indexes }) => [
    `create table ${quote(name)} (${[...columns.map(column), ...foreignKeys.map(foreignKey)].join(", ")})`,
    ...indexes.map(
      ({ config }) =>
        `create ${config.unique ? "unique " : ""}index ${quote(String(config.name))} on ${quote(name)} (${list(config.columns as { name: string }[])})`,
    ),
  ]);
}
