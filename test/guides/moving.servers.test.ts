import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BetterAuthPlugin } from "better-auth";
import { symmetricEncrypt } from "better-auth/crypto";
import type { DBFieldAttribute } from "better-auth/db";
import { getMigrations } from "better-auth/db/migration";
import { SqliteDialect } from "kysely";
import Database from "libsql";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, databases, type TestDatabase } from "../support/database";
import { createInstance, createPlainInstance, PASSWORD } from "../support/instance";
import { blocksIn, statementsFor, statementsOf } from "./pages";

const GUIDE = "docs/moving.md";
const EMAIL = "al@example.com";
const person = { name: "Al", email: EMAIL, password: PASSWORD };
type Signed = { user: { id: string; tenantId: string | null } };

const text: DBFieldAttribute = { type: "string", required: false };
const word: DBFieldAttribute = { type: "string", required: true };
const date: DBFieldAttribute = { type: "date", required: true };
const stamps = { createdAt: date, updatedAt: date };
const to = (model: string, onDelete: "cascade" | "set null" = "cascade"): DBFieldAttribute => ({
  type: "string",
  required: onDelete === "cascade",
  references: { model, field: "id", onDelete },
});

/**
 * The tables of better-auth-tenancy 1.6.16, as its schema reference describes them. Users and
 * tenants refer to each other, which better-auth's own migrations cannot build: see below.
 */
const tenant = { name: word, slug: { ...word, unique: true }, metadata: text, ...stamps };
const config = { providerId: word, clientId: word, clientSecret: word, ...stamps };
const enabled: DBFieldAttribute = { type: "boolean", required: false };
const tenancyTables: BetterAuthPlugin = {
  id: "tables-of-tenancy",
  schema: {
    tenant: { fields: { ownerId: to("user", "set null"), ...tenant } },
    tenantMember: {
      fields: { tenantId: to("tenant"), userId: to("user"), role: word, createdAt: date },
    },
    tenantOauthConfig: {
      fields: { tenantId: to("tenant"), scopes: text, redirectURI: text, enabled, ...config },
    },
    user: { fields: { tenantId: text, email: text } },
    session: { fields: { tenantId: text } },
    account: { fields: { tenantId: text } },
    verification: { fields: { tenantId: text } },
  },
};

/** The rest of them, and the indexes that its documentation asks for. */
const tenancyConstraints = [
  ...["user", "session", "account", "verification"].map(
    (table) =>
      `alter table "${table}" add foreign key ("tenantId") references "tenant" ("id") on delete cascade`,
  ),
  `create unique index "user_email_platform" on "user" ("email") where "tenantId" is null`,
  `create unique index "user_email_tenant" on "user" ("email", "tenantId") where "tenantId" is not null`,
];

