import { isDeepStrictEqual } from "node:util";
import type { TestDatabase } from "../support/database";
import type { Side, SideName } from "./sides";

type Row = Record<string, unknown>;
type Tables = Record<string, Row[]>;

/** What is in the database, who owns it, and the way back to it. */
export async function watchDatabase(database: TestDatabase, sides: Side[]) {
  const { query, quote } = database;
  const tables = (
    await query("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
  ).map(({ name }) => String(name));
  // Foreign keys would delete rows in other tables while one is put back.
  await query("pragma foreign_keys = off");

  const sideOfTenant = new Map(sides.map(({ name, tenantId }) => [tenantId ?? "", name]));
  const dump = async (): Promise<Tables> => {
    const content: Tables = {};
    for (const table of tables) {
      content[table] = await query(`select * from ${quote(table)} order by 1`);
    }
    // When a key was last used is bookkeeping.
    for (const row of content.apikey ?? [])
      Object.assign(row, { lastRequest: null, updatedAt: "" });
    return content;
  };
  const changes = async () => Number((await query("select total_changes() as n"))[0]?.n);

  const before = await dump();
  const owners = new Map<string, SideName>();
  const own = (rows: Row[] | undefined, owner: (row: Row) => SideName | undefined) => {
    for (const row of rows ?? []) {
      const side = owner(row);
      if (side) owners.set(String(row.id), side);
    }
  };
  own(before.user, ({ tenantId }) => sideOfTenant.get(String(tenantId)));
  own(before.tenant, ({ id }) => sideOfTenant.get(String(id)));
  own(before.member, ({ userId }) => owners.get(String(userId)));
  for (const { userId, organizationId } of before.member ?? []) {
    const side = owners.get(String(userId));
    if (side) owners.set(String(organizationId), side);
  }
  for (const { name, things } of sides) {
    const codes = [things.user_code, things.device_code];
    own(before.deviceCode, ({ userCode, deviceCode }) =>
      codes.includes(String(userCode)) || codes.includes(String(deviceCode)) ? name : undefined,
    );
  }

  /** Whose row it is: by its tenant, or by the user or organization that it belongs to. */
  function ownerOf(row: Row): SideName | undefined {
    if (typeof row.tenantId === "string") return sideOfTenant.get(row.tenantId);
    const keys = [row.id, row.userId, row.referenceId, row.inviterId, row.organizationId];
    for (const key of keys) {
      const owner = owners.get(String(key));
      if (owner) return owner;
    }
    return undefined;
  }

  const rowsOf = (rows: Row[] | undefined, side: SideName) =>
    (rows ?? []).filter((row) => ownerOf(row) === side);

  const texts = (side: SideName) =>
    new Set(
      tables.flatMap((table) =>
        rowsOf(before[table], side).flatMap((row) => Object.values(row).filter(isSecret)),
      ),
    );
  /** The texts that are found on one side only: its ids, tokens, names. */
  const secrets = Object.fromEntries(
    sides.map(({ name }) => {
      const others = sides.filter((side) => side.name !== name).map((side) => texts(side.name));
      return [name, [...texts(name)].filter((text) => !others.some((other) => other.has(text)))];
    }),
  ) as Record<SideName, string[]>;

  let clean = await changes();

  return {
    before,

    secrets,

    /** The rows of the sides that a request has changed; undoes whatever it did. */
    async changesOf(names: SideName[]): Promise<string[]> {
      if ((await changes()) === clean) return [];
      const after = await dump();
      const found: string[] = [];
      for (const table of tables) {
        if (isDeepStrictEqual(before[table], after[table])) continue;
        for (const side of names) {
          const [was, is] = [rowsOf(before[table], side), rowsOf(after[table], side)];
          if (!isDeepStrictEqual(was, is))
            found.push(`${table} of ${side}: ${difference(was, is)}`);
        }
        await restore(table, before[table] ?? []);
      }
      clean = await changes();
      return found;
    },
  };

  async function restore(table: string, rows: Row[]) {
    await query(`delete from ${quote(table)}`);
    for (const row of rows) {
      const columns = Object.keys(row);
      await query(
        `insert into ${quote(table)} (${columns.map(quote).join(", ")}) values (${columns.map(() => "?").join(", ")})`,
        Object.values(row),
      );
    }
  }
}

/** Dates and short words are on every side, or say nothing. */
function isSecret(value: unknown): value is string {
  return typeof value === "string" && value.length >= 8 && !/^\d{4}-\d\d-\d\dT/.test(value);
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
