import type { Opened } from "../data/query";
import type { Subject } from "../instance/subject";

interface Column {
  name: string;
  nullable: boolean;
  /** The expression of a generated column. */
  generated: string;
}

export interface Index {
  name: string;
  unique: boolean;
  /** Set where the index belongs to a constraint. */
  constraint: boolean;
  /** Covers a part of the rows only, or its creation has failed. */
  partial: boolean;
  predicate: string;
  /** The columns in order; an expression has no column. */
  keys: { column: string | undefined; expression: string }[];
}

export interface Table {
  name: string;
  columns: Column[];
  indexes: Index[];
}

/** Tables, columns and indexes as the database itself describes them. */
export interface Catalog {
  dialect: string;
  /** The table of a model; undefined if it is missing. */
  table(model: string): Table | undefined;
  /** The column of a field; undefined if it is missing. */
  column(model: string, field: string): Column | undefined;
  quote(name: string): string;
}

type Row = Record<string, unknown>;

/** One row for each column, and one for each key of an index. Casts: Prisma cannot read `name`. */
const STATEMENTS: Record<string, { columns: string; indexes: string }> = {
  sqlite: {
    columns: `select t.name as "table", c.name as "column", c."notnull" = 0 as nullable,
        case when c.hidden in (2, 3) then t.sql end as generated
      from sqlite_master t, pragma_table_xinfo(t.name) c
      where t.type = 'table' and substr(t.name, 1, 4) <> '_cf_' order by t.name, c.cid`,
    indexes: `select t.name as "table", i.name as name, i."unique" as "unique",
        i.origin = 'u' as "constraint", i.partial as partial, k.name as "column",
        (select sql from sqlite_master where type = 'index' and name = i.name) as expression
      from sqlite_master t, pragma_index_list(t.name) i, pragma_index_xinfo(i.name) k
      where t.type = 'table' and substr(t.name, 1, 4) <> '_cf_' and k.key = 1
      order by t.name, i.name, k.seqno`,
  },
  postgres: {
    columns: `select table_name::text as "table", column_name::text as "column",
        is_nullable = 'YES' as nullable, generation_expression::text as generated
      from information_schema.columns where table_schema = current_schema()`,
    indexes: `select t.relname::text as "table", i.relname::text as name, x.indisunique as "unique",
        exists (select 1 from pg_constraint where conindid = x.indexrelid) as "constraint",
        x.indpred is not null or not x.indisvalid as partial, a.attname::text as "column",
        pg_get_indexdef(x.indexrelid, k.n, true) as expression,
        pg_get_expr(x.indpred, x.indrelid) as predicate
      from pg_index x
      join pg_class t on t.oid = x.indrelid
      join pg_class i on i.oid = x.indexrelid
      cross join lateral generate_series(1, x.indnkeyatts) as k(n)
      left join pg_attribute a on a.attrelid = t.oid and a.attnum = x.indkey[k.n - 1]
      where t.relnamespace = current_schema()::regnamespace order by t.relname, i.relname, k.n`,
  },
  mysql: {
    columns: `select table_name as \`table\`, column_name as \`column\`,
        is_nullable = 'YES' as nullable, generation_expression as generated
      from information_schema.columns where table_schema = database()`,
    // MySQL has a column \`expression\` here, MariaDB has neither the column nor such indexes.
    indexes: `select s.*, table_name as \`table\`, index_name as name, non_unique = 0 as \`unique\`,
        column_name as \`column\`
      from information_schema.statistics s where table_schema = database()
      order by table_name, index_name, seq_in_index`,
  },
};

/** Reads the catalog; undefined for a database whose catalog is not known here. */
export async function readCatalog(
  subject: Subject,
  { query, dialect, client }: Opened,
): Promise<Catalog | undefined> {
  const statements = STATEMENTS[dialect];
  if (!statements) return undefined;
  const read = async (sql: string) => (await query(sql)).map(lowerCased);
  const tables = new Map<string, Table>();
  for (const row of await read(statements.columns)) {
    const name = String(row.table);
    const table = tables.get(name) ?? { name, columns: [], indexes: [] };
    tables.set(name, table);
    const column = { name: String(row.column), nullable: isTrue(row.nullable) };
    const generated =
      dialect === "sqlite" ? definitionOf(column.name, row.generated) : row.generated;
    table.columns.push({ ...column, generated: String(generated ?? "") });
  }
  for (const row of await read(statements.indexes)) addKey(tables.get(String(row.table)), row);

  const names = namesOf(subject, client);
  const table = (model: string) => {
    const name = names.table(model);
    return tables.get(name) ?? findAlike([...tables.values()], name, `${name}s`);
  };
  const column = (model: string, field: string) => {
    const columns = table(model)?.columns ?? [];
    const name = names.column(model, field);
    return columns.find((column) => column.name === name) ?? findAlike(columns, name);
  };
  const mark = dialect === "mysql" ? "`" : '"';
  const quote = (name: string) => mark + name.replaceAll(mark, mark + mark) + mark;
  return { dialect, table, column, quote };
}

