import { getMigrations } from "better-auth/db/migration";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { TenantAuthOptions } from "../src/index";
import type { Browser } from "./support/browser";
import { createDatabase, type TestDatabase } from "./support/database";
import { createInstance, createPlainInstance, type Instance, PASSWORD } from "./support/instance";
import { statementsFor } from "./support/markdown";
import { databases } from "./support/servers";

const GUIDE = "docs/adding.md";

/**
 * What takes better-auth's unique index on the e-mail alone away: the statements of the guide.
 * SQLite builds the table anew, and the guide says to list one's own columns there.
 */
async function dropOldIndex(database: TestDatabase) {
  const statements = statementsFor(database.kind, GUIDE, "3. The old index on the e-mail");
  for (const statement of statements) await database.query(withOwnColumns(statement));
}

const withOwnColumns = (sql: string) =>
  sql
    .replace(
      `"tenantId" text`,
      `"role" text, "banned" integer, "banReason" text, "banExpires" date, "tenantId" text`,
    )
    .replace(
      `"updatedAt", "tenantId"`,
      `"updatedAt", "role", "banned", "banReason", "banExpires", "tenantId"`,
    );

/** The index on accounts that new tables have from the start. */
async function addAccountIndex(database: TestDatabase) {
  const statements = statementsFor(database.kind, GUIDE, "4. An index on accounts");
  for (const statement of statements) await database.query(statement);
}

interface SessionAnswer {
  user: { id: string; email: string; tenantId: string | null };
  session: { tenantId: string | null };
}

const OLD_EMAIL = "old@example.com";
const person = (email: string) => ({ name: "Somebody", email, password: PASSWORD });

