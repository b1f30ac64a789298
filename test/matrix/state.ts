import { isDeepStrictEqual } from "node:util";
import type { TestDatabase } from "../support/database";
import type { Side, SideName } from "./sides";

type Row = Record<string, unknown>;
type Tables = Record<string, Row[]>;

/** What is in the database, who owns it, and the way back to it. */
export async function watchDatabase(database: TestDatabase, sides: Side[]) {
  const { query } = database;
  const tables = (
    await query("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
  ).map(({ name }) => String(name));
  // Foreign keys would delete rows in other tables while one is put back.
  await query("pragma foreign_keys = off");
  const before: Tables = {};
  for (const table of tables) before[table] = await rowsIn(database, table);
  const rowsOf = createOwnership(before, sides);
  const writes = await noteWrites(database, tables);

  /** The rows of the sides that a request has changed; undoes whatever it did. */
  async function changesOf(names: SideName[]): Promise<string[]> {
    const found: string[] = [];
    for (const table of await writes.tables()) {
      const [was = [], is] = [before[table], await rowsIn(database, table)];
      for (const side of names) {
        const [own, now] = [rowsOf(was, side), rowsOf(is, side)];
        if (!isDeepStrictEqual(own, now))
          found.push(`${table} of ${side}: ${difference(own, now)}`);
      }
      await restore(database, table, was);
    }
    await writes.forget();
    return found;
  }

  return {
    userIdsOf: (side: SideName) => rowsOf(before.user ?? [], side).map(({ id }) => String(id)),

    textsOf: (side: SideName): string[] =>
      Object.values(before)
        .flatMap((rows) => rowsOf(rows, side).flatMap((row) => Object.values(row)))
        .filter((value) => typeof value === "string"),

    changesOf,

    /** Without a table there is nothing to do. */
    empty: (table: string) => (before[table] ? restore(database, table, []) : undefined),
  };
}

async function rowsIn({ query, quote }: TestDatabase, table: string): Promise<Row[]> {
  const rows = await query(`select * from ${quote(table)} order by 1`);
  // When a key was last used is bookkeeping.
  const bookkeeping = { lastRequest: null, updatedAt: "" };
  return table === "apikey" ? rows.map((row) => ({ ...row, ...bookkeeping })) : rows;
}

/** The database itself notes which tables are written to: reading all of them takes long. */
async function noteWrites({ query, quote }: TestDatabase, tables: string[]) {
  await query("create temp table written (name text)");
  for (const table of tables) {
    for (const event of ["insert", "update", "delete"]) {
      await query(
        `create temp trigger ${quote(`${event} ${table}`)} after ${event} on main.${quote(table)} begin insert into written values ('${table}'); end`,
      );
    }
  }
  return {
    tables: async () =>
      (await query("select distinct name from temp.written")).map(({ name }) => String(name)),
    forget: () => query("delete from temp.written"),
  };
}

async function restore({ query, quote }: TestDatabase, table: string, rows: Row[]) {
  await query(`delete from ${quote(table)}`);
  const [first] = rows;
  if (!first) return;
  const columns = Object.keys(first);
  const places = `(${columns.map(() => "?").join(", ")})`;
  await query(
    `insert into ${quote(table)} (${columns.map(quote).join(", ")}) values ${rows.map(() => places).join(", ")}`,
    rows.flatMap((row) => Object.values(row)),
  );
}

/** Tells the rows of a side: by their tenant, or by the user or organization they belong to. */
function createOwnership(before: Tables, sides: Side[]) {
  const sideOfTenant = new Map(sides.map(({ name, tenantId }) => [tenantId ?? "", name]));
  const owners = new Map<string, SideName>();
  const own = (table: string, owner: (row: Row) => SideName | undefined, key = "id") => {
    for (const row of before[table] ?? []) {
      const side = owner(row);
      if (side) owners.set(String(row[key]), side);
    }
  };
  own("user", ({ tenantId }) => sideOfTenant.get(String(tenantId)));
  own("tenant", ({ id }) => sideOfTenant.get(String(id)));
  own("member", ({ userId }) => owners.get(String(userId)));
  own("member", ({ userId }) => owners.get(String(userId)), "organizationId");
  for (const { name, things } of sides) {
    const codes = [things.user_code, things.device_code];
    own("deviceCode", ({ userCode, deviceCode }) =>
      codes.includes(String(userCode)) || codes.includes(String(deviceCode)) ? name : undefined,
    );
  }

  function ownerOf(row: Row): SideName | undefined {
    if (typeof row.tenantId === "string") return sideOfTenant.get(row.tenantId);
    const keys = [row.id, row.userId, row.referenceId, row.inviterId, row.organizationId];
    return keys.map((key) => owners.get(String(key))).find((owner) => owner !== undefined);
  }
  return (rows: Row[], side: SideName) => rows.filter((row) => ownerOf(row) === side);
}

function difference(was: Row[], is: Row[]): string {
  const gone = was.filter(({ id }) => !is.some((row) => row.id === id)).length;
  const come = is.filter(({ id }) => !was.some((row) => row.id === id)).length;
  const columns = was.flatMap((row) => {
    const now = is.find(({ id }) => id === row.id);
    return now ? Object.keys(row).filter((key) => !isDeepStrictEqual(row[key], now[key])) : [];
  });
  return `${gone} gone, ${come} new, changed: ${[...new Set(columns)].join(" ") || "nothing"}`;
}
