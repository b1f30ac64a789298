import type { Query } from "../data/query";
import type { Subject } from "../instance/subject";
import type { Catalog, Index, Table } from "./catalog";
import type { Finding } from "./findings";

const OWN_MODELS = ["tenant", "tenantOauthConfig"];

/** Columns that are missing. Kysely's migrations know these by themselves. */
export function missingColumnFindings(subject: Subject, catalog: Catalog): Finding[] {
  const { ctx } = subject;
  const missing = [...OWN_MODELS, ...subject.confined].flatMap((model) => {
    const fields = Object.keys(ctx.tables[model]?.fields ?? {});
    const lacking = fields.filter((field) => !catalog.column(model, field));
    const name = catalog.table(model)?.name ?? ctx.tables[model]?.modelName;
    return lacking.length ? [`${name} (${lacking.join(", ")})`] : [];
  });
  if (!missing.length) return [];
  const mend = `Run "npx auth@latest generate" and your own migration tool. If the columns are there under other names, pass \`database\`: Drizzle's db or the Prisma client.`;
  return [missingColumn(`migrations have not run: ${missing.join("; ")}`, mend)];
}

export function missingColumn(found: string, mend: string): Finding {
  const meaning = "Requests fail, because a table or a column is not there.";
  return { id: "missing-column", found, meaning, mend };
}

/** Indexes that look-ups and the uniqueness within a tenant depend on, under any name. */
export async function missingIndexFindings(
  subject: Subject,
  catalog: Catalog,
  query: Query,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const model of [...OWN_MODELS, ...subject.confined]) {
    const { fields = {}, indexes = [] } = subject.ctx.tables[model] ?? {};
    const single = Object.entries(fields).flatMap(([field, { index, unique }]) =>
      unique || (index && field === "tenantId") ? [{ fields: [field], unique }] : [],
    );
    for (const wanted of [...single, ...indexes]) {
      const table = catalog.table(model);
      const columns = wanted.fields.flatMap((field) => catalog.column(model, field)?.name ?? []);
      const unique = wanted.unique === true;
      if (!table || columns.length < wanted.fields.length) continue;
      if (table.indexes.some((index) => covers(index, columns, unique))) continue;
      findings.push(await missingIndex(catalog, query, table, columns, unique));
    }
  }
  return findings;
}

/** A unique index over these columns alone, in any order, or any index that begins with them. */
function covers({ keys, ...index }: Index, columns: string[], unique: boolean): boolean {
  if (index.partial || (unique && (!index.unique || keys.length !== columns.length))) return false;
  const first = keys.slice(0, columns.length).map(({ column }) => column);
  return first.length === columns.length && columns.every((column) => first.includes(column));
}

async function missingIndex(
  { quote }: Catalog,
  query: Query,
  { name }: Table,
  columns: string[],
  unique: boolean,
): Promise<Finding> {
  const [kind, suffix] = unique ? ["unique index", "uidx"] : ["index", "idx"];
  const [table, keys] = [quote(name), columns.map(quote)];
  const index = quote([name, ...columns, suffix].join("_"));
  const duplicates = await findDuplicates(query, table, unique ? keys : []);
  return {
    id: "missing-index",
    found: `${name} (${columns.join(", ")}) has no ${kind}${duplicates.found}`,
    meaning: unique
      ? "The same values can be stored twice: two users of a tenant with one email, for example."
      : "Look-ups go through the rows of all tenants.",
    mend: `${duplicates.list}create ${kind} ${index} on ${table} (${keys.join(", ")});`,
  };
}

/** Whether values are there more than once, and the statement that lists them. */
async function findDuplicates(query: Query, table: string, keys: string[]) {
  const list = keys.join(", ");
  const present = keys.map((key) => `${key} is not null`).join(" and ");
  const groups = `from ${table} where ${present} group by ${list} having count(*) > 1`;
  const sql = `select count(*) as n from (select 1 as one ${groups}) d`;
  if (!keys.length) return { found: "", list: "" };
  const count = Number((await query(sql))[0]?.n);
  if (!count) return { found: ", and there are no duplicates", list: "" };
  return {
    found: `, and ${count} values are there more than once`,
    list: `-- Lists values that are there more than once. Merge or delete these rows first:\nselect ${list}, count(*) ${groups};\n`,
  };
}

