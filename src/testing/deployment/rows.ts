import { pagesOf } from "../../core/database";
import { unprefixedValues } from "../../core/isolate/unique-values";
import { type Isolation, isolationOf } from "../../core/isolation";
import { type StoredOAuthConfig, tryDecrypt } from "../../features/oauth/config-store";
import { replace } from "../instance/outbox";
import { modelFinder, type Subject } from "../instance/subject";
import type { Catalog } from "./catalog";
import { type Checked, type Finding, PAGE, rowsOf } from "./findings";
import { hostFindings } from "./hosts";

type Row = Record<string, unknown> & { id: string; tenantId?: string | null };
type Names = Catalog["namesOf"];

/** What is wrong with rows. */
export async function rowFindings(subject: Subject, names: Names): Promise<Checked> {
  const tenants = new Set<string>();
  for await (const { id } of rowsOf<Row>(subject, "tenant")) tenants.add(id);
  const findings: Finding[] = [];
  for (const model of [...subject.confined, "tenantOauthConfig"]) {
    findings.push(...(await modelFindings(subject, names, model, tenants)));
  }
  findings.push(...(await prefixFindings(subject, names)), ...(await configFindings(subject)));
  findings.push(...(await hostFindings(subject)));
  return { findings };
}

/** Rows of one table whose tenant is gone, or is not the tenant of their user. */
async function modelFindings(
  subject: Subject,
  names: Names,
  model: string,
  tenants: Set<string>,
): Promise<Finding[]> {
  const find = modelFinder(subject);
  const fields = Object.entries(subject.ctx.tables[model]?.fields ?? {});
  const isUser = (name = "") => find(name) === "user";
  const [field = ""] = fields.find(([, { references }]) => isUser(references?.model)) ?? [];
  let orphans = 0;
  let strays = 0;
  let ownerless = 0;
  for await (const rows of pagesOf<Row>(subject.raw, model, PAGE)) {
    orphans += rows.filter(({ tenantId }) => tenantId && !tenants.has(String(tenantId))).length;
    if (!field) continue;
    const counts = await compareWithUsers(subject, rows, field);
    strays += counts.strays;
    ownerless += counts.ownerless;
  }
  return [
    ...(orphans ? [orphanFinding(names, model, orphans)] : []),
    ...(strays ? [strayFinding(names, model, field, strays)] : []),
    ...(ownerless && model === "session" ? [ownerlessFinding(names, field, ownerless)] : []),
  ];
}

/** Rows in another tenant than their user, and rows whose user is gone. */
async function compareWithUsers({ raw }: Subject, rows: Row[], field: string) {
  const owned = rows.filter((row) => row[field]);
  const ids = [...new Set(owned.map((row) => String(row[field])))];
  if (!ids.length) return { strays: 0, ownerless: 0 };
  const users = await raw.findMany<Row>({
    model: "user",
    where: [{ field: "id", operator: "in", value: ids }],
    limit: ids.length,
  });
  const tenantOf = new Map(users.map(({ id, tenantId }) => [String(id), tenantId ?? null]));
  const found = owned.map((row) => ({ row, user: tenantOf.get(String(row[field])) }));
  const ownerless = found.filter(({ user }) => user === undefined).length;
  const differ = found.filter(({ row, user }) => user !== (row.tenantId ?? null)).length;
  return { strays: differ - ownerless, ownerless };
}

/** Sessions that were left when their user was deleted past better-auth, or without foreign keys. */
function ownerlessFinding(names: Names, field: string, count: number): Finding {
  const { table, column } = names("session", field);
  const user = names("user", "id");
  return {
    id: "ownerless-sessions",
    found: `${count} rows of ${table} belong to a user who no longer exists`,
    meaning: "They open nothing, but hold personal data: IP addresses and user agents.",
    mend: `delete from ${table} where not exists (select 1 from ${user.table} where ${user.table}.${user.column} = ${table}.${column});`,
  };
}

function orphanFinding(names: Names, model: string, count: number): Finding {
  const { table, column } = names(model, "tenantId");
  const tenant = names("tenant", "id");
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

function strayFinding(names: Names, model: string, field: string, count: number): Finding {
  const own = names(model, "tenantId");
  const refers = names(model, field);
  const user = names("user", "tenantId");
  const match = `${user.table}.${user.quote("id")} = ${own.table}.${refers.column}`;
  const isSession = model === "session";
  const theirs = `(select ${user.table}.${user.column} from ${user.table} where ${match})`;
  return {
    id: isSession ? "stray-sessions" : "stray-rows",
    found: `${count} rows of ${own.table} are in another tenant than their user`,
    meaning: isSession
      ? "They were made past the plugin. A user who has one is signed in at the wrong tenant."
      : "Their user cannot see them: they were there before the model was scoped, or were made past the plugin.",
    mend: isSession
      ? `delete from ${own.table} where ${own.column} <> ${theirs};`
      : `update ${own.table} set ${own.column} = ${theirs} where ${own.column} <> ${theirs};`,
  };
}

/** Unique values of tenants from before they were unique per tenant, or written with SQL. */
async function prefixFindings({ ctx }: Subject, names: Names): Promise<Finding[]> {
  const counts = new Map<string, number>();
  for await (const { model, name } of unprefixedValues(isolationOf(ctx) as Isolation)) {
    const { table, column } = names(model, name);
    const place = `${table} (${column})`;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return [...counts].map(([place, count]) => ({
    id: "unprefixed-values",
    found: `${count} values of tenants in ${place} have no tenant prefix`,
    meaning:
      "Users cannot sign in with them, and another user of the tenant can take the same value.",
    mend: "Run prefixUniqueValues(auth), which better-auth-tenant exports.",
  }));
}

/** Configs that no secret of the application opens any more. */
async function configFindings(subject: Subject): Promise<Finding[]> {
  const { ctx } = subject;
  const unreadable: string[] = [];
  // What cannot be opened is reported here, once.
  const restore = replace(ctx.logger, "error", () => {});
  try {
    for await (const row of rowsOf<StoredOAuthConfig>(subject, "tenantOauthConfig")) {
      if (!(await tryDecrypt(ctx, row))) unreadable.push(`${row.providerId} of ${row.tenantId}`);
    }
  } finally {
    restore();
  }
  if (!unreadable.length) return [];
  const found = `OAuth configs that cannot be decrypted: ${unreadable.join(", ")}`;
  const meaning = "Sign-in with these providers fails with OAUTH_CREDENTIAL_DECRYPT_FAILED.";
  const mend =
    "Put the old secret back into `secrets`, run auth.api.rotateTenantOAuthSecrets(), and only then take it out; or register the configs again.";
  return [{ id: "unreadable-configs", found, meaning, mend }];
}
