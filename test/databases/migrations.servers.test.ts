import { getMigrations } from "better-auth/db/migration";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  createDatabase,
  type DatabaseKind,
  databases,
  idKindsOn,
  type TestDatabase,
} from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { sample } from "../support/matrix";
import { generateId } from "./store";

const TYPES: Record<DatabaseKind, string> = {
  sqlite: "select type from pragma_table_info(?) where name = ?",
  postgres:
    "select data_type as type from information_schema.columns where table_name = ? and column_name = ?",
  mysql:
    "select column_type as type from information_schema.columns where table_schema = database() and table_name = ? and column_name = ?",
};

async function typeOf(database: TestDatabase, table: string, column: string): Promise<string> {
  const [row] = await database.query(TYPES[database.kind], [table, column]);
  return String(row?.type).toLowerCase();
}

async function plan({ auth }: Instance) {
  const { toBeCreated, toBeAdded, toBeAddedIndexes } = await getMigrations(auth.options);
  return [...toBeCreated, ...toBeAdded, ...toBeAddedIndexes];
}

const cases = sample(
  databases.flatMap((kind) => idKindsOn(kind).map((ids) => ({ kind, ids }))),
  2,
);

describe.each(cases)("better-auth's migrations on $kind, $ids ids", ({ kind, ids }) => {
  const auth = { advanced: { database: { generateId: generateId(ids) } } };

  it("an empty database: ids and what refers to them are of one type, and the references hold", async () => {
    const instance = await createInstance({ database: kind, auth });
    const { database, api, createTenant, rows } = instance;
    expect(await plan(instance)).toEqual([]);
    const idType = await typeOf(database, "tenant", "id");
    expect(idType).toMatch({ text: /text|char/, uuid: /uuid|text|char/, serial: /int/ }[ids]);
    expect(await typeOf(database, "tenantOauthConfig", "tenantId")).toBe(idType);
    // Text with every kind of ids: the platform has none.
    expect(await typeOf(database, "user", "tenantId")).toMatch(/text|char/);

    const [a, b] = [await createTenant(), await createTenant()];
    for (const { id: tenantId } of [a, b]) {
      const body = { tenantId, providerId: "google", clientId: "id", clientSecret: "secret" };
      await api.registerTenantOAuthConfig({ body });
    }
    await database.query(`delete from ${database.quote("tenant")} where id = ?`, [a.id]);
    expect(await rows("tenantOauthConfig")).toBe(1);
    expect(await api.listTenantOAuthConfigs({ query: { tenantId: b.id } })).toHaveLength(1);
  });

  it("a database that has tenants: they are active, have no policy, and users stay signed in", async () => {
    const database = await createDatabase(kind);
    onTestFinished(() => database.close());
    const before = await createInstance({ database, auth });
    const { id, slug } = await before.createTenant();
    const { browser, user } = await before.signUp(id);
    // As it was before there were these.
    for (const column of ["status", "deleteAt", "policy", "sessionsEndedAt"]) {
      const { quote } = database;
      await database.query(`alter table ${quote("tenant")} drop column ${quote(column)}`);
    }

    const instance = await createInstance({ database, auth });
    expect(await plan(instance)).toEqual([]);
    const tenant = await instance.api.getTenant({ query: { slug } });
    expect(tenant).toMatchObject({ id, status: "active", deleteAt: null, policy: null });
    const again = instance.browser();
    for (const [name, value] of browser.cookies) again.cookies.set(name, value);
    expect((await again.get("/get-session")).data).toMatchObject({ user: { id: user.id } });
    await instance.api.updateTenant({ body: { tenantId: id, status: "suspended" } });
    expect((await again.get("/get-session")).data).toBeNull();
    expect(await instance.api.listTenants()).toMatchObject([{ id, status: "suspended" }]);
  });
});
