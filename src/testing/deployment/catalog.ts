import { type Opened, quoterFor } from "../data/query";
import type { Subject } from "../instance/subject";

type Row = Record<string, unknown>;
interface Column {
  name: string;
  nullable: boolean;
  generated: string;
  /** On MySQL and MariaDB: how texts are compared, and what a statement that changes it repeats. */
  collation: string;
  type: string;
  initial: string | undefined;
}

export interface Index {
  name: string;
  unique: boolean;
  /** Set where the index belongs to a constraint. */
  constraint: boolean;
  /** Covers a part of the rows only, or its creation has failed. */
  partial: boolean;
  predicate: string;
  /** In order. An expression has no column. */
  keys: { column: string; expression: string }[];
}

export type Table = { name: string; columns: Column[]; indexes: Index[] };

/** Tables, columns and indexes as the database itself describes them. */
export type Catalog = Awaited<ReturnType<typeof readCatalog>>;

/** One row for each column, and one for each key of an index. Casts: Prisma cannot read `name`. */
const STATEMENTS: Record<string, { columns: string; indexes: string }> = {
  sqlite: {
    columns: `select t.name as "table", c.name as name, c."notnull" = 0 as nullable,
        case when c.hidden in (2, 3) then t.sql end as generated
      from sqlite_master t join pragma_table_xinfo(t.name) c
      where t.type = 'table' and substr(t.name, 1, 4) <> '_cf_'`,
    indexes: `select t.name as "table", i.name as name, i."unique" as "unique",
        i.origin = 'u' as "constraint", i.partial as partial, k.name as "column",
        substr(s.sql, instr(s.sql, '(')) as expression, s.sql as predicate
      from sqlite_master t join pragma_index_list(t.name) i join pragma_index_xinfo(i.name) k
      left join sqlite_master s on s.type = 'index' and s.name = i.name
      where t.type = 'table' and substr(t.name, 1, 4) <> '_cf_' and k.key = 1
      order by i.name, k.seqno`,
  },
  postgres: {
    columns: `select table_name::text as "table", column_name::text as name,
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
      where t.relnamespace = current_schema()::regnamespace order by i.relname, k.n`,
  },
  mysql: {
    columns: `select table_name as \`table\`, column_name as name,
        is_nullable = 'YES' as nullable, generation_expression as generated,
        collation_name as collation, column_type as type, column_default as initial
      from information_schema.columns where table_schema = database()`,
    // MySQL has a column "expression" here. MariaDB has neither that nor such indexes.
    indexes: `select s.*, table_name as \`table\`, index_name as name, non_unique = 0 as \`unique\`,
        column_name as \`column\`
      from information_schema.statistics s where table_schema = database()
      order by index_name, seq_in_index`,
  },
};

/** Without a way to read, it knows the names that the configuration has. */
export async function readCatalog(subject: Subject, opened: Opened | undefined) {
  const { dialect = "", query, client } = opened ?? {};
  const statements = STATEMENTS[dialect];
  const read = async (sql = "") => (query && sql ? (await query(sql)).map(lowerCased) : []);
  const tables = toTables(await read(statements?.columns), await read(statements?.indexes));
  const nameOf = configuredNames(subject, client);
  const table = (model: string) =>
    findByName(tables, nameOf(model)) ?? findByName(tables, `${nameOf(model)}s`);
  const column = (model: string, field: string) =>
    findByName(table(model)?.columns ?? [], nameOf(model, field));
  const { type, provider } = (subject.ctx.adapter.options ?? {}) as Record<string, unknown>;
  const quote = quoterFor([dialect, type, provider].includes("mysql"));
  return {
    dialect,
    /** Whether the tables are where they were looked for: the schema of the connection. */
    isReadable: Boolean(table("user")),
    table,
    column,
    quote,
    /** Table and column as they are called in the database, in quotes. */
    namesOf: (model: string, field: string) => ({
      table: quote(table(model)?.name ?? nameOf(model)),
      column: quote(column(model, field)?.name ?? nameOf(model, field)),
      quote,
    }),
  };
}

/** Drizzle's proxy for SQLite returns values without names, which say nothing. */
const lowerCased = (row: Row | null): Row =>
  Object.fromEntries(Object.entries(row ?? {}).map(([key, value]) => [key.toLowerCase(), value]));

function toTables(columns: Row[], keys: Row[]): Table[] {
  const text = (value: unknown) => String(value ?? "");
  const isTrue = (value: unknown) => value === true || Number(value) === 1;
  const keysOf = new Map(groupBy(keys, "table"));
  return groupBy(columns, "table").map(([name, own]) => ({
    name,
    columns: own.map((row) => ({
      name: text(row.name),
      nullable: isTrue(row.nullable),
      generated: text(row.generated),
      collation: text(row.collation),
      type: text(row.type),
      initial: row.initial === null || row.initial === undefined ? undefined : text(row.initial),
    })),
    indexes: groupBy(keysOf.get(name) ?? [], "name").map(([name, own]) => ({
      name,
      unique: isTrue(own[0]?.unique),
      constraint: isTrue(own[0]?.constraint),
      partial: isTrue(own[0]?.partial),
      predicate: text(own[0]?.predicate),
      keys: own.map((row) => ({ column: text(row.column), expression: text(row.expression) })),
    })),
  }));
}

function groupBy(rows: Row[], key: string): [name: string, rows: Row[]][] {
  const names = new Set(rows.map((row) => String(row[key])));
  return [...names].map((name) => [name, rows.filter((row) => String(row[key]) === name)]);
}

/** By its name, or as Drizzle and Prisma mostly write it: `tenant_id` for `tenantId`. */
function findByName<T extends { name: string }>(list: T[], wanted: string): T | undefined {
  const plain = (name: string) => name.replaceAll("_", "").toLowerCase();
  const exact = list.find(({ name }) => name === wanted);
  return exact ?? list.find(({ name }) => plain(name) === plain(wanted));
}

const DRIZZLE_NAME: unique symbol = Symbol.for("drizzle:Name") as never;
type Named = { dbName?: string | null };
type PrismaModel = Named & { fields: (Named & { name: string })[] };
type DrizzleTable = { [column: string]: { name?: string } } & { [DRIZZLE_NAME]?: string };

/** Names as better-auth has them, and as a schema of Drizzle or a client of Prisma maps them. */
function configuredNames({ ctx }: Subject, client: Opened["client"]) {
  const options = ctx.adapter.options as { schema?: object } | undefined;
  const schema = (options?.schema ?? client?._?.fullSchema ?? {}) as Record<string, DrizzleTable>;
  const models = (client?._runtimeDataModel?.models ?? {}) as Record<string, PrismaModel>;
  return (model: string, field?: string): string => {
    const { modelName = model, fields } = ctx.tables[model] ?? {};
    const drizzle = schema[modelName] ?? schema[`${modelName}s`];
    const prisma = models[modelName.charAt(0).toUpperCase() + modelName.slice(1)];
    if (field === undefined) return drizzle?.[DRIZZLE_NAME] ?? prisma?.dbName ?? modelName;
    const name = fields?.[field]?.fieldName ?? field;
    const mapped = prisma?.fields.find((one) => one.name === name)?.dbName;
    return drizzle?.[name]?.name ?? mapped ?? name;
  };
}