const lowerCased = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).map(([key, value]) => [key.toLowerCase(), value]));

const isTrue = (value: unknown) => value === true || value === "t" || Number(value) === 1;

function addKey(table: Table | undefined, row: Row) {
  const known = table?.indexes.find(({ name }) => name === row.name);
  // SQLite has the whole statement, with the predicate of a partial index at its end.
  const text = String(row.expression ?? "");
  const where = text.search(/\swhere\s/i);
  const index = known ?? {
    name: String(row.name),
    unique: isTrue(row.unique),
    constraint: isTrue(row.constraint),
    partial: isTrue(row.partial),
    predicate: String(row.predicate ?? (where < 0 ? "" : text.slice(where))),
    keys: [],
  };
  const start = /^create\s/i.test(text) ? text.indexOf("(") : 0;
  const expression = text.slice(start, where < 0 ? undefined : where);
  index.keys.push({ column: (row.column as string | null) ?? undefined, expression });
  if (!known) table?.indexes.push(index);
}

/** The definition of a column in a `create table` of SQLite: up to the next comma outside brackets. */
function definitionOf(column: string, statement: unknown): string {
  if (typeof statement !== "string") return "";
  const body = statement.slice(statement.indexOf("(") + 1);
  let depth = 0;
  let definition = "";
  for (const character of `${body},`) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (character !== "," || depth > 0) definition += character;
    else if (wordsOf(definition)[0] === column) return definition.replace(column, "");
    else definition = "";
  }
  return "";
}

/** The names in a piece of SQL. */
export const wordsOf = (sql: string): string[] => sql.match(/[\p{L}\p{N}_$]+/gu) ?? [];

/** Drizzle and Prisma mostly write `tenant_id` where better-auth says `tenantId`. */
function findAlike<T extends { name: string }>(list: T[], ...names: string[]): T | undefined {
  const plain = (name: string) => name.replaceAll("_", "").toLowerCase();
  return list.find(({ name }) => names.some((other) => plain(name) === plain(other)));
}

type PrismaNames = { dbName?: string | null; fields: { name: string; dbName?: string | null }[] };
type DrizzleTable = Record<string | symbol, { name?: string }> | undefined;

/** Names as better-auth has them, and as a schema of Drizzle or a client of Prisma maps them. */
function namesOf({ ctx }: Subject, client: Opened["client"]) {
  const { schema = client?._?.fullSchema ?? {} } = (ctx.adapter.options ?? {}) as {
    schema?: Record<string, unknown>;
  };
  const models = (client?._runtimeDataModel?.models ?? {}) as Record<string, PrismaNames>;
  const nameOf = (model: string) => ctx.tables[model]?.modelName ?? model;
  const fieldOf = (model: string, field: string) =>
    ctx.tables[model]?.fields[field]?.fieldName ?? field;
  const drizzle = (model: string) =>
    (schema[nameOf(model)] ?? schema[`${nameOf(model)}s`]) as DrizzleTable;
  const prisma = (model: string) => {
    const name = nameOf(model);
    return models[name] ?? models[name.charAt(0).toUpperCase() + name.slice(1)];
  };
  return {
    table: (model: string): string => {
      const own = drizzle(model)?.[Symbol.for("drizzle:Name")];
      return typeof own === "string" ? own : (prisma(model)?.dbName ?? nameOf(model));
    },
    column: (model: string, field: string): string => {
      const name = fieldOf(model, field);
      const mapped = prisma(model)?.fields.find((one) => one.name === name)?.dbName;
      return drizzle(model)?.[name]?.name ?? mapped ?? name;
    },
  };
}
