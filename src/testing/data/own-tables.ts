import type { Untried } from "../findings";
import { modelFinder, type Subject } from "../instance/subject";
import type { IsolationOptions, Values } from "../options";
import { findQuery, type Opened } from "./query";

/** More than a table of a test database has. */
const MOST = 5_000;

/** Tables of migrations and of databases themselves. */
const FOREIGN = /^(sqlite_|kysely_|_prisma|__drizzle|_litestream|d1_|pg_|sql_)/;

const LIST: Record<string, string> = {
  sqlite: "select name from sqlite_master where type = 'table'",
  postgres:
    "select table_name as name from information_schema.tables where table_schema = current_schema() and table_type = 'BASE TABLE'",
  mysql:
    "select table_name as name from information_schema.tables where table_schema = database() and table_type = 'BASE TABLE'",
};

/** The application's own tables: what is in better-auth's database besides its own, and what is given. */
export interface OwnTables {
  read(): Promise<Record<string, Values[]>>;
  /** Deletes a row; false where there is no way to. */
  remove(table: string, row: Values): Promise<boolean>;
  /** Puts a deleted row back, where there is a way to. */
  putBack(table: string, row: Values): Promise<void>;
  untried: Untried[];
  close(): Promise<void>;
}

export async function openOwnTables(
  subject: Subject,
  { tables }: IsolationOptions,
): Promise<OwnTables> {
  const given = typeof tables === "function" ? tables : undefined;
  const named = Array.isArray(tables) ? tables : [];
  const find = modelFinder(subject);
  const opened = await findQuery(subject, {});
  const wanted = named.filter((name) => !find(name));
  if (wanted.length && !opened) {
    throw new Error(
      `checkIsolation(): there is no way to read "${wanted.join('", "')}" by name. Pass a function: tables: async () => ({ ${wanted[0]}: rows })`,
    );
  }
  const found = opened ? await tablesIn(opened) : [];
  const names = new Set([...wanted, ...found.filter((name) => !find(name) && !FOREIGN.test(name))]);
  const untried: Untried[] = [];
  for (const name of opened ? names : []) {
    const problem = await problemOf(opened as Opened, name);
    if (!problem) continue;
    if (wanted.includes(name)) throw new Error(`checkIsolation(): "${name}" ${problem}`);
    names.delete(name);
    untried.push({ what: `table ${name}`, reason: `it ${problem}`, give: "a test database" });
  }

  return {
    untried,
    async read() {
      const rows: Record<string, Values[]> = {};
      for (const name of opened ? names : []) {
        rows[name] = (await opened?.query(`select * from ${quoted(opened, name)}`)) ?? [];
      }
      return { ...rows, ...(await given?.()) };
    },
    async remove(table, row) {
      if (!opened || !names.has(table)) return false;
      const isPlain = ([, value]: [string, unknown]) =>
        value === null || typeof value === "string" || typeof value === "number";
      const columns = "id" in row ? [["id", row.id] as const] : Object.entries(row).filter(isPlain);
      const where = columns.map(([name, value]) => `${quoted(opened, name)} ${equals(value)}`);
      const [column = ""] = Object.keys(row);
      const returning = opened.dialect === "mysql" ? "" : ` returning ${quoted(opened, column)}`;
      const from = `delete from ${quoted(opened, table)}`;
      await opened.query(`${from} where ${where.join(" and ")}${returning}`);
      return true;
    },
    async putBack(table, row) {
      if (!opened || !names.has(table)) return;
      const columns = Object.entries(row).filter(([, value]) => value !== null);
      const fields = columns.map(([name]) => quoted(opened, name)).join(", ");
      const values = columns.map(([, value]) => literal(value)).join(", ");
      const [column = ""] = Object.keys(row);
      const returning = opened.dialect === "mysql" ? "" : ` returning ${quoted(opened, column)}`;
      const into = `insert into ${quoted(opened, table)} (${fields})`;
      await opened.query(`${into} values (${values})${returning}`);
    },
    close: async () => opened?.close(),
  };
}

async function tablesIn({ query, dialect }: Opened): Promise<string[]> {
  const list = LIST[dialect];
  const rows = list ? await query(list) : [];
  return rows.map((row) => String(row.name ?? row.NAME));
}

async function problemOf(opened: Opened, name: string): Promise<string | undefined> {
  try {
    const [row] = await opened.query(`select count(*) as many from ${quoted(opened, name)}`);
    return Number(row?.many) > MOST ? `has more than ${MOST} rows` : undefined;
  } catch (error) {
    return `cannot be read: ${error instanceof Error ? error.message : error}`;
  }
}

const equals = (value: unknown) => (value === null ? "is null" : `= ${literal(value)}`);

function literal(value: unknown): string {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value === "boolean") return value ? "true" : "false";
  const text = value instanceof Date ? value.toISOString() : value;
  const written = typeof text === "object" ? JSON.stringify(text) : String(text);
  return `'${written.replaceAll("'", "''")}'`;
}

function quoted({ dialect }: Opened, name: string): string {
  const mark = dialect === "mysql" ? "`" : '"';
  return mark + name.replaceAll(mark, mark + mark) + mark;
}
