import { describe, expect, it } from "vitest";
import { runInTenant } from "../../src/index";
import type { Browser } from "../support/browser";
import { type DatabaseKind, databases, type TestDatabase } from "../support/database";
import { mapStorage } from "../support/stores";
import { createWorld, EMAIL, outcome, PLACES, type Place } from "../support/world";

const CONFINED = ["user", "session", "account", "verification"];
const FULL = { user: 1, session: 2, account: 1, verification: 2, tenantOauthConfig: 2 };
const EMPTY = { user: 0, session: 0, account: 0, verification: 0, tenantOauthConfig: 0 };

/** Jane in all places, with two sessions, a reset token and an OAuth state; tenants with configs. */
async function createFull(database: DatabaseKind) {
  const client = { clientId: "id", clientSecret: "secret" };
  const auth = { socialProviders: { google: client } };
  const world = await createWorld({ database, auth });
  const operator = await world.operator();
  const windows = {} as Record<Place, Browser[]>;
  for (const place of PLACES) {
    const first = await world.as("jane", place);
    const { person: second } = await world.signIn(place);
    windows[place] = [first, second];
    const social = { provider: "google", callbackURL: "/" };
    const asked = [
      await world.at(place).post("/request-password-reset", { email: EMAIL }),
      await world.at(place).post("/sign-in/social", social),
    ];
    expect(asked.map(({ status }) => status)).toEqual([200, 200]);
    const tenantId = world.ids[place];
    for (const providerId of tenantId ? ["google", "github"] : []) {
      const body = { tenantId: tenantId ?? "", providerId, ...client };
      await world.api.registerTenantOAuthConfig({ body });
    }
  }
  const remove = () => operator.post("/tenant/delete", { tenantId: world.ids.acme });
  const counts = async (where: string | null = "acme") => {
    const { tenant, ...rows } = await world.everythingIn(where);
    const lengths = Object.entries(rows).map(([model, list]) => [model, list.length]);
    return Object.fromEntries(lengths) as Record<string, number>;
  };
  const expectSignedIn = async (place: Place) => {
    const { id } = await world.as("jane", place);
    for (const window of windows[place]) expect(await world.whoIs(window)).toMatchObject({ id });
  };
  return { world, windows, remove, counts, expectSignedIn };
}

describe.each(databases)("deleting a tenant on %s", (database) => {
  it("deletes everything of it and nothing of anybody else; nothing comes back with its slug", async () => {
    const { world, windows, remove, counts, expectSignedIn } = await createFull(database);
    expect([await counts(), await counts("globex")]).toEqual([FULL, FULL]);
    const others = async () => [
      await world.everythingIn("globex"),
      await world.everythingIn("platform"),
      (await world.api.listTenants()).filter(({ slug }) => slug !== "acme"),
    ];
    const before = await others();
    const total = async () => {
      const sizes = await Promise.all(CONFINED.map((table) => world.rows(table)));
      return sizes.reduce((sum, size) => sum + size);
    };
    const all = await total();
    const { status, data } = await remove();
    expect([status, data]).toEqual([200, { success: true }]);
    expect(await counts()).toEqual(EMPTY);
    expect(await others()).toEqual(before);
    // No row has slipped into some third place either.
    expect(await total()).toBe(all - 6);

    for (const window of windows.acme) {
      const used = await window.fork({}).post("/update-user", { name: "Still here" });
      expect(outcome(used)).toEqual([401, "UNAUTHORIZED"]);
      expect(await world.whoIs(window.fork({}))).toBeNull();
    }
    await expectSignedIn("globex");
    await expectSignedIn("platform");
    expect(outcome(await world.signIn("acme"))).toEqual([404, "TENANT_NOT_FOUND"]);

    const next = await world.createTenant("acme");
    expect(await counts(next.id)).toEqual(EMPTY);
    for (const window of windows.acme) expect(await world.whoIs(window, next.id)).toBeNull();
    const { id } = await world.as("jane", "acme");
    expect((await world.signUp(next.id)).id).not.toBe(id);
  });

  // MySQL runs no triggers on rows that go with the row they refer to, so there is no way to make
  // their deletion fail.
  const goWithTheirUser = database === "mysql" ? ["session", "account"] : [];
  const refusing = ["tenant", ...CONFINED].filter((table) => !goWithTheirUser.includes(table));
  it("is all or nothing: nothing is gone when a row cannot be deleted, and the next try works", async () => {
    const { world, remove, counts, expectSignedIn } = await createFull(database);
    for (const table of refusing) {
      const release = await forbidDeletion(world.database, table);
      const failed = await world.unchanged(remove);
      expect([table, failed.status]).toEqual([table, 500]);
      expect(JSON.stringify(failed.data)).not.toContain("kept");
      await expectSignedIn("acme");
      await release();
    }
    const before = await counts("globex");
    expect((await remove()).status).toBe(200);
    expect([await counts(), await counts("globex")]).toEqual([EMPTY, before]);
  });

  it("happens once, however many ask for it at once", async () => {
    const { remove, counts } = await createFull(database);
    const answers = await Promise.all(Array.from({ length: 10 }, remove));
    const outcomes = new Set(answers.map((answer) => outcome(answer).join(" ")));
    outcomes.delete("404 TENANT_NOT_FOUND");
    expect([...outcomes]).toEqual(["200 "]);
    expect(await counts()).toEqual(EMPTY);
  });
});

