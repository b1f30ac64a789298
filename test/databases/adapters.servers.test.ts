import { drizzleAdapter } from "better-auth/adapters/drizzle";
import { memoryAdapter } from "better-auth/adapters/memory";
import { getAuthTables } from "better-auth/db";
import { admin } from "better-auth/plugins";
import type { Table } from "drizzle-orm";
import { drizzle as overMysql } from "drizzle-orm/mysql2";
import { drizzle as overPg } from "drizzle-orm/node-postgres";
import { drizzle as overSqlite } from "drizzle-orm/sqlite-proxy";
import Database from "libsql";
import type { Pool as MysqlPool } from "mysql2/promise";
import type { Pool } from "pg";
import { describe, expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { createDatabase, type DatabaseKind, databases } from "../support/database";
import { everyCase } from "../support/matrix";
import { behaves } from "./behaviour";
import {
  createTables,
  createWorld,
  DATABASE_NAMES,
  ID_KINDS,
  type IdKind,
  loadDrizzle,
  plugins,
  type Row,
  type Store,
} from "./store";

/** Every kind of ids, or one. A UUID is a text like any other to SQLite and in memory. */
function idKinds(kind: DatabaseKind | "memory", one: IdKind): IdKind[] {
  if (!everyCase) return [one];
  const hasUuids = kind === "postgres" || kind === "mysql";
  return ID_KINDS.filter((ids) => hasUuids || ids !== "uuid");
}

async function openKysely(kind: DatabaseKind): Promise<Store> {
  const database = await createDatabase(kind);
  return {
    ...database,
    migrate: true,
    rows: (model) => database.query(`select * from ${database.quote(model)} order by id`),
  };
}

for (const kind of databases) {
  for (const ids of idKinds(kind, "text")) {
    // better-auth's migrations leave SQLite to count from the highest id that is left.
    const reusesIds = kind === "sqlite" && ids === "serial";
    const deadlocks = kind === "mysql";
    const name = `Kysely on ${DATABASE_NAMES[kind]}`;
    const crowd = kind === "sqlite" ? 10 : 20;
    behaves({ name, ids, open: () => openKysely(kind), crowd, reusesIds, deadlocks });
  }
}

async function openMemory(): Promise<Store> {
  const models = Object.keys(getAuthTables({ plugins: [tenantAuth(), admin(), ...plugins()] }));
  const tables: Record<string, Row[]> = Object.fromEntries(models.map((model) => [model, []]));
  return {
    option: memoryAdapter(tables),
    migrate: false,
    rows: async (model) => tables[model] ?? [],
    close: async () => {},
  };
}

for (const ids of idKinds("memory", "serial")) {
  behaves({
    name: "Memory",
    ids,
    open: openMemory,
    crowd: 10,
    noUniqueValues: "better-auth's memory adapter has no unique columns",
    // It counts the rows that are left.
    reusesIds: ids === "serial",
  });
}

type Reader = { select(): { from(table: Table): PromiseLike<Row[]> } };

const reader = (db: unknown, schema: Record<string, unknown>) => (model: string) =>
  Promise.resolve((db as Reader).select().from(schema[model] as Table));

/** libsql behind Drizzle's proxy driver, one connection: without transactions, as is the default. */
async function openSqlite(ids: IdKind): Promise<Store> {
  const schema = await loadDrizzle("sqlite", ids);
  const client = new Database(":memory:");
  for (const statement of createTables("sqlite", schema)) client.exec(statement);
  const db = overSqlite(
    async (sql, params, method) => {
      const statement = client.prepare(sql);
      if (!statement.reader) return { rows: [], ...statement.run(...params) };
      const rows = statement.raw().all(...params) as unknown[][];
      return { rows: method === "get" ? (rows[0] ?? []) : rows };
    },
    { schema },
  );
  return {
    option: drizzleAdapter(db, { provider: "sqlite", schema }),
    migrate: false,
    rows: reader(db, schema),
    close: async () => void client.close(),
  };
}

async function openServer(
  kind: "postgres" | "mysql",
  ids: IdKind,
  transaction = true,
): Promise<Store> {
  const provider = kind === "postgres" ? "pg" : "mysql";
  const schema = await loadDrizzle(provider, ids);
  const { option, query, close } = await createDatabase(kind);
  try {
    for (const statement of createTables(provider, schema)) await query(statement);
  } catch (error) {
    await close();
    throw error;
  }
  const db =
    kind === "postgres"
      ? overPg(option as Pool, { schema })
      : overMysql(option as MysqlPool, { schema, mode: "default" });
  return {
    option: drizzleAdapter(db, { provider, schema, transaction }),
    migrate: false,
    rows: reader(db, schema),
    close,
  };
}

for (const kind of databases) {
  for (const ids of idKinds(kind, "serial")) {
    const open = kind === "sqlite" ? () => openSqlite(ids) : () => openServer(kind, ids);
    behaves({
      name: `Drizzle on ${DATABASE_NAMES[kind]}`,
      ids,
      open,
      crowd: kind === "sqlite" ? 10 : 20,
      noJoins: kind === "mysql" ? "MariaDB does not know the joins that Drizzle writes" : undefined,
      deadlocks: kind === "mysql",
    });
  }
}

// MySQL is asked for the last id on any connection of the pool, unless there is a transaction.
describe.skipIf(!databases.includes("mysql"))(
  "Drizzle on MariaDB, serial ids, no transactions",
  () => {
    it("refuses rather than to answer with somebody else's config", async () => {
      const open = () => openServer("mysql", "serial", false);
      const { api } = await createWorld({ name: "", ids: "serial", open });
      const tenants: string[] = [];
      for (let i = 0; i < 20; i++) {
        const { id } = await api.createTenant({ body: { name: `T ${i}`, slug: `tenant-${i}` } });
        tenants.push(id);
      }
      const answers = await Promise.allSettled(
        tenants.map((tenantId) => {
          const credentials = { clientId: `client-of-${tenantId}`, clientSecret: "secret" };
          return api.registerTenantOAuthConfig({
            body: { tenantId, providerId: "google", ...credentials },
          });
        }),
      );
      const wrong = answers.filter(
        (answer, index) =>
          answer.status === "fulfilled" &&
          (answer.value.tenantId !== tenants[index] ||
            answer.value.clientId !== `client-of-${tenants[index]}`),
      );
      expect(wrong).toEqual([]);
    });
  },
);