describe.runIf(databases.includes("postgres"))("moving over from better-auth-tenancy", () => {
  async function createOld() {
    const database = await createDatabase("postgres");
    onTestFinished(() => database.close());
    const { auth } = await createPlainInstance(database, {}, [tenancyTables]);
    for (const statement of tenancyConstraints) await database.query(statement);
    const { adapter, internalAdapter, secretConfig } = await auth.$context;
    const now = new Date();
    const create = (model: string, data: object) =>
      adapter.create<object, { id: string }>({
        model,
        data: { createdAt: now, updatedAt: now, ...data },
      });

    const signUp = async (tenantId: string | null) => {
      const data = { name: "Al", email: EMAIL, emailVerified: false, tenantId };
      const { id: userId } = await internalAdapter.createUser(data, { method: "admin" });
      const password = `hashed:${PASSWORD}`;
      const account = { userId, accountId: userId, providerId: "credential", password, tenantId };
      await internalAdapter.createAccount(account);
      const { token } = await internalAdapter.createSession(userId, false, { tenantId });
      return { id: userId, token };
    };
    const owner = await signUp(null);
    const tenants = [];
    for (const slug of ["acme", "globex"]) {
      const metadata = slug === "acme" ? JSON.stringify({ plan: "pro" }) : null;
      const data = { name: slug.toUpperCase(), slug, ownerId: owner.id, metadata };
      const { id } = await create("tenant", data);
      await create("tenantMember", { tenantId: id, userId: owner.id, role: "owner" });
      tenants.push({ id, slug, user: await signUp(id) });
    }
    const encrypted = (data: string) => symmetricEncrypt({ key: secretConfig, data });
    await create("tenantOauthConfig", {
      tenantId: tenants[0]?.id,
      providerId: "google",
      clientId: await encrypted("acme-client"),
      clientSecret: await encrypted("acme-secret"),
      scopes: "email,profile",
    });
    const state = { identifier: "state", value: "{}", expiresAt: now, tenantId: tenants[0]?.id };
    await create("verification", state);
    return { database, owner, tenants, create };
  }

  /** The statements of the guide: the ones that look, and the ones that change. */
  const [look, change, ...others] = blocksIn(GUIDE)
    .filter(({ language, heading }) => language === "sql" && heading === "The data")
    .map(({ code }) => statementsOf(code));

  it("keeps tenants, users, passwords and OAuth configs, and the sessions of the platform", async () => {
    const { database, owner, tenants } = await createOld();
    expect([look?.length, change?.length, others]).toEqual([2, expect.any(Number), []]);
    for (const sql of look ?? []) expect(await database.query(sql), sql).toEqual([]);
    for (const sql of change ?? []) await database.query(sql);
    const instance = await createInstance({ database });
    const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(instance.auth.options);
    expect([...toBeCreated, ...toBeAdded, ...toBeAddedIndexes]).toEqual([]);

    const count = (table: string, column: string, ...values: string[]) =>
      instance.rows(table, `"${column}" = ? and "tenantId" = ?`, values);
    const platform = await instance.browser().post<Signed>("/sign-in/email", person);
    expect(platform.data.user).toMatchObject({ id: owner.id, tenantId: null });
    for (const { id: tenantId, user } of tenants) {
      const browser = instance.browser({ "x-tenant-id": tenantId });
      const signed = await browser.post<Signed>("/sign-in/email", person);
      expect(signed.data.user).toMatchObject({ id: user.id, tenantId });
      const again = await instance.browser().post("/tenant/sign-up/email", { ...person, tenantId });
      expect([again.status, again.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
      expect(await count("session", "token", user.token, tenantId)).toBe(0);
      expect(await count("account", "userId", user.id, tenantId)).toBe(1);
    }
    expect(await count("session", "token", owner.token, "")).toBe(1);

    const [acme, globex] = await instance.api.listTenants();
    expect([acme?.metadata, globex?.metadata]).toEqual([{ plan: "pro" }, null]);
    const query = { tenantId: tenants[0]?.id ?? "" };
    expect(await instance.api.listTenantOAuthConfigs({ query })).toMatchObject([
      {
        providerId: "google",
        clientId: "acme-client",
        scopes: ["email", "profile"],
        enabled: true,
        readable: true,
      },
    ]);
    // The old table that the guide's canManageTenants asks is still there, and goes with its tenant.
    expect(await instance.rows("tenantMember", `"role" = 'owner'`)).toBe(2);
    await instance.api.deleteTenant({ body: query });
    expect(await instance.rows("user")).toBe(2);
    expect(await instance.rows("tenantMember")).toBe(1);
  });

  it("finds the doubles that the old tables allowed", async () => {
    const { database, tenants, create } = await createOld();
    // Not everybody has made the indexes.
    await database.query(`drop index "user_email_tenant"`);
    const tenantId = tenants[0]?.id;
    await create("user", { name: "Al", email: EMAIL, emailVerified: false, tenantId });
    const double = { tenantId, providerId: "google", clientId: "c", clientSecret: "s" };
    await create("tenantOauthConfig", double);
    for (const sql of look ?? []) expect(await database.query(sql), sql).toHaveLength(1);
  });
});

/** The database of an old instance, beside the new one and within reach of its statements. */
async function createBeside(database: TestDatabase): Promise<{ option: unknown; name: string }> {
  if (database.kind === "postgres") {
    const [row] = await database.query("select current_database() as name");
    await database.query("create schema acme");
    const options = "-c search_path=acme";
    const name = String(row?.name);
    const pool = new Pool({ host: "127.0.0.1", user: "postgres", database: name, options });
    // They close while their database is dropped, and say so.
    pool.on("error", () => {});
    onTestFinished(() => pool.end());
    return { option: pool, name: "acme" };
  }
  if (database.kind === "mysql") {
    const name = `t_${randomBytes(6).toString("hex")}`;
    await database.query(`create database ${name}`);
    const connection = { host: "127.0.0.1", user: "root", timezone: "Z" };
    const pool = createPool({ ...connection, database: name });
    onTestFinished(async () => {
      await pool.query(`drop database ${name}`);
      await pool.end();
    });
    return { option: pool, name };
  }
  const directory = mkdtempSync(join(tmpdir(), "better-auth-tenant-"));
  const file = join(directory, "acme.db");
  const db = new Database(file);
  onTestFinished(() => {
    db.close();
    rmSync(directory, { recursive: true });
  });
  await database.query(`attach '${file}' as acme`);
  return { option: { dialect: new SqliteDialect({ database: db }), type: "sqlite" }, name: "acme" };
}

describe.each(databases)("moving over from one instance for each tenant, on %s", (kind) => {
  const HEADING = "From one instance for each tenant";

  async function setUp() {
    const database = await createDatabase(kind);
    const instance = await createInstance({ database });
    const beside = await createBeside(database);
    // Before the database goes, its neighbours have to.
    onTestFinished(() => database.close());
    const old = await createPlainInstance(beside, {}, []);
    const browser = old.browser();
    const { data } = await browser.post<Signed>("/sign-up/email", person);
    const copy = async () => {
      for (const statement of statementsFor(kind, GUIDE, HEADING)) {
        const here = statement.replaceAll('"acme".', `"${beside.name}".`);
        // Instead of the guide's `set sql_mode`, which is for one connection.
        await database.query(kind === "mysql" ? here.replaceAll('"', "`") : here);
      }
    };
    return { database, instance, browser, userId: data.user.id, copy };
  }

  it("users keep their passwords, sign in again, and are in their tenant", async () => {
    const { instance, browser, userId, copy } = await setUp();
    await instance.signUp(null, EMAIL);
    const { id } = await instance.createTenant("acme");
    await copy();
    const window = instance.browser({ "x-tenant-id": id });
    const signed = await window.post<Signed>("/sign-in/email", person);
    expect(signed.data.user).toMatchObject({ id: userId, tenantId: id });
    const kept = instance.browser({ "x-tenant-id": id });
    for (const [name, value] of browser.cookies) kept.cookies.set(name, value);
    expect((await kept.get("/get-session")).data).toBe(null);
    const platform = await instance.browser().post<Signed>("/sign-in/email", person);
    expect(platform.data.user.id).not.toBe(userId);
  });

  it("nothing is copied where the tenant is missing", async () => {
    const { instance, copy } = await setUp();
    await expect(copy()).rejects.toThrow(/null/i);
    expect(await instance.rows("user")).toBe(0);
    expect(await instance.rows("account")).toBe(0);
  });
});
