import type { BetterAuthOptions } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { getAuthTables } from "better-auth/db";
import type { DBAdapter } from "better-auth/types";
import type { TestDatabase } from "../support/database";

export type Row = Record<string, unknown>;

/** better-auth's memory adapter: no foreign keys, no unique columns, and a look inside. */
export function createMemory(wrap: (adapter: DBAdapter) => DBAdapter = (adapter) => adapter) {
  const tables: Record<string, Row[]> = {};
  const make = memoryAdapter(tables);
  const open = (options: BetterAuthOptions) => {
    for (const [model, { modelName }] of Object.entries(getAuthTables(options))) {
      tables[modelName] ??= [];
      tables[model] ??= tables[modelName];
    }
    return wrap(make(options));
  };
  const database: TestDatabase = {
    kind: "sqlite",
    option: open,
    query: async () => {
      throw new Error("There is no SQL behind the memory adapter");
    },
    quote: String,
    statements: [],
    close: async () => {},
  };
  return { tables, database };
}