/** Rows without a value in `tenantId`: the platform's have an empty string there. */
export async function nullFindings(
  { ctx, confined }: Subject,
  catalog: Catalog,
  query: Query,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const model of confined) {
    if (!catalog.column(model, "tenantId")?.nullable) continue;
    const { table, column } = catalog.namesOf(model, "tenantId");
    const [row] = await query(`select count(*) as n from ${table} where ${column} is null`);
    if (!Number(row?.n)) continue;
    const unique = ctx.tables[model]?.indexes?.find((index) => index.unique)?.fields ?? [];
    const keys = unique.map((field) =>
      field === "tenantId" ? `coalesce(${column}, '')` : catalog.namesOf(model, field).column,
    );
    const duplicates = await findDuplicates(query, table, keys);
    findings.push({
      id: "null-tenant",
      found: `${Number(row?.n)} rows of ${table} have NULL in ${column}${duplicates.found}`,
      meaning:
        "No request finds them, and no unique index applies to them. The platform's rows have an empty string there. If these belong to a tenant, write its id instead.",
      mend: `${duplicates.list}update ${table} set ${column} = '' where ${column} is null;`,
    });
  }
  return findings;
}

/** Unique indexes on the email alone, as better-auth had one before there were tenants. */
export function emailIndexFindings({ tenantOptions }: Subject, catalog: Catalog): Finding[] {
  const table = catalog.table("user");
  const email = catalog.column("user", "email")?.name ?? "";
  const tenantId = catalog.column("user", "tenantId")?.name.toLowerCase() ?? "";
  if (tenantOptions.keepEmailGloballyUnique || !table) return [];
  const left = table.indexes.filter((index) => {
    const sources = new Set(sourcesOf(index, table));
    const isOfTenants = index.partial && wordsOf(index.predicate).includes(tenantId);
    return index.unique && sources.size === 1 && sources.has(email) && !isOfTenants;
  });
  return left.map((index) => ({
    id: "email-index",
    found: `"${index.name}" keeps the email unique in all of "${table.name}"`,
    meaning: "A user with an account at one tenant, or on the platform, cannot sign up at another.",
    mend: dropStatement(catalog, table.name, index),
  }));
}

/** The columns behind an index: those in its expressions, and those that a column is generated from. */
function sourcesOf({ keys }: Index, { columns }: Table): string[] {
  return keys.flatMap(({ column, expression }) => {
    const generated = columns.find(({ name }) => name === column)?.generated;
    if (column && !generated) return [column];
    // SQLite has the statement that created the table, with the column in it.
    const own = generated?.split(",").find((part) => wordsOf(part)[0] === column.toLowerCase());
    const words = wordsOf(own ?? (generated || expression));
    const used = columns.filter(
      ({ name }) => name !== column && words.includes(name.toLowerCase()),
    );
    return used.map(({ name }) => name);
  });
}

/** The names in a piece of SQL, in lower case. */
const wordsOf = (sql: string): string[] => sql.toLowerCase().match(/[\p{L}\p{N}_$]+/gu) ?? [];

function dropStatement({ dialect, quote }: Catalog, table: string, index: Index): string {
  const name = quote(index.name);
  if (dialect === "mysql") return `alter table ${quote(table)} drop index ${name};`;
  if (dialect === "postgres" && index.constraint) {
    return `alter table ${quote(table)} drop constraint ${name};`;
  }
  if (!index.constraint) return `drop index ${name};`;
  return [
    "-- SQLite cannot drop the index of a constraint: the table has to be copied.",
    `-- See "SQLite" in docs/adding.md for the statements.`,
  ].join("\n");
}
