import { organization } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type DatabaseKind, databases } from "../support/database";
import { createInstance, type Instance } from "../support/instance";
import { mapStorage } from "../support/stores";
import { createWorld, outcome, type WorldOptions } from "../support/world";

afterEach(() => vi.useRealTimers());

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
  it("with dryRun deletes nothing, and counts every confined and every scoped model", async () => {
    const { api, tenantId, jane, acme, remove, rows, signUp, whoIs } = await start({
      plugins: [organization()],
      tenant: { scopedModels: ["organization", "member", "invitation"] },
    });
    await signUp("acme", "second@example.com");
    await jane.post("/organization/create", { name: "O", slug: "o" });
    const config = { providerId: "google", clientId: "id", clientSecret: "secret" };
    await api.registerTenantOAuthConfig({ body: { tenantId, ...config } });
    await signUp("globex");
    const { status, data } = await remove({ dryRun: true });
    const models = { organization: 1, member: 1, invitation: 0, tenantOauthConfig: 1 };
    const expected = { user: 2, session: 2, account: 2, verification: 0, ...models };
    expect([status, data]).toEqual([200, { success: true, dryRun: true, rows: expected }]);
    expect(await whoIs(jane)).toMatchObject({ id: jane.id });
    // With a time as well it is still a rehearsal.
    await remove({ dryRun: true, after: 60 });
    expect(await acme()).toMatchObject({ status: "active", deleteAt: null });
    expect(await remove({})).toMatchObject({ status: 200, data: { success: true } });
    expect(await rows("user")).toBe(2);
  });

  it("with after suspends the tenant, keeps all of it, and is taken back before its time", async () => {
    freeze();
    const { api, jane, operator, acme, remove, take, whoIs, signIn } = await start();
    const { data } = await remove({ after: 7 * DAY });
    const deleteAt = new Date(Date.now() + 7 * DAY * 1000);
    expect(data).toEqual({ success: true, deleteAt: deleteAt.toISOString() });
    expect(await acme()).toMatchObject({ status: "deleting", deleteAt });
    expect(await whoIs(jane)).toBeNull();
    expect(outcome(await signIn("acme"))).toEqual([403, "TENANT_SUSPENDED"]);
    const taken = await operator.post("/tenant/create", { name: "Other", slug: "acme" });
    expect(taken.code).toBe("TENANT_ALREADY_EXISTS");
    expect(await api.purgeTenants()).toEqual(NOTHING);
    later(7 * DAY - 1);
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
    expect(await api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
    expect(await api.purgeTenants()).toEqual(NOTHING);
    expect((await take()).code).toBe("TENANT_NOT_FOUND");
    expect(await rows("user")).toBe(1);
  });

  it("may be put off, or become a mere suspension, before its time", async () => {
    freeze();
    const { api, acme, remove, take } = await start();
    await remove({ after: 60 });
    await remove({ after: 3600 });
    later(61);
    expect(await api.purgeTenants()).toEqual(NOTHING);
    expect((await take("suspended")).data).toMatchObject({ status: "suspended", deleteAt: null });
    later(3600);
    expect(await api.purgeTenants()).toEqual(NOTHING);
    expect((await acme()).status).toBe("suspended");
  });

  it("takes up to 90 days, and a purge is not reached over HTTP", async () => {
    const { operator, remove, acme } = await start();
    expect((await remove({ after: 90 * DAY })).status).toBe(200);
    for (const path of ["/tenant/purge", "/purge-tenants", "/tenant/purge-tenants", "/"]) {
      expect((await operator.post(path)).status).toBe(404);
    }
    expect((await acme()).status).toBe("deleting");
  });
});

describe("auth.api.purgeTenants()", () => {
  it("deletes what is due and nothing else, in secondary storage too", async () => {
    freeze();
    const { entries, storage } = mapStorage();
    const { api, tenantId, jane, as, whoIs } = await start({ auth: { secondaryStorage: storage } });
    const survivor = await as("jane", "globex");
    await api.deleteTenant({ body: { tenantId, after: 0 } });
    expect(await api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
    expect([...entries].some(([, value]) => value.includes(jane.id))).toBe(false);
    expect(await whoIs(survivor)).toMatchObject({ id: survivor.id });
  });

  it("goes on where one tenant cannot be deleted, and takes that one the next time", async () => {
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
