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
import { blocksIn, statementsFor, statementsOf } from "../support/pages";

const GUIDE = "docs/moving.md";
const EMAIL = "al@example.com";
const person = { name: "Al", email: EMAIL, password: PASSWORD };
type Signed = { user: { id: string; tenantId: string | null } };

const text: DBFieldAttribute = { type: "string", required: false };
const word: DBFieldAttribute = { type: "string", required: true };
const date: DBFieldAttribute = { type: "date", required: true };
const to = (model: string, onDelete: "cascade" | "set null" = "cascade"): DBFieldAttribute => ({
  type: "string",
  required: false,
  references: { model, field: "id", onDelete },
});

/**
 * The tables of better-auth-tenancy 1.6.16, as its schema reference describes them. Users and
 * tenants refer to each other, which better-auth's own migrations cannot build: see below.
 */
const tenancyTables: BetterAuthPlugin = {
  id: "tables-of-tenancy",
  schema: {
    tenant: {
      fields: {
        name: word,
        slug: { ...word, unique: true },
        ownerId: to("user", "set null"),
        metadata: text,
        createdAt: date,
        updatedAt: date,
      },
    },
    tenantMember: {
      fields: {
        tenantId: { ...to("tenant"), required: true },
        userId: { ...to("user"), required: true },
        role: word,
        createdAt: date,
      },
    },
    tenantOauthConfig: {
      fields: {
        tenantId: { ...to("tenant"), required: true },
        providerId: word,
        clientId: word,
        clientSecret: word,
        scopes: text,
        redirectURI: text,
        enabled: { type: "boolean", required: false },
        createdAt: date,
        updatedAt: date,
      },
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
  async function createOld(database: TestDatabase) {
    const { auth } = await createPlainInstance(database, {}, [tenancyTables]);
    for (const statement of tenancyConstraints) await database.query(statement);
    const { adapter, internalAdapter, secretConfig } = await auth.$context;
    const now = new Date();
    const stamps = { createdAt: now, updatedAt: now };
    const create = (model: string, data: object) =>
      adapter.create<object, { id: string }>({ model, data });

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
      const tenant = { name: slug.toUpperCase(), slug, ownerId: owner.id, metadata, ...stamps };
      const { id } = await create("tenant", tenant);
      await create("tenantMember", { tenantId: id, userId: owner.id, role: "owner", ...stamps });
      tenants.push({ id, slug, user: await signUp(id) });
    }
    const encrypted = (data: string) => symmetricEncrypt({ key: secretConfig, data });
    await create("tenantOauthConfig", {
      tenantId: tenants[0]?.id,
      providerId: "google",
      clientId: await encrypted("acme-client"),
      clientSecret: await encrypted("acme-secret"),
      scopes: "email,profile",
      ...stamps,
    });
    const value = { identifier: "state", value: "{}", expiresAt: now, tenantId: tenants[0]?.id };
    await create("verification", { ...value, ...stamps });
    return { owner, tenants };
  }

  it("keeps tenants, people, passwords, sessions and OAuth configs", async () => {
    const database = await createDatabase("postgres");
    onTestFinished(() => database.close());
    const { owner, tenants } = await createOld(database);

    const [look, change, ...others] = blocksIn(GUIDE).filter(
      ({ language, heading }) => language === "sql" && heading === "The data",
    );
    expect(others).toEqual([]);
    for (const statement of statementsOf(look?.code ?? "")) {
      expect(await database.query(statement), statement).toEqual([]);
    }
    for (const statement of statementsOf(change?.code ?? "")) await database.query(statement);
    const instance = await createInstance({ database });
    const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(instance.auth.options);
    expect([...toBeCreated, ...toBeAdded, ...toBeAddedIndexes]).toEqual([]);

    const platform = await instance.browser().post<Signed>("/sign-in/email", person);
    expect(platform.data.user).toMatchObject({ id: owner.id, tenantId: null });
    for (const { id: tenantId, user } of tenants) {
      const browser = instance.browser({ "x-tenant-id": tenantId });
      const signed = await browser.post<Signed>("/sign-in/email", person);
      expect(signed.data.user).toMatchObject({ id: user.id, tenantId });
      const again = await instance.browser().post("/tenant/sign-up/email", { ...person, tenantId });
      expect([again.status, again.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
      expect(
        await instance.rows("session", `"token" = ? and "tenantId" = ?`, [user.token, tenantId]),
      ).toBe(1);
      expect(
        await instance.rows("account", `"userId" = ? and "tenantId" = ?`, [user.id, tenantId]),
      ).toBe(1);
    }
    expect(await instance.rows("session", `"token" = ? and "tenantId" = ''`, [owner.token])).toBe(
      1,
    );

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
    const database = await createDatabase("postgres");
    onTestFinished(() => database.close());
    const { tenants } = await createOld(database);
    // Not everybody has made the indexes.
    await database.query(`drop index "user_email_tenant"`);
    const { auth } = await createPlainInstance(database, {}, [tenancyTables]);
    const { adapter } = await auth.$context;
    const [tenant] = tenants;
    const now = { createdAt: new Date(), updatedAt: new Date() };
    const user = { name: "Al", email: EMAIL, emailVerified: false, tenantId: tenant?.id, ...now };
    await adapter.create({ model: "user", data: user });
    const config = { providerId: "google", clientId: "c", clientSecret: "s", ...now };
    await adapter.create({ model: "tenantOauthConfig", data: { tenantId: tenant?.id, ...config } });
    const [look] = blocksIn(GUIDE).filter(({ language }) => language === "sql");
    for (const statement of statementsOf(look?.code ?? "")) {
      expect(await database.query(statement), statement).toHaveLength(1);
    }
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
        await database.query(statement.replaceAll("`acme`.", `\`${beside.name}\`.`));
      }
    };
    return { database, instance, browser, userId: data.user.id, copy };
  }

  it("people keep their passwords and sessions, and are in their tenant", async () => {
    const { instance, browser, userId, copy } = await setUp();
    await instance.signUp(null, EMAIL);
    const { id } = await instance.createTenant("acme");
    await copy();
    const window = instance.browser({ "x-tenant-id": id });
    const signed = await window.post<Signed>("/sign-in/email", person);
    expect(signed.data.user).toMatchObject({ id: userId, tenantId: id });
    const kept = instance.browser({ "x-tenant-id": id });
    for (const [name, value] of browser.cookies) kept.cookies.set(name, value);
    const session = await kept.get<Signed>("/get-session");
    expect(session.data.user).toMatchObject({ id: userId, tenantId: id });
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
