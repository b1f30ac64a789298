import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { SqliteDialect } from "kysely";
import Database from "libsql";
import { Pool } from "pg";

/** PostgreSQL where `DATABASE_URL` says so, else a SQLite file that needs nothing but Node. */
export function openDatabase() {
  const { DATABASE_URL, DATA_DIR = ".data" } = process.env;
  if (DATABASE_URL) {
    const pool = new Pool({ connectionString: DATABASE_URL });
    // Without listeners, a database that goes away for a moment would end the process.
    const report = (error: Error) => console.error(error.message);
    pool.on("error", report).on("connect", (client) => client.on("error", report));
    return pool;
  }
  mkdirSync(DATA_DIR, { recursive: true });
  const database = new Database(join(DATA_DIR, "example.db"));
  database.pragma("journal_mode = WAL");
  database.pragma("busy_timeout = 5000");
  return {
    dialect: new SqliteDialect({ database }),
    type: "sqlite" as const,
    transaction: true,
  };
}

/** What is wrong with the database, and what to do about it. */
export function explainDatabaseError(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  const { DATABASE_URL } = process.env;
  if (!DATABASE_URL) return `The database cannot be prepared: ${message}`;
  const { host, pathname } = new URL(DATABASE_URL);
  const name = pathname.slice(1);
  if (code === "3D000") return `There is no database "${name}" yet. Create it: createdb ${name}`;
  if (code === "ECONNREFUSED" || code === "ENOTFOUND") {
    return `PostgreSQL cannot be reached at ${host} (DATABASE_URL).`;
  }
  return `PostgreSQL at ${host} cannot be used (DATABASE_URL): ${message}`;
}
