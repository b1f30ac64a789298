import { memoryAdapter } from "better-auth/adapters/memory";
import { getAuthTables } from "better-auth/db";
import { admin } from "better-auth/plugins";
import { tenantAuth } from "../../src/index";
import { behaves } from "./behaviour";
import { plugins, type Row, type Store } from "./store";

async function open(): Promise<Store> {
  const models = Object.keys(getAuthTables({ plugins: [tenantAuth(), admin(), ...plugins()] }));
  const tables: Record<string, Row[]> = Object.fromEntries(models.map((model) => [model, []]));
  return {
    option: memoryAdapter(tables),
    migrate: false,
    rows: async (model) => tables[model] ?? [],
    close: async () => {},
  };
}

// A UUID is a text like any other here.
for (const ids of ["text", "serial"] as const) {
  behaves({
    name: "Memory",
    ids,
    open,
    crowd: 10,
    noUniqueValues: "better-auth's memory adapter has no unique columns",
    // It counts the rows that are left.
    reusesIds: ids === "serial",
  });
}