describe.each(databases)("an application that had users before, on %s", (kind) => {
  let database: TestDatabase;
  let oldBrowser: Browser;
  let oldId: string;

  beforeEach(async () => {
    database = await createDatabase(kind);
    onTestFinished(() => database.close());
    const plain = await createPlainInstance(database);
    oldBrowser = plain.browser();
    const answer = await oldBrowser.post<{ user: { id: string } }>(
      "/sign-up/email",
      person(OLD_EMAIL),
    );
    expect(answer.status).toBe(200);
    oldId = answer.data.user.id;
  });

  /** The application as it is from now on: with the plugin, and with the migrations run. */
  const install = (tenant?: TenantAuthOptions) => createInstance({ database, tenant });

  const signUp = (instance: Instance, tenantId: string, email: string) =>
    instance.browser().post<{ user: { id: string } }>("/tenant/sign-up/email", {
      ...person(email),
      tenantId,
    });

  async function counts(instance: Instance) {
    const found: Record<string, number> = {};
    for (const table of ["user", "account", "session", "verification"]) {
      found[table] = await instance.rows(table);
    }
    return found;
  }

  it("keeps its users, who belong to the platform and can sign in", async () => {
    const instance = await install();
    const browser = instance.browser();
    const answer = await browser.post<SessionAnswer>("/sign-in/email", person(OLD_EMAIL));
    expect(answer.status).toBe(200);
    expect(answer.data.user).toMatchObject({ id: oldId, tenantId: null });
    const session = await browser.get<SessionAnswer>("/get-session");
    expect(session.data).toMatchObject({ user: { tenantId: null }, session: { tenantId: null } });
  });

  it("keeps its sessions: old cookies are good, on the platform only", async () => {
    const instance = await install();
    const { id: tenantId } = await instance.createTenant();
    const browser = instance.browser();
    for (const [name, value] of oldBrowser.cookies) browser.cookies.set(name, value);
    const there = await browser.get("/get-session", { headers: { "x-tenant-id": tenantId } });
    expect([there.status, there.data]).toEqual([200, null]);
    const here = await browser.get<SessionAnswer>("/get-session");
    expect(here.data).toMatchObject({
      user: { id: oldId, tenantId: null },
      session: { tenantId: null },
    });
    expect((await browser.post("/update-user", { name: "New name" })).status).toBe(200);
  });

  it("R3: shows none of its users to a tenant", async () => {
    const instance = await install();
    const { id: tenantId } = await instance.createTenant();
    const answer = await instance
      .browser()
      .post("/tenant/sign-in/email", { ...person(OLD_EMAIL), tenantId });
    expect([answer.status, answer.code]).toEqual([401, "INVALID_EMAIL_OR_PASSWORD"]);
  });

  it("has tenants at once, for e-mails that it did not know", async () => {
    const instance = await install();
    const { id: tenantId } = await instance.createTenant();
    const answer = await signUp(instance, tenantId, "new@example.com");
    expect(answer.status).toBe(200);
    expect(answer.data.user).toMatchObject({ tenantId });
  });

  it.each([OLD_EMAIL, "unique.tenant@example.com"])(
    "refuses %s in a tenant while the old index is there, and says what to do",
    async (email) => {
      const instance = await install();
      const { id: tenantId } = await instance.createTenant();
      if (email !== OLD_EMAIL) await instance.signUp(null, email);
      const before = await counts(instance);
      instance.logs.length = 0;
      const browser = instance.browser();
      const answer = await browser.post("/tenant/sign-up/email", { ...person(email), tenantId });
      expect(answer.status).toBe(422);
      expect(browser.cookies.size).toBe(0);
      expect(await counts(instance)).toEqual(before);
      const advice = instance.logs.filter((line) => line.includes("keepEmailGloballyUnique"));
      expect(advice).toHaveLength(1);
      expect(advice[0]).toMatch(/^error .*unique index on the e-mail alone.*Drop that index/);
    },
  );

  it("gives no such advice about an e-mail that is taken in the tenant itself", async () => {
    const instance = await install();
    const { id: tenantId } = await instance.createTenant();
    expect((await signUp(instance, tenantId, "new@example.com")).status).toBe(200);
    const again = await signUp(instance, tenantId, "new@example.com");
    expect([again.status, again.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
    expect(instance.logs.join("\n")).not.toContain("keepEmailGloballyUnique");
  });

  it("takes the same e-mail in tenants once the old index is dropped", async () => {
    const instance = await install();
    const [a, b] = [await instance.createTenant(), await instance.createTenant()];
    const before = await counts(instance);
    await dropOldIndex(database);
    expect(await counts(instance)).toEqual(before);

    const inA = await signUp(instance, a.id, OLD_EMAIL);
    const inB = await signUp(instance, b.id, OLD_EMAIL);
    expect([inA.status, inB.status]).toEqual([200, 200]);
    expect(new Set([oldId, inA.data.user.id, inB.data.user.id]).size).toBe(3);

    const again = await signUp(instance, a.id, OLD_EMAIL);
    expect([again.status, again.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
    const platform = await instance.browser().post("/sign-up/email", person(OLD_EMAIL));
    expect([platform.status, platform.code]).toEqual([
      422,
      "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL",
    ]);
    expect(await instance.rows("user", "email = ?", [OLD_EMAIL])).toBe(3);

    const signIn = await instance.browser().post("/sign-in/email", person(OLD_EMAIL));
    expect(signIn.data).toMatchObject({ user: { id: oldId } });
  });

  it("keeps the unique index on tenant and e-mail, and its foreign keys, after that", async () => {
    const instance = await install();
    await dropOldIndex(database);
    const columns = ["id", "name", "email", "emailVerified", "createdAt", "updatedAt", "tenantId"];
    const list = columns.map(database.quote).join(", ");
    const values = columns.map((c) => (c === "id" ? "'copy'" : database.quote(c))).join(", ");
    const table = database.quote("user");
    await expect(
      database.query(`insert into ${table} (${list}) select ${values} from ${table}`),
    ).rejects.toThrow(/unique|duplicate/i);
    if (kind === "sqlite") expect(await database.query("pragma foreign_key_check")).toEqual([]);
    expect(await instance.rows("session", `${database.quote("userId")} = ?`, [oldId])).toBe(1);
    await database.query(`delete from ${table} where id = ?`, [oldId]);
    expect(await instance.rows("session")).toBe(0);
    expect(await instance.rows("account")).toBe(0);
  });

  it("is migrated once: a second run plans nothing, before and after the index is dropped", async () => {
    const instance = await install();
    const plan = async () => {
      const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(
        instance.auth.options,
      );
      return [...toBeCreated, ...toBeAdded, ...toBeAddedIndexes];
    };
    expect(await plan()).toEqual([]);
    await dropOldIndex(database);
    expect(await plan()).toEqual([]);
  });

  it("takes the index on accounts, after which a second run plans nothing either", async () => {
    const instance = await install();
    await addAccountIndex(database);
    const { toBeAdded, toBeAddedIndexes } = await getMigrations(instance.auth.options);
    expect([...toBeAdded, ...toBeAddedIndexes]).toEqual([]);
    const { id: tenantId } = await instance.createTenant();
    expect((await signUp(instance, tenantId, "new@example.com")).status).toBe(200);
    expect((await oldBrowser.post("/sign-in/email", person(OLD_EMAIL))).status).toBe(200);
  });

  it("needs no index dropped with keepEmailGloballyUnique", async () => {
    const instance = await install({ keepEmailGloballyUnique: true });
    const { id: tenantId } = await instance.createTenant();
    const before = await counts(instance);
    const answer = await signUp(instance, tenantId, OLD_EMAIL);
    expect([answer.status, answer.code]).toEqual([422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL"]);
    expect(await counts(instance)).toEqual(before);
    expect((await signUp(instance, tenantId, "new@example.com")).status).toBe(200);
    expect(instance.logs.join("\n")).not.toContain("Drop that index");
  });
});
