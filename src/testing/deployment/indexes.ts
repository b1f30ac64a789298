import type { Query } from "../data/query";
import type { Subject } from "../instance/subject";
import { type Catalog, type Index, type Table, wordsOf } from "./catalog";
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
  return [
    {
      id: "missing-column",
      found: `migrations have not run: ${missing.join("; ")}`,
      meaning: "Requests fail, because a table or a column is not there.",
      mend: `Run "npx auth@latest generate" and your own migration tool. If the columns are there under other names, pass \`database\`: Drizzle's db or the Prisma client.`,
    },
  ];
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
    const single = fields.tenantId?.index ? [{ fields: ["tenantId"] }] : [];
    for (const wanted of [...single, ...indexes]) {
      const table = catalog.table(model);
      const columns = wanted.fields.flatMap((field) => catalog.column(model, field)?.name ?? []);
      const unique = "unique" in wanted && wanted.unique === true;
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
  const first = keys.slice(0, columns.length).map(({ column }) => column ?? "");
  return first.length === columns.length && columns.every((column) => first.includes(column));
}

async function missingIndex(
  catalog: Catalog,
  query: Query,
  table: Table,
  columns: string[],
  unique: boolean,
): Promise<Finding> {
  const { quote } = catalog;
  const [kind, suffix] = unique ? ["unique index", "uidx"] : ["index", "idx"];
  const name = quote([table.name, ...columns, suffix].join("_"));
  const list = columns.map(quote).join(", ");
  const create = `create ${kind} ${name} on ${quote(table.name)} (${list});`;
  const duplicates = unique
    ? await findDuplicates(query, quote(table.name), columns.map(quote))
    : undefined;
  return {
    id: "missing-index",
    found: `${table.name} (${columns.join(", ")}) has no ${kind}${unique ? `; ${duplicates?.found ?? "no values are there twice"}` : ""}`,
    meaning: unique
      ? "The same values can be stored twice: two users of a tenant with one e-mail, for example."
      : "Look-ups go through the rows of all tenants.",
    mend: duplicates ? `${duplicates.list}\n${create}` : create,
  };
}

/** Values that are there more than once, and the statement that lists them. */
async function findDuplicates(query: Query, table: string, keys: string[]) {
  const list = keys.join(", ");
  const groups = `from ${table} group by ${list} having count(*) > 1`;
  const [row] = await query(`select count(*) as n from (select 1 as one ${groups}) d`);
  const count = Number(row?.n);
  if (!count) return undefined;
  return {
    found: `${count} values are there more than once`,
    list: `-- Lists values that are there more than once. Merge or delete these rows first:\nselect ${list}, count(*) ${groups};`,
  };
}

/** Rows without a value in `tenantId`: the platform's have an empty text there. */
export async function nullFindings(
  { ctx, confined }: Subject,
  { table, column, quote }: Catalog,
  query: Query,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const model of confined) {
    const tenantId = column(model, "tenantId");
    if (!tenantId?.nullable) continue;
    const [name, tenant] = [quote(table(model)?.name ?? ""), quote(tenantId.name)];
    const [row] = await query(`select count(*) as n from ${name} where ${tenant} is null`);
    if (!Number(row?.n)) continue;
    const unique = ctx.tables[model]?.indexes?.find((index) => index.unique)?.fields ?? [];
    const others = unique.filter((field) => field !== "tenantId");
    const keys = others.map((field) => quote(column(model, field)?.name ?? field));
    const duplicates = keys.length
      ? await findDuplicates(query, name, [`coalesce(${tenant}, '')`, ...keys])
      : undefined;
    const update = `update ${name} set ${tenant} = '' where ${tenant} is null;`;
    findings.push({
      id: "null-tenant",
      found: `${Number(row?.n)} rows of ${name} have NULL in ${tenant}${duplicates ? `; with the platform's rows, ${duplicates.found}` : ""}`,
      meaning:
        "No request finds them, and no unique index applies to them. The platform's rows have an empty text there. If these belong to a tenant, write its id instead.",
      mend: duplicates ? `${duplicates.list}\n${update}` : update,
    });
  }
  return findings;
}

/** Unique indexes on the email alone, as better-auth had one before there were tenants. */
export function emailIndexFindings({ tenantOptions }: Subject, catalog: Catalog): Finding[] {
  const table = catalog.table("user");
  const email = catalog.column("user", "email")?.name ?? "";
  const tenantId = catalog.column("user", "tenantId")?.name ?? "";
  if (tenantOptions.keepEmailGloballyUnique || !table) return [];
  const left = table.indexes.filter((index) => {
    const sources = new Set(sourcesOf(index, table));
    const isOnEmail = sources.size === 1 && sources.has(email);
    return index.unique && isOnEmail && !wordsOf(index.predicate).includes(tenantId);
  });
  return left.map((index) => ({
    id: "email-index",
    found: `"${index.name}" keeps the e-mail unique in all of "${table.name}"`,
    meaning:
      "Somebody who has an account at one tenant, or on the platform, cannot sign up at another.",
    mend: dropStatement(catalog, table.name, index),
  }));
}

/** The columns behind an index: those in its expressions, and those that a column is generated from. */
function sourcesOf({ keys }: Index, { columns }: Table): string[] {
  const among = (sql: string) => {
    const words = new Set(wordsOf(sql.toLowerCase()));
    return columns.flatMap(({ name }) => (words.has(name.toLowerCase()) ? [name] : []));
  };
  return keys.flatMap(({ column, expression }) => {
    const generated = columns.find(({ name }) => name === column)?.generated;
    return column && !generated ? [column] : among(generated || expression);
  });
}

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
