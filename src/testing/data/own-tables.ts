import type { Untried } from "../findings";
import { modelFinder, type Subject } from "../instance/subject";
import type { IsolationOptions, Values } from "../options";
import { findQuery, type Opened, quoterFor } from "./query";
import { MOST } from "./rows";
import { messageOf } from "./texts";

/** Tables of migrations and of databases themselves. */
const FOREIGN = /^(sqlite_|kysely_|_prisma|__drizzle|_litestream|d1_|pg_|sql_)/;

const listIn = (schema: string) =>
  `select table_name as name from information_schema.tables where table_schema = ${schema} and table_type = 'BASE TABLE'`;

const LIST: Record<string, string> = {
  sqlite: "select name from sqlite_master where type = 'table'",
  postgres: listIn("current_schema()"),
  mysql: listIn("database()"),
};

export type OwnTables = Awaited<ReturnType<typeof openOwnTables>>;

/** The application's own tables: what is in better-auth's database besides its own, and what is given. */
export async function openOwnTables(subject: Subject, { tables }: IsolationOptions) {
  const given = typeof tables === "function" ? tables : undefined;
  const find = modelFinder(subject);
  const opened = await findQuery(subject, {});
  const wanted = (Array.isArray(tables) ? tables : []).filter((name) => !find(name));
  if (wanted.length && !opened) {
    throw new Error(
      `checkIsolation(): there is no way to read "${wanted.join('", "')}" by name. Pass a function: tables: async () => ({ ${wanted[0]}: rows })`,
    );
  }
  const untried: Untried[] = [];
  const names = opened ? await readableIn(opened, wanted, find, untried) : new Set<string>();
  const quoted = quoterFor(opened?.dialect === "mysql");

  /** Returns false where there is no way to. */
  async function write(sql: string, table: string, row: Values): Promise<boolean> {
    if (!opened || !names.has(table)) return false;
    // Some drivers run only statements that return something.
    const returning = ` returning ${quoted(Object.keys(row)[0] ?? "")}`;
    await opened.query(opened.dialect === "mysql" ? sql : sql + returning);
    return true;
  }

  return {
    untried,
    async read(): Promise<Record<string, Values[]>> {
      const rows: Record<string, Values[]> = {};
      for (const name of names) {
        rows[name] = (await opened?.query(`select * from ${quoted(name)}`)) ?? [];
      }
      return { ...rows, ...(await given?.()) };
    },
    remove(table: string, row: Values) {
      const isPlain = (value: unknown) =>
        value === null || typeof value === "string" || typeof value === "number";
      const known = Object.entries("id" in row ? { id: row.id } : row);
      const where = known.flatMap(([name, value]) =>
        isPlain(value) || name === "id" ? [`${quoted(name)} ${equals(value)}`] : [],
      );
      return write(`delete from ${quoted(table)} where ${where.join(" and ")}`, table, row);
    },
    putBack(table: string, row: Values) {
      const columns = Object.entries(row).filter(([, value]) => value !== null);
      const fields = columns.map(([name]) => quoted(name)).join(", ");
      const values = columns.map(([, value]) => literal(value)).join(", ");
      return write(`insert into ${quoted(table)} (${fields}) values (${values})`, table, row);
    },
    close: async () => opened?.close?.(),
  };
}

/** The tables that better-auth does not know. One that cannot be read is an error if it is wanted. */
async function readableIn(
  { query, dialect }: Opened,
  wanted: string[],
  find: (name: string) => string | undefined,
  untried: Untried[],
): Promise<Set<string>> {
  const list = LIST[dialect];
  const found = (list ? await query(list) : []).map((row) => String(row.name ?? row.NAME));
  const quoted = quoterFor(dialect === "mysql");
  const names = new Set([...wanted, ...found.filter((name) => !find(name) && !FOREIGN.test(name))]);
  for (const name of names) {
    const problem = await query(`select count(*) as many from ${quoted(name)}`).then(
      ([row]) => (Number(row?.many) > MOST ? `has more than ${MOST} rows` : undefined),
      (error) => `cannot be read: ${messageOf(error)}`,
    );
    if (!problem) continue;
    if (wanted.includes(name)) throw new Error(`checkIsolation(): "${name}" ${problem}`);
    names.delete(name);
    untried.push({ what: `table ${name}`, reason: `it ${problem}`, give: "a test database" });
  }
  return names;
}

const equals = (value: unknown) => (value === null ? "is null" : `= ${literal(value)}`);

function literal(value: unknown): string {
  if (["number", "bigint", "boolean"].includes(typeof value)) return String(value);
  const text = value instanceof Date ? value.toISOString() : value;
  const written = typeof text === "object" ? JSON.stringify(text) : String(text);
  return `'${written.replaceAll("'", "''")}'`;
}
