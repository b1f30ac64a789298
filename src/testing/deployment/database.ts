import type { BetterAuthOptions } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { type DeploymentOptions, findQuery, type Query } from "../data/query";
import { messageOf } from "../data/texts";
import type { Subject } from "../instance/subject";
import { type Catalog, readCatalog } from "./catalog";
import { collationFindings } from "./collations";
import type { Checked, Finding } from "./findings";
import {
  emailIndexFindings,
  missingColumn,
  missingColumnFindings,
  missingIndexFindings,
  nullFindings,
} from "./indexes";

/** What is wrong with tables and indexes, and how they are called. */
export async function databaseFindings(
  subject: Subject,
  options: DeploymentOptions,
): Promise<Checked & { catalog: Catalog }> {
  const opened = await findQuery(subject, options);
  try {
    const catalog = await readCatalog(subject, opened);
    const { query } = opened ?? {};
    const planned = await migrationFindings(subject, catalog);
    if (!query || !catalog.isReadable) {
      return { findings: planned, skipped: isBehind(planned) ? [] : [UNREAD], catalog };
    }
    const isKysely = subject.ctx.adapter.id === "kysely";
    const columns = isKysely ? planned : missingColumnFindings(subject, catalog);
    const findings = [...columns, ...emailIndexFindings(subject, catalog)];
    // What is missing with a column comes with the column.
    if (!isBehind(columns)) {
      findings.push(
        ...(await missingIndexFindings(subject, catalog, query)),
        ...(await nullFindings(subject, catalog, query)),
      );
    }
    if (catalog.dialect === "mysql")
      findings.push(...(await collationFindings(subject, catalog, query)));
    if (catalog.dialect === "sqlite") findings.push(...(await statisticsFinding(query)));
    return { findings, catalog };
  } finally {
    await opened?.close?.();
  }
}

/** Whether a table or a column is missing. */
export const isBehind = (findings: Finding[]) => findings.some(({ id }) => id === "missing-column");

const UNREAD =
  "columns, indexes, NULL in `tenantId`, statistics: pass `database` (Drizzle's db or the Prisma client), or `query` and `dialect`, with the schema of the tables as the connection's own";

/** What better-auth's own migrations would still do, or refuse to do. */
const migrationFindings = ({ ctx, options }: Subject, { isReadable }: Catalog) =>
  ctx.adapter.id === "kysely"
    ? plannedFindings(options as BetterAuthOptions, isReadable).catch((error) => [
        {
          id: "migrations-refused",
          found: String(messageOf(error)),
          meaning: "better-auth cannot tell what is missing, and its migrations would not run.",
          mend: "Do as the message says, and run this check again.",
        },
      ])
    : [];

async function plannedFindings(
  options: BetterAuthOptions,
  isReadable: boolean,
): Promise<Finding[]> {
  const plan = await getMigrations(options, { throwOnUnsafe: false });
  const { toBeCreated, toBeAdded, toBeAddedIndexes, compileMigrations } = plan;
  const columns = [...toBeCreated, ...toBeAdded].map(
    ({ table, fields }) => `${table} (${Object.keys(fields).join(", ")})`,
  );
  const indexes = toBeAddedIndexes.map(
    ({ table, index }) => `${table} (${index.columns.join(", ")})`,
  );
  // Better-auth looks for indexes by their names. With a catalog they are found under any name.
  if (!columns.length && (isReadable || !indexes.length)) return [];
  const found = `migrations have not run: ${[...columns, ...indexes].join("; ")}`;
  const mend = await compileMigrations();
  if (columns.length) return [missingColumn(found, mend)];
  const meaning =
    "Look-ups go through whole tables, and a unique index that is missing lets the same email into a tenant twice.";
  return [{ id: "missing-index", found, meaning, mend }];
}

/** Without them SQLite guesses, and guesses that few rows have the same email. */
async function statisticsFinding(query: Query): Promise<Finding[]> {
  const [row] = await query("select count(*) as n from sqlite_master where name = 'sqlite_stat1'");
  if (Number(row?.n) > 0) return [];
  const found = "SQLite has no statistics of this database";
  const meaning =
    "With many tenants, look-ups may take an index that leads through all of a tenant's rows.";
  return [{ id: "no-statistics", found, meaning, mend: "analyze;" }];
}
