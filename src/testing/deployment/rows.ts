import { type StoredOAuthConfig, tryDecrypt } from "../../oauth/config-store";
import { replace } from "../instance/outbox";
import { modelFinder, type Subject } from "../instance/subject";
import { pagesOf } from "../sides/pages";
import type { Checked, Finding } from "./findings";
import { hostFindings } from "./hosts";

type StoredRow = Record<string, unknown> & { id: string; tenantId?: string | null };

/** What is wrong with rows. */
export async function rowFindings(subject: Subject): Promise<Checked> {
  const tenants = new Set<string>();
  for await (const rows of pagesOf(subject, "tenant")) for (const { id } of rows) tenants.add(id);
  const findings: Finding[] = [];
  for (const model of [...subject.confined, "tenantOauthConfig"]) {
    findings.push(...(await modelFindings(subject, model, tenants)));
  }
  findings.push(...(await configFindings(subject)), ...(await hostFindings(subject)));
  return { findings };
}

/** Rows of one table whose tenant is gone, or is not the tenant of their user. */
async function modelFindings(
  subject: Subject,
  model: string,
  tenants: Set<string>,
): Promise<Finding[]> {
  const field = userField(subject, model);
  let orphans = 0;
  let strays = 0;
  for await (const rows of pagesOf<StoredRow>(subject, model)) {
    orphans += rows.filter(({ tenantId }) => tenantId && !tenants.has(String(tenantId))).length;
    if (field) strays += await countStrays(subject, rows, field);
  }
  return [
    ...(orphans ? [orphanFinding(subject, model, orphans)] : []),
    ...(strays ? [strayFinding(subject, model, field ?? "", strays)] : []),
  ];
}

/** The field that refers to a user, if there is one. */
function userField(subject: Subject, model: string): string | undefined {
  const find = modelFinder(subject);
  const fields = Object.entries(subject.ctx.tables[model]?.fields ?? {});
  return fields.find(([, { references }]) => references && find(references.model) === "user")?.[0];
}

async function countStrays({ raw }: Subject, rows: StoredRow[], field: string): Promise<number> {
  const ids = [...new Set(rows.flatMap((row) => (row[field] ? [String(row[field])] : [])))];
  if (!ids.length) return 0;
  const users = await raw.findMany<StoredRow>({
    model: "user",
    where: [{ field: "id", operator: "in", value: ids }],
    limit: ids.length,
  });
  const tenantOf = new Map(users.map(({ id, tenantId }) => [String(id), tenantId ?? null]));
  return rows.filter((row) => {
    const user = tenantOf.get(String(row[field]));
    return user !== undefined && user !== (row.tenantId ?? null);
  }).length;
}

/** Names as they are in the database, quoted as most databases do. */
function namesOf({ ctx }: Subject, model: string, field: string) {
  const table = ctx.tables[model];
  const column = table?.fields[field]?.fieldName ?? field;
  const mark = (ctx.adapter.options as { type?: string } | undefined)?.type === "mysql" ? "`" : '"';
  const quote = (name: string) => mark + name + mark;
  return { table: quote(table?.modelName ?? model), column: quote(column), quote };
}

function orphanFinding(subject: Subject, model: string, count: number): Finding {
  const { table, column } = namesOf(subject, model, "tenantId");
  const tenant = namesOf(subject, "tenant", "id");
  // MySQL compares numbers with texts by itself, and does not compare texts of two collations.
  const isMySQL = tenant.quote("").startsWith("`");
  const id = isMySQL ? tenant.column : `cast(${tenant.column} as text)`;
  return {
    id: "orphans",
    found: `${count} rows of ${table} belong to a tenant that is gone`,
    meaning:
      "No request can reach them, but they still hold personal data: they were written while the tenant was deleted, or the tenant was deleted with SQL. `auth.api.purgeTenants()` deletes them, too.",
    mend: `delete from ${table} where ${column} <> '' and ${column} not in (select ${id} from ${tenant.table});`,
  };
}

function strayFinding(subject: Subject, model: string, field: string, count: number): Finding {
  const own = namesOf(subject, model, "tenantId");
  const refers = namesOf(subject, model, field);
  const user = namesOf(subject, "user", "tenantId");
  const match = `${user.table}.${user.quote("id")} = ${own.table}.${refers.column}`;
  const isSession = model === "session";
  const theirs = `(select ${user.table}.${user.column} from ${user.table} where ${match})`;
  return {
    id: isSession ? "stray-sessions" : "stray-rows",
    found: `${count} rows of ${own.table} are in another tenant than their user`,
    meaning: isSession
      ? "They were made past the plugin. Whoever has one is signed in where they do not belong."
      : "Their user cannot see them: they were there before the model was scoped, or were made past the plugin.",
    mend: isSession
      ? `delete from ${own.table} where ${own.column} <> ${theirs};`
      : `update ${own.table} set ${own.column} = ${theirs} where ${own.column} <> ${theirs};`,
  };
}

/** Configs that no secret of the application opens any more. */
async function configFindings(subject: Subject): Promise<Finding[]> {
  const { ctx } = subject;
  const unreadable: string[] = [];
  // What cannot be opened is reported here, once.
  const restore = replace(ctx.logger as unknown as Record<string, unknown>, "error", () => {});
  try {
    for await (const rows of pagesOf<StoredOAuthConfig>(subject, "tenantOauthConfig")) {
      for (const row of rows) {
        if (!(await tryDecrypt(ctx, row))) unreadable.push(`${row.providerId} of ${row.tenantId}`);
      }
    }
  } finally {
    restore();
  }
  if (!unreadable.length) return [];
  return [
    {
      id: "unreadable-configs",
      found: `OAuth configs that cannot be decrypted: ${unreadable.join(", ")}`,
      meaning: "Sign-in with these providers fails with OAUTH_CREDENTIAL_DECRYPT_FAILED.",
      mend: "Put the old secret back into `secrets`, run auth.api.rotateTenantOAuthSecrets(), and only then take it out; or register the configs again.",
    },
  ];
}
