import type { DeploymentOptions } from "../data/query";
import { messageOf } from "../data/texts";
import { type AuthInstance, openSubject, type Subject } from "../instance/subject";
import { databaseFindings, isBehind } from "./database";
import type { Checked, DeploymentReport, Finding } from "./findings";
import { rowFindings } from "./rows";

/** Looks at a database that is in use, and reads only. */
export async function checkDeployment(
  auth: AuthInstance,
  options: DeploymentOptions = {},
): Promise<DeploymentReport> {
  const start = Date.now();
  const subject = await openSubject(auth, "checkDeployment()");
  const database = await databaseFindings(subject, options);
  // Rows can be read only where the columns are.
  const rows: Checked = isBehind(database.findings)
    ? { findings: [], skipped: ["rows: the migrations come first"] }
    : await rowFindings(subject, database.catalog.namesOf).catch(unreadable);
  const checks = [database, rows, transactionFinding(subject)];
  const findings = checks.flatMap((check) => check.findings);
  const skipped = checks.flatMap((check) => check.skipped ?? []);
  const milliseconds = Date.now() - start;
  return { findings, skipped, milliseconds, toString: () => asText(findings, skipped) };
}

/** Behind Drizzle and Prisma, a column may be missing without anything else to show it. */
function unreadable(error: unknown): Checked {
  const found = String(messageOf(error));
  const meaning = "A table could not be read, so rows were not looked at. Requests fail likewise.";
  const mend =
    "Run the migrations. Pass `database` (Drizzle's db or the Prisma client) to learn what is missing.";
  return { findings: [{ id: "unreadable-rows", found, meaning, mend }] };
}

/** Drizzle and Prisma have transactions, and use them when they are told to. */
function transactionFinding({ ctx }: Subject): Checked {
  const { id, options } = ctx.adapter;
  const { adapterConfig } = (options ?? {}) as { adapterConfig?: { transaction?: unknown } };
  if (!["drizzle", "prisma"].includes(id) || adapterConfig?.transaction) return { findings: [] };
  const found = `the ${id} adapter runs without transactions`;
  const meaning = "A deletion of a tenant that is interrupted leaves a part of its rows behind.";
  const mend = `${id}Adapter(…, { …, transaction: true })`;
  return { findings: [{ id: "no-transactions", found, meaning, mend }] };
}

function asText(findings: Finding[], skipped: string[]): string {
  const lines = findings.flatMap(({ id, found, meaning, mend }) => [
    `${id}: ${found}`,
    `  ${meaning}`,
    ...mend.split("\n").map((line) => `  > ${line}`),
  ]);
  return [
    findings.length ? `${findings.length} findings:` : "Nothing to mend.",
    ...lines,
    ...skipped.map((what) => `not looked at: ${what}`),
  ].join("\n");
}