/** Makes the database refuse to delete rows of a table, until the answer is called. */
async function forbidDeletion({ kind, quote, query }: TestDatabase, table: string) {
  const trigger = `create trigger keep_rows before delete on ${quote(table)} for each row`;
  const refuse = "create or replace function refuse() returns trigger language plpgsql as";
  const body = {
    sqlite: "begin select raise(abort, 'kept'); end",
    mysql: "signal sqlstate '45000' set message_text = 'kept'",
    postgres: "execute function refuse()",
  }[kind];
  if (kind === "postgres") await query(`${refuse} $$ begin raise exception 'kept'; end $$`);
  await query(`${trigger} ${body}`);
  return () => query(`drop trigger keep_rows${kind === "postgres" ? ` on ${quote(table)}` : ""}`);
}

it("threat: sessions survive deletion. Nothing of its users is left in secondary storage, also of more than are read at a time", async () => {
  const { entries, storage } = mapStorage();
  const world = await createWorld({ auth: { secondaryStorage: storage } });
  const { acme, platform } = await world.janes();
  const tenantId = world.ids.acme;
  await world.database.query(
    `insert into "user" ("id", "name", "email", "emailVerified", "tenantId", "createdAt", "updatedAt")
     with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 10100)
     select 'many-' || n, 'Many', n || '@example.com', 1, ?, '2020-01-01', '2020-01-01' from numbers`,
    [tenantId],
  );
  await runInTenant(tenantId, async () => {
    for (let n = 1; n <= 10_100; n++) {
      await storage.set(`active-sessions-many-${n}`, JSON.stringify([{ token: `token-${n}` }]));
      await storage.set(`token-${n}`, "a session");
    }
  });
  const mentions = (text: string) =>
    [...entries].filter((entry) => entry.some((part) => part.includes(text))).length;
  for (const text of [acme.token, acme.id, "many-", "token-"]) {
    expect(mentions(text)).toBeGreaterThan(0);
  }
  await world.api.deleteTenant({ body: { tenantId } });
  expect(await world.rows("user")).toBe(2);
  for (const text of [acme.token, acme.id, "many-", "token-"]) expect(mentions(text)).toBe(0);
  expect(mentions(platform.token)).toBeGreaterThan(0);
  expect(await world.whoIs(platform)).toMatchObject({ id: platform.id });
});
