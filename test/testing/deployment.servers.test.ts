import { drizzleAdapter } from "better-auth/adapters/drizzle";
import { organization, username } from "better-auth/plugins";
import { drizzle as overMysql } from "drizzle-orm/mysql2";
import { drizzle as overPg } from "drizzle-orm/node-postgres";
import { drizzle as overSqlite } from "drizzle-orm/sqlite-proxy";
import type { Pool as MysqlPool } from "mysql2/promise";
import type { Pool } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { isolationOf } from "../../src/core/isolation";
import { tenantInvitations } from "../../src/features/invitations/index";
import { byDomain, bySubdomain } from "../../src/index";
import {
  checkDeployment,
  type DeploymentOptions,
  type DeploymentReport,
} from "../../src/testing/index";
import { collate } from "../core/isolate/collations";
import { createTables, loadDrizzle } from "../databases/store";
import {
  createDatabase,
  type DatabaseKind,
  databases,
  servers,
  type TestDatabase,
} from "../support/database";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";
import { createMemory } from "../support/stores";

/** An empty database, with a collation that docs/databases.md advises. */
async function createAdvised(kind: DatabaseKind) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  if (kind === "mysql") await collate(database, "utf8mb4_nopad_bin");
  return database;
}

async function inUse(kind: DatabaseKind, options: InstanceOptions = {}) {
  const instance = await createInstance({ database: await createAdvised(kind), ...options });
  const { query, quote } = instance.database;
  if (kind === "sqlite") await query("analyze");
  const a = await instance.createTenant("aa");
  const b = await instance.createTenant("bb");
  if (!options.tenant?.resolveTenantId) await instance.signUp(a.id);
  return { ...instance, query, quote, a: a.id, b: b.id };
}

const GOOGLE = { providerId: "google", clientId: "id", clientSecret: "a-client-secret" };
const idsOf = ({ findings }: DeploymentReport) => findings.map(({ id }) => id);

/** Runs the statements that a finding gives, and looks again. */
async function mended(
  { auth, database }: Pick<Instance, "auth" | "database">,
  findings: DeploymentReport["findings"],
  options: DeploymentOptions = {},
) {
  const statements = findings.flatMap(({ mend }) => mend.split(";"));
  for (const statement of statements) if (statement.trim()) await database.query(statement);
  return idsOf(await checkDeployment(auth, options));
}

const dropIndex = ({ kind, quote, query }: TestDatabase, table: string, name: string) =>
  query(`drop index ${quote(name)}${kind === "mysql" ? ` on ${quote(table)}` : ""}`);

/** A column `plain` that the database makes from an expression. */
const addGenerated = ({ kind, quote, query }: TestDatabase, expression: string) =>
  query(
    `alter table ${quote("user")} add column plain varchar(255) generated always as (${expression}) ${kind === "postgres" ? "stored" : "virtual"}`,
  );

/** Lets `tenantId` be NULL, as a column that the application made itself may be. */
async function allowNull({ kind, quote, query }: TestDatabase, table: string) {
  const [name, column] = [quote(table), quote("tenantId")];
  if (kind === "mysql") return query(`alter table ${name} modify ${column} varchar(255) null`);
  if (kind === "postgres") return query(`alter table ${name} alter ${column} drop not null`);
  // SQLite cannot change a column, but a new table can have another one.
  const [row] = await query(`select sql from sqlite_master where name = '${table}'`);
  await query(`alter table ${name} rename to "old"`);
  const sql = String(row?.sql).replace(/("tenantId" text[^,]*?) not null/i, "$1");
  await query(sql);
  await query(`insert into ${name} select * from "old"`);
  const indexes = await query(`select name, sql from sqlite_master where tbl_name = 'old'`);
  for (const { name, sql } of indexes.filter((index) => index.sql && index.name !== "old")) {
    await query(`drop index "${name}"`);
    await query(String(sql).replace('"old"', `"${table}"`));
  }
  await query("pragma foreign_keys = off");
  return query(`drop table "old"`);
}

