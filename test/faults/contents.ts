import { symmetricDecrypt } from "better-auth/crypto";
import type { TestDatabase } from "../support/database";
import type { Instance } from "../support/instance";

export const CORE_TABLES = ["user", "session", "account", "verification"];
export const TABLES = ["tenant", "tenantOauthConfig", ...CORE_TABLES];

type Row = Record<string, unknown>;

/** Everything that is in the database, row by row, under "table id". */
export async function contentsOf(database: TestDatabase, tables: string[]) {
  const contents = new Map<string, Row>();
  for (const table of tables) {
    for (const row of await database.query(`select * from ${database.quote(table)}`)) {
      contents.set(`${table} ${row.id}`, row);
    }
  }
  return contents;
}
type Contents = Awaited<ReturnType<typeof contentsOf>>;

/**
 * What has changed, in words that are the same for every run of the same flow: ids say of which
 * table they are, random values and times only whether they are there, and credentials are in
 * clear.
 */
export async function difference(
  secretConfig: Instance["context"]["secretConfig"],
  before: Contents,
  after: Contents,
): Promise<string[]> {
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  const tableOf = new Map(keys.map((key) => key.split(" ").reverse() as [string, string]));

  async function describe(key: string, row: Row | undefined) {
    if (!row) return "nothing";
    const words = await Promise.all(
      Object.entries(row).map(async ([column, value]) => {
        const [table] = key.split(" ");
        if (table === "tenantOauthConfig" && /^client/.test(column)) {
          return [column, await symmetricDecrypt({ key: secretConfig, data: `${value}` })];
        }
        if (value === null) return [column, null];
        if (tableOf.has(String(value))) return [column, tableOf.get(String(value))];
        const random = value instanceof Date || /At$|token|value|identifier|slug/i.test(column);
        return [column, random ? "..." : value];
      }),
    );
    return JSON.stringify(Object.fromEntries(words));
  }

  const changes = await Promise.all(
    keys.map(async (key) => {
      const [was, is] = [before.get(key), after.get(key)];
      if (JSON.stringify(was) === JSON.stringify(is)) return [];
      return [`${key.split(" ")[0]}: ${await describe(key, was)} -> ${await describe(key, is)}`];
    }),
  );
  return changes.flat().sort();
}

/** The same in few words: "account created, user created". */
export function inShort(changes: string[]): string {
  const verb = (change: string) =>
    /: nothing ->/.test(change) ? "created" : /-> nothing$/.test(change) ? "deleted" : "changed";
  return changes.map((change) => `${change.split(":")[0]} ${verb(change)}`).join(", ");
}

/** The tables that still have something of a tenant. */
export async function leftOf({ database, context, rows }: Instance, tenantId: string) {
  const left: string[] = [];
  for (const table of TABLES) {
    // With secondary storage there are fewer tables.
    if (!context.tables[table]) continue;
    const column = database.quote(table === "tenant" ? "id" : "tenantId");
    if (await rows(table, `${column} = ?`, [tenantId])) left.push(table);
  }
  return left;
}
