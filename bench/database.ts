import { randomBytes } from "node:crypto";
import { SqliteDialect } from "kysely";
import Database from "libsql";
import { Client, Pool } from "pg";

/** An empty database of its own for one instance. */
export interface BenchDatabase {
  // biome-ignore lint/suspicious/noExplicitAny: each driver has its own type, and better-auth takes them all
  option: any;
  /** The queries that reached it so far; unknown where nobody counts. */
  queries?: () => number;
  close(): Promise<void>;
}

export type DatabaseKind = "sqlite" | "postgres";

export async function createDatabase(kind: DatabaseKind): Promise<BenchDatabase> {
  return kind === "postgres" ? createPostgres() : createSqlite();
}

export function createSqlite() {
  const database = new Database(":memory:");
  const prepare = database.prepare.bind(database);
  let count = 0;
  database.prepare = (sql: string) => {
    if (!/^\s*(begin|commit|rollback)\b/i.test(sql)) count++;
    return prepare(sql);
  };
  return {
    database,
    queries: () => count,
    option: { dialect: new SqliteDialect({ database }), type: "sqlite", transaction: true },
    close: async () => void database.close(),
  };
}

async function createPostgres(): Promise<BenchDatabase> {
  const server = {
    host: process.env.PGHOST ?? "127.0.0.1",
    port: Number(process.env.PGPORT ?? 5432),
    user: process.env.PGUSER ?? "postgres",
    password: process.env.PGPASSWORD,
  };
  const name = `bench_${randomBytes(6).toString("hex")}`;
  const admin = new Client({ ...server, database: process.env.PGDATABASE ?? "test" });
  await admin.connect();
  await admin.query(`create database ${name}`);
  const pool = new Pool({ ...server, database: name });
  return {
    option: pool,
    close: async () => {
      await pool.end();
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
