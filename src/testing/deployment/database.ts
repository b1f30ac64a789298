import type { BetterAuthOptions } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { type DeploymentOptions, findQuery, type Query } from "../data/query";
import type { Subject } from "../instance/subject";
import type { Checked, Finding } from "./findings";

/** What is wrong with tables and indexes, whatever is in them. */
export async function databaseFindings(
  subject: Subject,
  options: DeploymentOptions,
): Promise<Checked> {
  const migrations = await migrationFindings(subject);
  const opened = await findQuery(subject, options);
  if (!opened) {
    const skipped = "the unique index on the e-mail, statistics: give `query` and `dialect`";
    return { findings: migrations, skipped: [skipped] };
  }
  const { query, dialect, close } = opened;
  try {
    const findings = [
      ...migrations,
      ...(await emailIndexFindings(subject, query, dialect)),
      ...(dialect === "sqlite" ? await statisticsFinding(query) : []),
    ];
    return { findings };
  } finally {
    await close();
  }
}

/** What better-auth's own migrations would still do, or refuse to do. */
async function migrationFindings({ ctx, options }: Subject): Promise<Finding[]> {
  if (ctx.adapter.id !== "kysely") return [];
  try {
    return await plannedFindings(options as BetterAuthOptions);
  } catch (error) {
    return [
      {
        id: "migrations-refused",
        found: error instanceof Error ? error.message : String(error),
        meaning: "better-auth cannot tell what is missing, and its migrations would not run.",
        mend: "Do as the message says, and run this check again.",
      },
    ];
  }
}

async function plannedFindings(options: BetterAuthOptions): Promise<Finding[]> {
  const plan = await getMigrations(options, { throwOnUnsafe: false });
  const { toBeCreated, toBeAdded, toBeAddedIndexes, compileMigrations } = plan;
  const columns = [...toBeCreated, ...toBeAdded].map(
    ({ table, fields }) => `${table} (${Object.keys(fields).join(", ")})`,
  );
  const indexes = toBeAddedIndexes.map(
    ({ table, index }) => `${table} (${index.columns.join(", ")})`,
  );
  if (!columns.length && !indexes.length) return [];
  const mend = await compileMigrations();
  const isColumn = columns.length > 0;
  return [
    {
      id: isColumn ? "missing-column" : "missing-index",
      found: `migrations have not run: ${[...columns, ...indexes].join("; ")}`,
      meaning: isColumn
        ? "Requests fail, because a table or a column is not there."
        : "Look-ups go through whole tables, and a unique index that is missing lets the same e-mail into a tenant twice.",
      mend,
    },
  ];
}

interface Index {
  name: string;
  /** Set where the index belongs to a constraint. */
  constraint: boolean;
}

/** The index that better-auth had before there were tenants. */
async function emailIndexFindings(
  { ctx, tenantOptions }: Subject,
  query: Query,
  dialect: string,
): Promise<Finding[]> {
  if (tenantOptions.keepEmailGloballyUnique) return [];
  const table = ctx.tables.user?.modelName ?? "user";
  const column = ctx.tables.user?.fields.email?.fieldName ?? "email";
  const indexes = await uniqueIndexes(query, dialect, table, column);
  return indexes.map((index) => ({
    id: "email-index",
    found: `"${index.name}" keeps the e-mail unique in all of "${table}"`,
    meaning:
      "Somebody who has an account at one tenant, or on the platform, cannot sign up at another.",
    mend: dropStatement(dialect, table, index),
  }));
}

/** The unique indexes on one column alone. */
async function uniqueIndexes(
  query: Query,
  dialect: string,
  table: string,
  column: string,
): Promise<Index[]> {
  const rows = await query(INDEXES[dialect]?.(table) ?? "");
  const named = groupByName(rows);
  return [...named].flatMap(([name, of]) => {
    const [only] = of;
    if (of.length !== 1 || String(only?.column) !== column) return [];
    return [{ name, constraint: Boolean(Number(only?.constraint)) }];
  });
}

function groupByName(rows: Record<string, unknown>[]) {
  const groups = new Map<string, Record<string, unknown>[]>();
  for (const row of rows) {
    const name = String(row.name);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return groups;
}

const text = (value: string) => `'${value.replaceAll("'", "''")}'`;

/** One row for each column of a unique index that is not the primary key. */
const INDEXES: Record<string, (table: string) => string> = {
  sqlite: (table) =>
    `select list.name as name, info.name as "column", list.origin = 'u' as "constraint"
     from pragma_index_list(${text(table)}) list, pragma_index_info(list.name) info
     where list."unique" = 1 and list.origin <> 'pk'`,
  postgres: (table) =>
    `select index_class.relname as name, attribute.attname as "column",
       (select count(*) from pg_constraint where conindid = pg_index.indexrelid) as "constraint"
     from pg_index
     join pg_class index_class on index_class.oid = pg_index.indexrelid
     join pg_class table_class on table_class.oid = pg_index.indrelid
     join pg_attribute attribute on attribute.attrelid = table_class.oid
       and attribute.attnum = any(pg_index.indkey)
     where table_class.relname = ${text(table)} and table_class.relnamespace = current_schema()::regnamespace
       and pg_index.indisunique and not pg_index.indisprimary`,
  mysql: (table) =>
    `select index_name as name, column_name as \`column\`, 0 as \`constraint\`
     from information_schema.statistics
     where table_schema = database() and table_name = ${text(table)}
       and non_unique = 0 and index_name <> 'PRIMARY'`,
};

function dropStatement(dialect: string, table: string, { name, constraint }: Index): string {
  if (dialect === "mysql") return `alter table \`${table}\` drop index \`${name}\`;`;
  if (dialect === "postgres" && constraint) {
    return `alter table "${table}" drop constraint "${name}";`;
  }
  if (!constraint) return `drop index "${name}";`;
  return [
    "-- SQLite cannot drop the index of a constraint: the table has to be copied.",
    `-- See "SQLite" in docs/adding.md for the statements.`,
  ].join("\n");
}

/** Without them SQLite guesses, and guesses that few rows have the same e-mail. */
async function statisticsFinding(query: Query): Promise<Finding[]> {
  const [row] = await query("select count(*) as n from sqlite_master where name = 'sqlite_stat1'");
  if (Number(row?.n) > 0) return [];
  return [
    {
      id: "no-statistics",
      found: "SQLite has no statistics of this database",
      meaning:
        "With many tenants, look-ups may take an index that leads through all of a tenant's rows.",
      mend: "analyze;",
    },
  ];
}
