import { describe, expect, it } from "vitest";
import type { Browser } from "../support/browser";
import { createInstance, type Instance, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

const EMAIL = "same@example.com";
const CONFINED = ["user", "session", "account", "verification"] as const;

const auth = {
  socialProviders: { google: { clientId: "global-id", clientSecret: "global-secret" } },
  emailAndPassword: { enabled: true, sendResetPassword: async () => {} },
};

/** Somebody with two sessions, a reset token and an OAuth state; the tenant has a config. */
async function populate(instance: Instance, tenantId: string | null) {
  const person = await instance.signUp(tenantId, EMAIL);
  const prefix = tenantId === null ? "" : "/tenant";
  const named = tenantId === null ? {} : { tenantId };
  const second = instance.browser();
  const signedIn = await second.post(`${prefix}/sign-in/email`, {
    ...named,
    email: EMAIL,
    password: PASSWORD,
  });
  const headers: Record<string, string> = tenantId === null ? {} : { "x-tenant-id": tenantId };
  const reset = await instance.browser(headers).post("/request-password-reset", { email: EMAIL });
  const state = await instance
    .browser()
    .post(`${prefix}/sign-in/social`, { ...named, provider: "google", callbackURL: "/" });
  expect([signedIn.status, reset.status, state.status]).toEqual([200, 200, 200]);
  if (tenantId !== null) {
    const credentials = { clientId: "id", clientSecret: "secret" };
    for (const providerId of ["google", "github"]) {
      await instance.api.registerTenantOAuthConfig({
        body: { tenantId, providerId, ...credentials },
      });
    }
  }
  return { user: person.user, browsers: [person.browser, second] };
}

/** Every row of a tenant, or of the platform; the tenant's own row and its configs as well. */
async function rowsOf({ database }: Instance, tenantId: string | null) {
  const rows: Record<string, Record<string, unknown>[]> = {};
  const column = database.quote("tenantId");
  for (const table of [...CONFINED, "tenantOauthConfig"]) {
    const name = database.quote(table);
    const sql = `select * from ${name} where ${column} = ? order by id`;
    rows[table] = await database.query(sql, [tenantId ?? ""]);
  }
  rows.tenant = await database.query("select * from tenant where id = ?", [tenantId ?? ""]);
  return rows;
}

const counts = (rows: Record<string, unknown[]>) =>
  Object.fromEntries(Object.entries(rows).map(([table, { length }]) => [table, length]));

const FULL = { user: 1, session: 2, account: 1, verification: 2, tenantOauthConfig: 2, tenant: 1 };
const EMPTY = { user: 0, session: 0, account: 0, verification: 0, tenantOauthConfig: 0, tenant: 0 };

async function expectSignedOut(browser: Browser, tenantId: string) {
  for (const headers of [browser.headers, { "x-tenant-id": tenantId }]) {
    const window = browser.fork(headers);
    expect((await window.get("/get-session")).data).toBeNull();
  }
}

/** Two populated tenants, a populated platform, and an operator. */
async function populatedWorld(database: (typeof databases)[number]) {
  const instance = await createInstance({ database, auth });
  const doomed = await instance.createTenant("doomed");
  const other = await instance.createTenant("other");
  const operator = await instance.operator();
  const people = {
    doomed: await populate(instance, doomed.id),
    other: await populate(instance, other.id),
    platform: await populate(instance, null),
  };
  return { instance, doomed, other, people, operator: operator.browser };
}

describe.each(databases)("deleting a tenant on %s", (database) => {
  it("deletes everything of it, and nothing of anybody else", async () => {
    const { instance, doomed, other, operator } = await populatedWorld(database);
    expect(counts(await rowsOf(instance, doomed.id))).toEqual(FULL);
    const ofOther = await rowsOf(instance, other.id);
    const ofPlatform = await rowsOf(instance, null);
    expect(counts(ofOther)).toEqual(FULL);
    // The operator is there as well, and the platform has no configs.
    expect(counts(ofPlatform)).toEqual({
      ...FULL,
      user: 2,
      session: 3,
      account: 2,
      tenantOauthConfig: 0,
      tenant: 0,
    });
    const { status, data } = await operator.post("/tenant/delete", { tenantId: doomed.id });
    expect([status, data]).toEqual([200, { success: true }]);
    expect(counts(await rowsOf(instance, doomed.id))).toEqual(EMPTY);
    expect(await rowsOf(instance, other.id)).toEqual(ofOther);
    expect(await rowsOf(instance, null)).toEqual(ofPlatform);
    // No row has slipped into some third place either.
    expect(await instance.rows("user")).toBe(3);
    expect(await instance.rows("session")).toBe(5);
    expect(await instance.rows("account")).toBe(3);
    expect(await instance.rows("verification")).toBe(4);
  });

  it("does the same through the server API", async () => {
    const { instance, doomed, other } = await populatedWorld(database);
    const ofOther = await rowsOf(instance, other.id);
    const body = { tenantId: doomed.id };
    expect(await instance.api.deleteTenant({ body })).toEqual({ success: true });
    expect(counts(await rowsOf(instance, doomed.id))).toEqual(EMPTY);
    expect(await rowsOf(instance, other.id)).toEqual(ofOther);
  });

  it("ends its sessions, and theirs only", async () => {
    const { doomed, people, operator, instance } = await populatedWorld(database);
    await operator.post("/tenant/delete", { tenantId: doomed.id });
    for (const browser of people.doomed.browsers) {
      const used = await browser.fork().post("/update-user", { name: "Still here" });
      expect([used.status, used.code]).toEqual([401, "UNAUTHORIZED"]);
      await expectSignedOut(browser, doomed.id);
    }
    for (const { user, browsers } of [people.other, people.platform]) {
      for (const browser of browsers) {
        const { data } = await browser.get<{ user: { id: string } }>("/get-session");
        expect(data.user.id).toBe(user.id);
      }
    }
    const body = { tenantId: doomed.id, email: EMAIL, password: PASSWORD };
    const again = await instance.browser().post("/tenant/sign-in/email", body);
    expect([again.status, again.code]).toEqual([404, "TENANT_NOT_FOUND"]);
  });

  it("gives nothing back to a tenant that takes the slug later", async () => {
    const { instance, doomed, people } = await populatedWorld(database);
    await instance.api.deleteTenant({ body: { tenantId: doomed.id } });
    const next = await instance.createTenant("doomed");
    expect(counts(await rowsOf(instance, next.id))).toEqual({ ...EMPTY, tenant: 1 });
    for (const browser of people.doomed.browsers) await expectSignedOut(browser, next.id);
    const signedUp = await instance.signUp(next.id, EMAIL);
    expect(signedUp.user.id).not.toBe(people.doomed.user.id);
  });

  // MySQL runs no triggers on rows that go with the row they refer to, so there is no way to make
  // their deletion fail.
  const goWithTheirUser = database === "mysql" ? ["session", "account"] : [];
  const refusing = ["tenant", ...CONFINED].filter((table) => !goWithTheirUser.includes(table));
  it.each(refusing)(
    "is all or nothing: nothing is gone when a %s cannot be deleted, and the next try works",
    async (table) => {
      const { instance, doomed, other, people, operator } = await populatedWorld(database);
      const before = await rowsOf(instance, doomed.id);
      const ofOther = await rowsOf(instance, other.id);
      const release = await forbidDeletion(instance, table);
      const failed = await operator.post("/tenant/delete", { tenantId: doomed.id });
      expect(failed.status).toBe(500);
      expect(JSON.stringify(failed.data)).not.toContain("kept");
      expect(await rowsOf(instance, doomed.id)).toEqual(before);
      for (const browser of people.doomed.browsers) {
        const { data } = await browser.get<{ user: { id: string } }>("/get-session");
        expect(data.user.id).toBe(people.doomed.user.id);
      }
      await release();
      const { status } = await operator.post("/tenant/delete", { tenantId: doomed.id });
      expect(status).toBe(200);
      expect(counts(await rowsOf(instance, doomed.id))).toEqual(EMPTY);
      expect(await rowsOf(instance, other.id)).toEqual(ofOther);
    },
  );

  it("happens once, however many ask for it at once", async () => {
    const { instance, doomed, operator } = await populatedWorld(database);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => operator.post("/tenant/delete", { tenantId: doomed.id })),
    );
    const outcomes = new Set(answers.map(({ status, code }) => `${status} ${code}`));
    expect([...outcomes].every((one) => /^200 |^404 TENANT_NOT_FOUND$/.test(one))).toBe(true);
    expect(outcomes).toContain("200 undefined");
    expect(counts(await rowsOf(instance, doomed.id))).toEqual(EMPTY);
  });
});

/** Makes the database refuse to delete rows of a table, until the answer is called. */
async function forbidDeletion({ database }: Instance, table: string) {
  const name = database.quote(table);
  const trigger = `create trigger keep_rows before delete on ${name} for each row`;
  if (database.kind === "sqlite") {
    await database.query(`${trigger} begin select raise(abort, 'kept'); end`);
  } else if (database.kind === "mysql") {
    await database.query(`${trigger} signal sqlstate '45000' set message_text = 'kept'`);
  } else {
    await database.query(
      "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'kept'; end $$",
    );
    await database.query(`${trigger} execute function refuse()`);
  }
  const of = database.kind === "postgres" ? ` on ${name}` : "";
  return () => database.query(`drop trigger keep_rows${of}`);
}