/** Deletes all users past their foreign keys. */
async function deleteUsers({ kind, quote, query }: TestDatabase) {
  if (kind === "sqlite") await query("pragma foreign_keys = off");
  if (kind === "postgres") await query("set session_replication_role = replica");
  if (kind === "mysql") {
    const keys = await query(
      "select constraint_name as name, table_name as tbl from information_schema.referential_constraints where constraint_schema = database() and referenced_table_name = 'user'",
    );
    for (const { name, tbl } of keys) {
      await query(`alter table ${quote(String(tbl))} drop foreign key ${quote(String(name))}`);
    }
  }
  await query(`delete from ${quote("user")}`);
}

/** An application on Drizzle, with the tables of its own schema: `tenant_id` is a column there. */
async function onDrizzle(kind: DatabaseKind) {
  const provider = kind === "postgres" ? "pg" : kind;
  const schema = await loadDrizzle(provider, "text");
  const database = await createAdvised(kind);
  for (const statement of createTables(provider, schema)) await database.query(statement);
  if (kind === "sqlite") await database.query("analyze");
  const db = {
    sqlite: () =>
      overSqlite(async (sql, params, method) => {
        const rows = (await database.query(sql, params)).map((row) => Object.values(row));
        return { rows: method === "get" ? (rows[0] ?? []) : rows };
      }),
    postgres: () => overPg(database.option as Pool),
    mysql: () => overMysql(database.option as MysqlPool),
  }[kind]();
  const option = drizzleAdapter(db, { provider, schema, transaction: true });
  const { auth, createTenant } = await createInstance({
    database: { ...database, option },
    migrate: false,
    plugins: [username(), tenantInvitations({ sendInvitationEmail: () => {} })],
  });
  // Drizzle's proxy for SQLite returns rows without names.
  const options =
    kind === "sqlite" ? { query: (sql: string) => database.query(sql) } : { database: db };
  return { auth, db, schema, database, createTenant, options };
}

