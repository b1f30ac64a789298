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
    // Without a listener, a database that goes away for a moment would end the process.
    pool.on("error", (error) => console.error(error.message));
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
