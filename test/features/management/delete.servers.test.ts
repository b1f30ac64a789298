import { apiKey } from "@better-auth/api-key";
import { deviceAuthorization, organization, twoFactor } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runInTenant } from "../../../src/index";
import type { Browser } from "../../support/browser";
import { type DatabaseKind, databases } from "../../support/database";
import { createInstance, type Instance, PASSWORD } from "../../support/instance";
import { createMemory, mapStorage, type Row } from "../../support/stores";
import {
  createWorld,
  EMAIL,
  outcome,
  PLACES,
  type Place,
  type World,
  type WorldOptions,
} from "../../support/world";

afterEach(() => vi.useRealTimers());

const FULL = { user: 1, session: 2, account: 1, verification: 2, tenantOauthConfig: 2 };
const EMPTY = { user: 0, session: 0, account: 0, verification: 0, tenantOauthConfig: 0 };

/** Jane in all places, with two sessions, a reset token and an OAuth state; tenants with configs. */
async function createFull(database: DatabaseKind) {
  const client = { clientId: "id", clientSecret: "secret" };
  const world = await createWorld({ database, auth: { socialProviders: { google: client } } });
  const operator = await world.operator();
  const windows = {} as Record<Place, Browser[]>;
  for (const place of PLACES) {
    const first = await world.as("jane", place);
    windows[place] = [first, (await world.signIn(place)).person];
    const social = { provider: "google", callbackURL: "/" };
    await world.at(place).post("/request-password-reset", { email: EMAIL });
    await world.at(place).post("/sign-in/social", social);
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
  it("deletes all its data and no other data; nothing comes back with its slug", async () => {
    const { world, windows, remove, counts, expectSignedIn } = await createFull(database);
    expect([await counts(), await counts("globex")]).toEqual([FULL, FULL]);
    const { status, data } = await world.touchesOnly("acme", remove);
    expect([status, data]).toEqual([200, { success: true }]);
    expect(await counts()).toEqual(EMPTY);
    // No row has slipped into some third place either: Jane is left twice, beside the operator.
    expect([await world.rows("user"), await world.rows("verification")]).toEqual([3, 4]);
    for (const window of windows.acme) {
      const used = await window.fork({}).post("/update-user", { name: "Still here" });
      expect(outcome(used)).toEqual([401, "UNAUTHORIZED"]);
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
});

// Without foreign keys, and with them.
it.each(["the memory adapter", "SQLite"])(
  "R10: on %s it leaves no row of its users in models of plugins, scoped or not",
  async (where) => {
    const memory = where === "SQLite" ? undefined : createMemory();
    const scopedModels = ["organization", "member", "invitation", "apikey"];
    const world = await createWorld({
      ...(memory && { database: memory.database, migrate: false }),
      plugins: [organization(), apiKey(), twoFactor()],
      tenant: { scopedModels },
    });
    const read = async (model: string): Promise<Row[]> =>
      memory ? (memory.tables[model] ?? []) : world.database.query(`select * from "${model}"`);
    for (const place of PLACES) {
      const person = await world.as("jane", place);
      for (const [path, body] of [
        ["/organization/create", { name: "Org", slug: person.id }],
        ["/organization/invite-member", { email: "invited@example.com", role: "member" }],
        ["/api-key/create", { name: "Robot" }],
        ["/two-factor/enable", { password: PASSWORD }],
      ] as const) {
        expect([path, (await person.post(path, body)).status]).toEqual([path, 200]);
      }
    }
    const { id } = await world.as("jane", "acme");
    await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
    for (const model of ["user", "session", "account", "twoFactor", ...scopedModels]) {
      const rows = await read(model);
      expect([model, rows.length]).toEqual([model, 2]);
      expect(JSON.stringify(rows).includes(id), model).toBe(false);
    }
  },
);

it("threat: sessions survive deletion. Nothing of its users is left in secondary storage, also of more than are read at a time", async () => {
  const { entries, storage } = mapStorage();
  const world = await createWorld({
    plugins: [apiKey({ storage: "secondary-storage" })],
    tenant: { scopedModels: ["apikey"] },
    auth: { secondaryStorage: storage },
  });
  const { acme, platform } = await world.janes();
  for (const jane of [acme, platform]) await jane.post("/api-key/create", {});
  const tenantId = world.ids.acme;
  await world.database.query(
    `insert into "user" ("id", "name", "email", "emailVerified", "tenantId", "createdAt", "updatedAt")
     with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 5100)
     select 'many-' || n, 'Many', n || '@example.com', 1, ?, '2020-01-01', '2020-01-01' from numbers`,
    [tenantId],
  );
  await runInTenant(tenantId, async () => {
    for (let n = 1; n <= 5_100; n++) {
      await storage.set(`active-sessions-many-${n}`, JSON.stringify([{ token: `token-${n}` }]));
      await storage.set(`token-${n}`, "a session");
    }
  });
  const mentions = (text: string) =>
    [...entries].filter((entry) => entry.some((part) => part.includes(text))).length;
  const doomed = [acme.token, acme.id, "many-", "token-"];
  for (const text of doomed) expect(mentions(text)).toBeGreaterThan(0);
  await world.api.deleteTenant({ body: { tenantId } });
  expect(await world.rows("user")).toBe(2);
  expect(doomed.map(mentions)).toEqual([0, 0, 0, 0]);
  expect(mentions(platform.id)).toBeGreaterThan(2);
  expect(await world.whoIs(platform)).toMatchObject({ id: platform.id });
});

const ORGANIZATION = ["organization", "member", "invitation"];
const OWNERS = [
  { configId: "default" },
  { configId: "organization", references: "organization" as const },
];

/** Somebody at a place makes a key of their own and one of an organization. */
async function makeKeys(world: World, place: Place) {
  const person = await world.as("jane", place);
  const body = { name: "Org", slug: person.id };
  const { data: org } = await person.post<{ id: string }>("/organization/create", body);
  const ofOrganization = { configId: "organization", organizationId: org.id };
  for (const body of [{}, ofOrganization]) {
    expect((await person.post("/api-key/create", body)).status).toBe(200);
  }
  return person;
}

it("R10: rows of its users and organizations in shared models are deleted with it", async () => {
  const world = await createWorld({
    plugins: [organization(), apiKey(OWNERS), deviceAuthorization()],
    tenant: { scopedModels: ORGANIZATION, sharedModels: ["apikey", "deviceCode"] },
  });
  for (const place of PLACES) {
    const person = await makeKeys(world, place);
    const device = { client_id: "tv" };
    const { data } = await person.post<{ user_code: string }>("/device/code", device);
    await person.get("/device", { query: { user_code: data.user_code } });
    await person.post("/device/approve", { userCode: data.user_code });
  }
  expect([await world.rows("apikey"), await world.rows("deviceCode")]).toEqual([6, 3]);
  await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
  expect([await world.rows("apikey"), await world.rows("deviceCode")]).toEqual([4, 2]);
});

it.each([false, true])(
  "R10: its API keys go from the secondary storage, of users and of organizations, with fallbackToDatabase: %s",
  async (fallbackToDatabase) => {
    const { entries, storage: secondaryStorage } = mapStorage();
    const storage = { storage: "secondary-storage", fallbackToDatabase } as const;
    const world = await createWorld({
      plugins: [organization(), apiKey(OWNERS.map((owner) => ({ ...owner, ...storage })))],
      tenant: { scopedModels: [...ORGANIZATION, "apikey"] },
      auth: { secondaryStorage },
    });
    const { acme, globex } = world.ids;
    for (const place of ["acme", "globex"] as const) await makeKeys(world, place);
    const count = (id: string) =>
      [...entries.keys()].filter((key) => key.includes(`${id}:api-key:`)).length;
    const before = count(globex);
    expect([count(acme), before >= 4]).toEqual([before, true]);
    await world.api.deleteTenant({ body: { tenantId: acme } });
    expect([count(acme), count(globex)]).toEqual([0, before]);
  },
);

const DAY = 24 * 60 * 60;
const later = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);
const freeze = () => vi.useFakeTimers({ toFake: ["Date"], now: new Date() });
const NOTHING = { deleted: [], failed: [] };

async function start(options: WorldOptions = {}) {
  const world = await createWorld(options);
  const operator = await world.operator();
  const jane = await world.as("jane", "acme");
  const tenantId = world.ids.acme;
  const remove = (body: object) =>
    operator.post<{ deleteAt?: string }>("/tenant/delete", { tenantId, ...body });
  const take = (status = "active") => operator.post("/tenant/update", { tenantId, status });
  const acme = () => world.api.getTenant({ query: { id: tenantId } });
  return { ...world, operator, jane, tenantId, remove, take, acme };
}

describe("POST /tenant/delete", () => {
  it("with dryRun deletes nothing, and counts every isolated and every scoped model", async () => {
    const { api, tenantId, jane, acme, remove, signUp, unchanged } = await start({
      plugins: [organization()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    await signUp("acme", "second@example.com");
    await jane.post("/organization/create", { name: "O", slug: "o" });
    const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
    await api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
    await signUp("globex");
    const models = { organization: 1, member: 1, invitation: 0, tenantOauthConfig: 1 };
    const expected = { user: 2, session: 2, account: 2, verification: 0, ...models };
    // With a time as well it is still a rehearsal.
    for (const more of [{}, { after: 60 }]) {
      const { status, data } = await unchanged(() => remove({ dryRun: true, ...more }));
      expect([status, data]).toEqual([200, { success: true, dryRun: true, rows: expected }]);
    }
    expect(await acme()).toMatchObject({ status: "active", deleteAt: null });
  });

  it("with after suspends the tenant, keeps all of it, and is taken back before its time", async () => {
    freeze();
    const { api, jane, operator, acme, remove, take, whoIs, signIn } = await start();
    const { data } = await remove({ after: 6 * DAY });
    const deleteAt = new Date(Date.now() + 6 * DAY * 1000);
    expect(data).toEqual({ success: true, deleteAt: deleteAt.toISOString() });
    expect(await acme()).toMatchObject({ status: "deleting", deleteAt });
    expect(await whoIs(jane)).toBeNull();
    expect(outcome(await signIn("acme"))).toEqual([403, "TENANT_SUSPENDED"]);
    const taken = await operator.post("/tenant/create", { name: "Other", slug: "acme" });
    expect(taken.code).toBe("TENANT_ALREADY_EXISTS");
    // It may be put off, or become a mere suspension.
    await remove({ after: 7 * DAY });
    later(7 * DAY - 1);
    expect(await api.purgeTenants()).toEqual(NOTHING);
    expect((await take("suspended")).data).toMatchObject({ status: "suspended", deleteAt: null });
    expect((await take()).data).toMatchObject({ status: "active", deleteAt: null });
    later(60);
    expect(await api.purgeTenants()).toEqual(NOTHING);
    const { person } = await signIn("acme");
    expect(await whoIs(person)).toMatchObject({ id: jane.id });
  });

  it("cannot be taken back, put off or hidden when its time has come", async () => {
    freeze();
    const { api, tenantId, operator, acme, remove, take, rows } = await start();
    await remove({ after: 60 });
    later(60);
    const attempts = [
      await take(),
      await take("suspended"),
      await remove({ after: 60 }),
      await operator.post("/tenant/update", { tenantId, name: "Renamed", status: "active" }),
    ];
    expect(attempts.map(outcome)).toEqual(attempts.map(() => [409, "TENANT_DELETING"]));
    expect(await acme()).toMatchObject({ name: "ACME", status: "deleting" });
    // A purge is not reached over HTTP.
    expect((await operator.post("/tenant/purge")).status).toBe(404);
    expect(await api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
    expect(await api.purgeTenants()).toEqual(NOTHING);
    expect((await take()).code).toBe("TENANT_NOT_FOUND");
    expect(await rows("user")).toBe(1);
  });
});

it("purgeTenants() goes on where one tenant cannot be deleted, and takes that one the next time", async () => {
  const deleted: string[] = [];
  const { api, database, tenantId, remove, ids, rowsIn } = await start({
    tenant: {
      onTenantEvent: (event) => void (/deleted/.test(event.type) && deleted.push(event.tenantId)),
    },
  });
  await remove({ after: 0 });
  await api.deleteTenant({ body: { tenantId: ids.globex, after: 0 } });
  await database.query(
    `create trigger kept before delete on "user" when old."tenantId" = '${tenantId}' begin select raise(abort, 'kept'); end`,
  );
  expect(await api.purgeTenants()).toEqual({ deleted: [ids.globex], failed: [tenantId] });
  expect(await rowsIn("acme", "account")).toHaveLength(1);
  await database.query("drop trigger kept");
  expect(await api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
  expect(deleted).toEqual([ids.globex, tenantId]);
});

const TIMES = ["expiresAt", "createdAt", "updatedAt"];

describe.each(databases)("rows whose tenant is gone, on %s", (database) => {
  it("go with the next purge, and no others", async () => {
    const { world, counts, expectSignedIn } = await createFull(database);
    const { acme: tenantId } = world.ids;
    const { query, quote } = world.database;
    await query(`delete from ${quote("tenant")} where id = ?`, [tenantId]);
    // The database may delete the configs with their tenant.
    expect(await counts()).toMatchObject({ user: 1, session: 2, account: 1, verification: 2 });
    const before = [await counts("globex"), await counts(null)];
    expect(await world.api.purgeTenants()).toEqual(NOTHING);
    expect(await counts()).toEqual(EMPTY);
    expect([await counts("globex"), await counts(null)]).toEqual(before);
    await expectSignedIn("globex");
    await expectSignedIn("platform");
  });

  it("are found behind thousands of rows of others", async () => {
    const world = await createWorld({ database });
    const person = await world.as("jane", "globex");
    const [gone, first] = ["zz-gone", "00-gone"];
    const rows = (tenantId: string, count: number) =>
      Array.from({ length: count }, () => [crypto.randomUUID(), tenantId]);
    const { query, quote } = world.database;
    const columns = ["id", "tenantId", "identifier", "value", ...TIMES].map(quote).join();
    const time = database === "sqlite" ? "2100-01-01" : new Date("2030-01-01");
    const all = [...rows(world.ids.globex, 5_100), ...rows(gone, 3), ...rows(first, 2)];
    for (let start = 0; start < all.length; start += 500) {
      const chunk = all.slice(start, start + 500);
      const values = chunk.map(() => "(?, ?, 'i', 'v', ?, ?, ?)").join(", ");
      const parameters = chunk.flatMap((row) => [...row, time, time, time]);
      await query(`insert into ${quote("verification")} (${columns}) values ${values}`, parameters);
    }
    expect(await world.rows("verification")).toBe(5_105);
    expect(await world.api.purgeTenants()).toEqual(NOTHING);
    expect(await world.rows("verification")).toBe(5_100);
    expect(await world.whoIs(person)).toMatchObject({ id: person.id });
    expect(await world.rows("tenant")).toBe(2);
  });
});

describe.each(databases)("two machines on %s", (kind) => {
  /** Ten tenants whose time has come, or comes in a moment. */
  async function twoMachines(database: DatabaseKind, after = 0) {
    const events: string[] = [];
    const tenant: WorldOptions["tenant"] = {
      onTenantEvent: ({ type, tenantId }) =>
        void (type === "tenant:deleted" && events.push(tenantId)),
    };
    const first = await createInstance({ database, tenant });
    // SQLite has one connection here, and a transaction of the other machine would be in ours.
    const options = { database: first.database, tenant, migrate: false };
    const second: Instance = database === "sqlite" ? first : await createInstance(options);
    const ids: string[] = [];
    for (let count = 0; count < 10; count++) {
      const { id } = await first.createTenant();
      await first.signUp(id);
      ids.push(id);
    }
    for (const tenantId of ids) await first.api.deleteTenant({ body: { tenantId, after } });
    return { first, second, events, ids: ids.sort() };
  }

  it("that purge at once delete each tenant once", async () => {
    const { first, second, events, ids } = await twoMachines(kind);
    const machines = [first, second, first, second];
    const answers = await Promise.all(machines.map(({ api }) => api.purgeTenants()));
    expect(answers.flatMap(({ failed }) => failed)).toEqual([]);
    expect(answers.flatMap(({ deleted }) => deleted).sort()).toEqual(ids);
    expect(events.sort()).toEqual(ids);
    for (const table of ["tenant", "user", "session", "account"]) {
      expect(await first.rows(table), table).toBe(0);
    }
  });

  it("that take a deletion back and do it do not do both", async () => {
    const { first, second, ids } = await twoMachines(kind, 1);
    const purge = first.api.purgeTenants();
    const takings = ids.map((tenantId) =>
      second.api.updateTenant({ body: { tenantId, status: "active" } }).then(
        () => [tenantId],
        () => [],
      ),
    );
    const restored = (await Promise.all(takings)).flat();
    await purge;
    await first.api.purgeTenants();
    const { quote } = first.database;
    for (const id of restored) {
      expect(await first.api.getTenant({ query: { id } })).toMatchObject({ status: "active" });
      expect(await first.rows("user", `${quote("tenantId")} = ?`, [id])).toBe(1);
    }
  });
});