describe.skipIf(!servers.asked)("a deployment on MariaDB", () => {
  it("finds columns that compare texts inexactly, and the statements that change them", async () => {
    const database = await createDatabase("mysql");
    onTestFinished(() => database.close());
    await collate(database, "utf8mb4_general_ci");
    const bio = { type: "string", required: false, index: true } as const;
    const app = await createInstance({
      database,
      auth: { user: { additionalFields: { bio } } },
      plugins: [organization(), username()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    const a = await app.createTenant("aa");
    await app.signUp(a.id, "jane@partner.com");
    await database.query("alter table `user` modify bio varchar(255) null default 'it''s'");
    const { findings } = await checkDeployment(app.auth);
    expect(findings.map(({ id }) => id)).toEqual(["inexact-collation"]);
    for (const column of [
      ...["user.email", "user.username", "user.bio", "session.token", "account.accountId"],
      ...["verification.identifier", "tenant.slug", "organization.slug"],
    ]) {
      expect(findings[0]?.found).toContain(column);
    }
    expect(findings[0]?.found).not.toMatch(/tenantId|userId|\.id\b/);
    const describeColumns = () =>
      database.query(
        "select table_name, column_name, column_type, is_nullable, column_default from information_schema.columns where table_schema = database() order by 1, 2",
      );
    const before = await describeColumns();
    expect(await mended(app, findings)).toEqual([]);
    expect(await describeColumns()).toEqual(before);
    // The look-alike can be stored now.
    const other = await app.signUp(a.id, "other@partner.com");
    const change = "update `user` set email = ? where id = ?";
    await database.query(change, ["jane@pártner.com", other.user.id]);
    expect(await app.rows("user", "email = ?", ["jane@pártner.com"])).toBe(1);
  });
});

describe.each(databases)("a deployment on %s", (kind) => {
  it("has nothing to mend when all is well", async () => {
    const { auth, database } = await inUse(kind, {
      plugins: [organization()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    database.statements.length = 0;
    const report = await checkDeployment(auth);
    expect(report.findings).toEqual([]);
    expect(report.skipped).toEqual([]);
    const writes = database.statements.filter((sql) => !/^\s*(select|with|pragma)\b/i.test(sql));
    expect(writes).toEqual([]);
    expect(String(report)).toBe("Nothing to mend.");
  });

  it("finds the old unique index on the e-mail, and the statement that drops it", async () => {
    const app = await inUse(kind);
    const column = `${app.quote("user")} (${app.quote("email")})`;
    await app.query(`create unique index ${app.quote("user_email_key")} on ${column}`);
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["email-index"]);
    expect(String(report)).toContain("cannot sign up at another");
    expect(await mended(app, report.findings)).toEqual([]);
  });

  it("finds indexes that are missing", async () => {
    const app = await inUse(kind);
    const drop = `drop index ${app.quote("user_tenantId_email_uidx")}`;
    await app.query(kind === "mysql" ? `${drop} on ${app.quote("user")}` : drop);
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["missing-index"]);
    expect(report.findings[0]?.found).toContain("user (tenantId, email)");
    expect(report.findings[0]?.found).toContain("there are no duplicates");
    expect(report.findings[0]?.mend).toMatch(/^create unique index /);
    expect(await mended(app, report.findings)).toEqual([]);
  });

  it("finds that the tenant has no index, and takes an index by any name", async () => {
    const app = await inUse(kind, {
      plugins: [organization()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    const { quote, query } = app;
    const tables = ["session", "account", "organization"];
    for (const table of tables) await dropIndex(app.database, table, `${table}_tenantId_idx`);
    await dropIndex(app.database, "verification", "verification_tenantId_expiresAt_idx");
    // An index over a part of the rows is not enough. MariaDB has none.
    const part = `(${quote("tenantId")}) where ${quote("tenantId")} = 'x'`;
    if (kind !== "mysql") await query(`create index part on ${quote("session")} ${part}`);
    const report = await checkDeployment(app.auth);
    expect(report.findings.map(({ id, found }) => `${id} ${found}`)).toEqual([
      "missing-index session (tenantId) has no index",
      "missing-index account (tenantId) has no index",
      "missing-index verification (tenantId, expiresAt) has no index",
      "missing-index organization (tenantId) has no index",
    ]);
    expect(await mended(app, report.findings)).toEqual([]);
    await dropIndex(app.database, "session", "session_tenantId_idx");
    const columns = `${quote("tenantId")}, ${quote("userId")}`;
    await query(`create index ${quote("mine")} on ${quote("session")} (${columns})`);
    expect(idsOf(await checkDeployment(app.auth))).toEqual([]);
  });

  it.skipIf(kind === "sqlite")("finds that a column is no longer unique", async () => {
    const app = await inUse(kind, { plugins: [username()] });
    for (const table of ["session.token", "user.username"]) {
      const [name = "", column = ""] = table.split(".");
      const key = kind === "mysql" ? `index ${column}` : `constraint "${name}_${column}_key"`;
      await app.query(`alter table ${app.quote(name)} drop ${key}`);
    }
    for (const tenantId of [app.a, app.b]) await app.signUp(tenantId);
    const report = await checkDeployment(app.auth);
    expect(report.findings.map(({ id, found }) => `${id} ${found}`)).toEqual([
      "missing-index user (username) has no unique index, and there are no duplicates",
      "missing-index session (token) has no unique index, and there are no duplicates",
    ]);
    expect(await mended(app, report.findings)).toEqual([]);
  });

  it("lists duplicates before it suggests a unique index", async () => {
    const app = await inUse(kind);
    const { quote, query } = app;
    await dropIndex(app.database, "user", "user_tenantId_email_uidx");
    const [first, second] = [await app.signUp(app.a), await app.signUp(app.a)];
    const set = `update ${quote("user")} set email = ? where id = ?`;
    await query(set, [first.email, second.user.id]);
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["missing-index"]);
    expect(report.findings[0]?.found).toContain("1 values are there more than once");
    const [list = "", create = ""] = report.findings[0]?.mend.split(";") ?? [];
    expect(Object.values((await query(list))[0] ?? {})).toContain(first.email);
    await expect(query(create)).rejects.toThrow();
    await query(set, [second.email, second.user.id]);
    expect(await mended(app, report.findings)).toEqual([]);
  });

  it("finds a unique index on an expression or a generated column of the e-mail", async () => {
    const app = await inUse(kind);
    const { quote, query } = app;
    const index = (name: string, keys: string) =>
      query(`create unique index ${quote(name)} on ${quote("user")} (${keys})`);
    await addGenerated(app.database, "lower(email)");
    await index("sound", `${quote("tenantId")}, plain`);
    // MariaDB has neither.
    if (kind !== "mysql") {
      await index("also_sound", `(${quote("tenantId")} || lower(email))`);
      await index("of_platform", `email) where (${quote("tenantId")} = ''`);
    }
    expect(idsOf(await checkDeployment(app.auth))).toEqual([]);
    await index("one", "plain");
    if (kind !== "mysql") await index("two", "lower(email)");
    if (kind !== "mysql") await index("three", "email) where (name <> ''");
    const report = await checkDeployment(app.auth);
    const found = report.findings.map(({ id, found }) => `${id} ${found.split(" ")[0]}`);
    const names = kind === "mysql" ? ["one"] : ["one", "three", "two"];
    expect(found.toSorted()).toEqual(names.map((name) => `email-index "${name}"`));
    expect(await mended(app, report.findings)).toEqual([]);
  });

  it("finds NULL where the platform has an empty string", async () => {
    const app = await inUse(kind);
    const { quote, query } = app;
    for (const table of ["session", "user"]) await allowNull(app.database, table);
    const { user, email } = await app.signUp(null);
    const other = await app.signUp(null);
    expect(idsOf(await checkDeployment(app.auth))).toEqual([]);
    const set = `${quote("tenantId")} = null`;
    await query(`update ${quote("user")} set ${set}, email = ? where id = ?`, [
      email,
      other.user.id,
    ]);
    await query(`update ${quote("session")} set ${set} where ${quote("userId")} = ?`, [user.id]);
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["null-tenant", "null-tenant"]);
    expect(report.findings[0]?.found).toMatch(/^1 rows of .user. .* 1 values are there more/);
    expect(report.findings[1]?.found).toMatch(/^1 rows of .session. have NULL in .tenantId.$/);
    await query(`update ${quote("user")} set email = ? where id = ?`, [other.email, other.user.id]);
    expect(await mended(app, report.findings)).toEqual([]);
    expect(await app.rows("user", `${quote("tenantId")} = ''`)).toBe(2);
  });

  it("finds sessions whose user was deleted", async () => {
    const app = await inUse(kind);
    await deleteUsers(app.database);
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["ownerless-sessions"]);
    const kept = await app.signUp(app.b);
    expect(await mended(app, report.findings)).toEqual([]);
    expect(await app.rows("session")).toBe(1);
    expect((await kept.browser.get("/get-session")).data).toMatchObject({ user: kept.user });
  });

  it("finds hosts that are not written as a resolver looks them up", async () => {
    const domains = new Map<string, string>();
    const resolveTenantId = byDomain((host) => domains.get(host) ?? false);
    const { auth, api, a, b } = await inUse(kind, { tenant: { resolveTenantId } });
    const write = (tenantId: string, metadata: object) =>
      api.updateTenant({ body: { tenantId, metadata: { ...metadata } } });
    await write(a, { customDomain: "login.acme.com", emailDomain: "Gmail.com" });
    await write(b, { domains: ["login.bb.com", "münchen.example"], host: "Is.Found.com:8443" });
    domains.set("is.found.com", b);
    const sound = await checkDeployment(auth);
    expect(sound.findings.map(({ mend }) => mend)).toEqual([
      'Write "xn--mnchen-3ya.example" with auth.api.updateTenant.',
    ]);
    await write(a, { custom_domain: "https://Login.acme.com/path", hosts: ["a.com.", "a b"] });
    await write(b, { host: "a.com:8443", domain: "LOGIN.ACME.COM" });
    const { findings } = await checkDeployment(auth);
    expect(findings.map(({ id, mend }) => `${id} ${/"(.*)"/.exec(mend)?.[1]}`).toSorted()).toEqual([
      "host-form a.com",
      "host-form a.com",
      "host-form login.acme.com",
      "host-form login.acme.com",
      "host-form undefined",
      "shared-host undefined",
    ]);
    expect(findings.find(({ id }) => id === "shared-host")?.found).toMatch(/^login\.acme\.com /);
  });

  it("finds tenants with a reserved slug", async () => {
    const { auth, query, quote, b } = await inUse(kind, { tenant: { reservedSlugs: ["taken"] } });
    expect(idsOf(await checkDeployment(auth))).toEqual([]);
    for (const slug of ["taken", "wpad"]) {
      await query(`update ${quote("tenant")} set slug = ? where id = ?`, [slug, b]);
      const { findings } = await checkDeployment(auth);
      expect(findings.map(({ id, found }) => `${id} ${found}`)).toEqual([
        `reserved-slug the tenant ${b} has the reserved slug "${slug}"`,
      ]);
    }
  });

  it("finds what is missing behind Drizzle", async () => {
    const app = await onDrizzle(kind);
    const { auth, database, options } = app;
    const { quote, query } = database;
    await app.createTenant("aa");
    const sound = await checkDeployment(auth, options);
    expect(String(sound)).toBe("Nothing to mend.");
    const { skipped } = await checkDeployment(auth, { database: app.db });
    expect(skipped.length).toBe(kind === "sqlite" ? 1 : 0);
    await dropIndex(database, "user", "user_tenantId_email_uidx");
    await query(`create unique index ${quote("old")} on ${quote("user")} (email)`);
    const report = await checkDeployment(auth, options);
    expect(idsOf(report)).toEqual(["email-index", "missing-index"]);
    expect(report.findings[1]?.found).toContain("user (tenant_id, email) has no unique index");
    expect(await mended(app, report.findings, options)).toEqual([]);
    // A name of the application's own.
    const tenantId = (app.schema.user as { tenantId: { name: string } }).tenantId;
    onTestFinished(() => {
      tenantId.name = "tenant_id";
    });
    tenantId.name = "company";
    await query(`alter table ${quote("user")} rename column tenant_id to company`);
    expect(String(await checkDeployment(auth, options))).toBe("Nothing to mend.");
    const column = `${quote("tenant")} drop column ${quote("delete_at")}`;
    await query(`alter table ${column}`);
    const [found, ...others] = (await checkDeployment(auth, options)).findings;
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      id: "missing-column",
      found: "migrations have not run: tenant (deleteAt)",
    });
    // Without a way to read the catalog.
    const unread = await checkDeployment(auth);
    expect(idsOf(unread)).toEqual(["unreadable-rows"]);
    expect(unread.skipped[0]).toContain("pass `database`");
  });

  it("finds rows whose tenant is gone", async () => {
    const app = await inUse(kind);
    await app.query(`delete from ${app.quote("tenant")} where id = ?`, [app.a]);
    const report = await checkDeployment(app.auth);
    expect(new Set(idsOf(report))).toEqual(new Set(["orphans"]));
    expect(report.findings.map(({ found }) => found).join("\n")).toMatch(/1 rows of .user./);
    expect(await mended(app, report.findings.toReversed())).toEqual([]);
    expect(await app.rows("user")).toBe(0);
  });

  it("finds sessions of another tenant than their user, and rows that are", async () => {
    const app = await inUse(kind);
    const { quote, query } = app;
    for (const table of ["session", "account"]) {
      await query(`update ${quote(table)} set ${quote("tenantId")} = ?`, [app.b]);
    }
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["stray-sessions", "stray-rows"]);
    expect(await mended(app, report.findings)).toEqual([]);
    expect(await app.rows("session")).toBe(0);
    expect(await app.rows("account", `${quote("tenantId")} = ?`, [app.a])).toBe(1);
  });

  it("finds configs that cannot be decrypted", async () => {
    const app = await inUse(kind);
    await app.api.registerTenantOAuthConfig({ body: { tenantId: app.a, ...GOOGLE } });
    expect(idsOf(await checkDeployment(app.auth))).toEqual([]);
    const secret = app.quote("clientSecret");
    await app.query(`update ${app.quote("tenantOauthConfig")} set ${secret} = 'nonsense'`);
    const report = await checkDeployment(app.auth);
    expect(idsOf(report)).toEqual(["unreadable-configs"]);
    expect(report.findings[0]?.found).toContain("google of");
    expect(app.logs.join("\n")).not.toContain("cannot be decrypted");
  });

  it("finds hosts that two tenants claim", async () => {
    const resolveTenantId = bySubdomain({ baseDomain: "example.com" });
    const { auth, api, query, quote, a, b } = await inUse(kind, {
      tenant: { resolveTenantId },
      auth: { trustedOrigins: ["https://*.example.com"] },
    });
    await api.registerTenantOAuthConfig({ body: { tenantId: a, ...GOOGLE } });
    // Registering it would be refused, unless the host was not the other tenant's then.
    const set = `update ${quote("tenantOauthConfig")} set ${quote("redirectURI")} = ?`;
    await query(set, ["https://bb.example.com/callback"]);
    for (const tenantId of [a, b]) {
      await api.updateTenant({ body: { tenantId, metadata: { domain: "login.acme.com" } } });
    }
    const report = await checkDeployment(auth);
    expect(report.findings.map(({ id, found }) => `${id} ${found.split(" ")[0]}`)).toEqual([
      "shared-host login.acme.com",
      "shared-host bb.example.com",
    ]);
  });

  it("finds that the migrations have not run", async () => {
    const { auth } = await createInstance({ database: kind, migrate: false });
    const report = await checkDeployment(auth);
    expect(idsOf(report)).toContain("missing-column");
    expect(report.skipped).toEqual(["rows: the migrations come first"]);
  });
});

describe("what only some databases have", () => {
  it.runIf(databases.includes("sqlite"))(
    "finds that SQLite has no statistics, and an index of a constraint, which it cannot drop",
    async () => {
      const { auth, database } = await createInstance();
      await database.query('drop index "user_tenantId_email_uidx"');
      await database.query('alter table "user" rename to "old"');
      const [row] = await database.query("select sql from sqlite_master where name = 'old'");
      const sql = String(row?.sql).replace('"old"', '"user"').replace(/\)$/, ', unique ("email"))');
      await database.query(sql);
      const report = await checkDeployment(auth);
      expect(idsOf(report)).toContain("no-statistics");
      const found = report.findings.find(({ id }) => id === "email-index");
      expect(found?.mend).toContain("docs/adding.md");
    },
  );

  it.runIf(databases.includes("mysql"))(
    "finds an index on an expression as MySQL describes it: MariaDB has none",
    async () => {
      const { auth, database } = await inUse("mysql");
      const described = {
        ...{ table: "user", name: "lower_email", unique: 1 },
        ...{ column: null, EXPRESSION: "lower(`email`)" },
      };
      const query = async (sql: string) => {
        const rows = await database.query(sql);
        return sql.includes("information_schema.statistics") ? [...rows, described] : rows;
      };
      const { findings } = await checkDeployment(auth, { query });
      expect(findings.map(({ mend }) => mend)).toEqual([
        "alter table `user` drop index `lower_email`;",
      ]);
    },
  );

  it("finds that Drizzle runs without transactions", async () => {
    for (const transaction of [false, true]) {
      const option = drizzleAdapter({}, { provider: "sqlite", schema: {}, transaction });
      const database = { ...createMemory().database, option, query: async () => [] };
      const { auth } = await createInstance({ database, migrate: false });
      const { adapter } = await auth.$context;
      Object.assign(isolationOf(adapter)?.unscoped ?? {}, { findMany: async () => [] });
      const report = await checkDeployment(auth);
      expect(idsOf(report)).toEqual(transaction ? [] : ["no-transactions"]);
      expect(report.skipped[0]).toContain("pass `database`");
    }
  });
});
