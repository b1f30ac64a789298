import { drizzleAdapter } from "better-auth/adapters/drizzle";
import { organization } from "better-auth/plugins";
import { describe, expect, it } from "vitest";
import { bySubdomain } from "../../src/index";
import { isolationOf } from "../../src/isolation/isolation";
import { checkDeployment, type DeploymentReport } from "../../src/testing/index";
import { type DatabaseKind, databases } from "../support/database";
import { createInstance, type Instance, type InstanceOptions } from "../support/instance";
import { createMemory } from "../support/stores";

async function inUse(kind: DatabaseKind, options: InstanceOptions = {}) {
  const instance = await createInstance({ database: kind, ...options });
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
async function mended({ auth, database }: Instance, findings: DeploymentReport["findings"]) {
  const statements = findings.flatMap(({ mend }) => mend.split(";"));
  for (const statement of statements) if (statement.trim()) await database.query(statement);
  return idsOf(await checkDeployment(auth));
}

describe.each(databases)("a deployment on %s", (kind) => {
  it("has nothing to mend when all is well", async () => {
    const { auth } = await inUse(kind, {
      plugins: [organization()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    const report = await checkDeployment(auth);
    expect(report.findings).toEqual([]);
    expect(report.skipped).toEqual([]);
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
    expect(await mended(app, report.findings)).toEqual([]);
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

  it("finds that Drizzle runs without transactions", async () => {
    for (const transaction of [false, true]) {
      const option = drizzleAdapter({}, { provider: "sqlite", schema: {}, transaction });
      const database = { ...createMemory().database, option, query: async () => [] };
      const { auth } = await createInstance({ database, migrate: false });
      const { adapter } = await auth.$context;
      Object.assign(isolationOf(adapter)?.raw ?? {}, { findMany: async () => [] });
      const report = await checkDeployment(auth);
      expect(idsOf(report)).toEqual(transaction ? [] : ["no-transactions"]);
      expect(report.skipped[0]).toContain("give `query`");
    }
  });
});
