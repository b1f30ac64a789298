import { organization } from "better-auth/plugins";
import { afterEach, describe, expect, it, vi } from "vitest";
import { mapStorage } from "../sessions/stores";
import { createDatabase, type DatabaseKind, type TestDatabase } from "../support/database";
import { createInstance, type Instance, type InstanceOptions, PASSWORD } from "../support/instance";
import { databases } from "../support/servers";

afterEach(() => vi.useRealTimers());

const DAY = 24 * 60 * 60;
const later = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);
const freeze = () => vi.useFakeTimers({ toFake: ["Date"], now: new Date() });

async function start(options: InstanceOptions = {}) {
  const instance = await createInstance(options);
  const { id: tenantId } = await instance.createTenant("acme");
  const person = await instance.signUp(tenantId);
  const { browser: operator } = await instance.operator();
  const remove = (body: object) =>
    operator.post<{ success: true; deleteAt?: string; rows?: Record<string, number> }>(
      "/tenant/delete",
      { tenantId, ...body },
    );
  const take = (status = "active") => operator.post("/tenant/update", { tenantId, status });
  return { instance, tenantId, person, operator, remove, take };
}

describe("POST /tenant/delete with dryRun", () => {
  it("deletes nothing, and counts every confined and every scoped model", async () => {
    const scopedModels = ["organization", "member", "invitation"];
    const { instance, tenantId, person, remove } = await start({
      plugins: [organization()],
      tenant: { scopedModels },
    });
    await instance.signUp(tenantId);
    await person.browser.post("/organization/create", { name: "O", slug: "o" });
    await instance.api.registerTenantOAuthConfig({
      body: { tenantId, providerId: "google", clientId: "id", clientSecret: "secret" },
    });
    const elsewhere = await instance.createTenant();
    await instance.signUp(elsewhere.id);
    const { status, data } = await remove({ dryRun: true });
    expect(status).toBe(200);
    const rows = {
      user: 2,
      session: 2,
      account: 2,
      verification: 0,
      organization: 1,
      member: 1,
      invitation: 0,
      tenantOauthConfig: 1,
    };
    expect(data).toEqual({ success: true, dryRun: true, rows });
    expect((await person.browser.get("/get-session")).data).not.toBeNull();
    // With a time as well it is still a rehearsal.
    await remove({ dryRun: true, after: 60 });
    expect(await instance.api.getTenant({ query: { id: tenantId } })).toMatchObject({
      status: "active",
      deleteAt: null,
    });
    expect(await remove({})).toMatchObject({ status: 200, data: { success: true } });
    expect(await instance.rows("user")).toBe(2);
  });
});

describe("POST /tenant/delete with after", () => {
  it("suspends the tenant, keeps all of it, and is taken back before its time", async () => {
    freeze();
    const { instance, tenantId, person, operator, remove, take } = await start();
    const { data } = await remove({ after: 7 * DAY });
    expect(data).toEqual({
      success: true,
      deleteAt: new Date(Date.now() + 7 * DAY * 1000).toISOString(),
    });
    const tenant = await instance.api.getTenant({ query: { id: tenantId } });
    expect(tenant).toMatchObject({ status: "deleting", deleteAt: new Date(data.deleteAt ?? "") });
    expect((await person.browser.get("/get-session")).data).toBeNull();
    const body = { tenantId, email: person.email, password: PASSWORD };
    const refused = await instance.browser().post("/tenant/sign-in/email", body);
    expect([refused.status, refused.code]).toEqual([403, "TENANT_SUSPENDED"]);
    const taken = await operator.post("/tenant/create", { name: "Other", slug: "acme" });
    expect(taken.code).toBe("TENANT_ALREADY_EXISTS");
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [], failed: [] });

    later(7 * DAY - 1);
    const restored = await take();
    expect(restored.data).toMatchObject({ status: "active", deleteAt: null });
    later(60);
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [], failed: [] });
    const again = instance.browser();
    expect((await again.post("/tenant/sign-in/email", body)).status).toBe(200);
    expect((await again.get<{ user: object }>("/get-session")).data.user).toMatchObject({
      id: person.user.id,
    });
  });

  it("cannot be taken back, put off or hidden when its time has come", async () => {
    freeze();
    const { instance, tenantId, operator, remove, take } = await start();
    await remove({ after: 60 });
    later(60);
    const attempts = [
      await take(),
      await take("suspended"),
      await remove({ after: 60 }),
      await operator.post("/tenant/update", { tenantId, name: "Renamed", status: "active" }),
    ];
    for (const { status, code } of attempts)
      expect([status, code]).toEqual([409, "TENANT_DELETING"]);
    const tenant = await instance.api.getTenant({ query: { id: tenantId } });
    expect(tenant).toMatchObject({ name: "ACME", status: "deleting" });
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [], failed: [] });
    expect((await take()).code).toBe("TENANT_NOT_FOUND");
    expect(await instance.rows("user")).toBe(1);
  });

  it("may be put off, or become a mere suspension, before its time", async () => {
    freeze();
    const { instance, tenantId, remove, take } = await start();
    await remove({ after: 60 });
    await remove({ after: 3600 });
    later(61);
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [], failed: [] });
    expect((await take("suspended")).data).toMatchObject({ status: "suspended", deleteAt: null });
    later(3600);
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [], failed: [] });
    expect((await instance.api.getTenant({ query: { id: tenantId } })).status).toBe("suspended");
  });

  it("takes whole seconds up to 90 days", async () => {
    const { instance, tenantId, remove } = await start();
    for (const after of [-1, 1.5, 90 * DAY + 1, "60", null, Number.MAX_VALUE]) {
      const { status, code } = await remove({ after });
      expect([status, code], String(after)).toEqual([400, "VALIDATION_ERROR"]);
    }
    expect((await instance.api.getTenant({ query: { id: tenantId } })).status).toBe("active");
    expect((await remove({ after: 90 * DAY })).status).toBe(200);
  });

  it("is for managers", async () => {
    const { instance, tenantId, person } = await start();
    for (const body of [{ dryRun: true }, { after: 60 }]) {
      const { status } = await person.browser.post("/tenant/delete", { tenantId, ...body });
      expect(status).toBe(403);
      const nobody = await instance.browser().post("/tenant/delete", { tenantId, ...body });
      expect(nobody.status).toBe(401);
    }
    expect((await instance.api.getTenant({ query: { id: tenantId } })).status).toBe("active");
  });
});

describe("auth.api.purgeTenants()", () => {
  it("cannot be reached over HTTP", async () => {
    const { operator } = await start();
    for (const path of ["/tenant/purge", "/purge-tenants", "/tenant/purge-tenants", "/"]) {
      expect((await operator.post(path)).status).toBe(404);
    }
  });

  it("deletes what is due and nothing else, in secondary storage too", async () => {
    freeze();
    const { entries, storage } = mapStorage();
    const { instance, tenantId, person } = await start({ auth: { secondaryStorage: storage } });
    const other = await instance.createTenant();
    const survivor = await instance.signUp(other.id);
    await instance.api.deleteTenant({ body: { tenantId, after: 0 } });
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
    expect([...entries].some(([, value]) => value.includes(person.email))).toBe(false);
    expect((await survivor.browser.get("/get-session")).data).not.toBeNull();
  });

  it("goes on where one tenant cannot be deleted, and takes that one the next time", async () => {
    const events: string[] = [];
    const { instance, tenantId, remove } = await start({
      tenant: { onTenantEvent: ({ type, tenantId: id }) => void events.push(`${type} ${id}`) },
    });
    const second = await instance.createTenant();
    const { query } = instance.database;
    await remove({ after: 0 });
    await instance.api.deleteTenant({ body: { tenantId: second.id, after: 0 } });
    await query(
      `create trigger kept before delete on "user" when old."tenantId" = '${tenantId}' begin select raise(abort, 'kept'); end`,
    );
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [second.id], failed: [tenantId] });
    expect(await instance.rows("account", '"tenantId" = ?', [tenantId])).toBe(1);
    await query("drop trigger kept");
    expect(await instance.api.purgeTenants()).toEqual({ deleted: [tenantId], failed: [] });
    const deleted = events.filter((event) => event.startsWith("tenant:deleted"));
    expect(deleted).toEqual([`tenant:deleted ${second.id}`, `tenant:deleted ${tenantId}`]);
  });
});

describe.each(databases)("on %s", (kind) => {
  it("two machines purge at once: each tenant is deleted by one of them", async () => {
    const { machines, events, ids, database } = await twoMachines(kind);
    const answers = await Promise.all([
      ...machines.map(({ api }) => api.purgeTenants()),
      ...machines.map(({ api }) => api.purgeTenants()),
    ]);
    expect(answers.flatMap(({ failed }) => failed)).toEqual([]);
    expect(answers.flatMap(({ deleted }) => deleted).sort()).toEqual([...ids].sort());
    expect(events.sort()).toEqual([...ids].sort());
    for (const table of ["tenant", "user", "session", "account"]) {
      expect(await machines[0].rows(table), table).toBe(0);
    }
    await database.close();
  });

  it("a deletion is taken back or done, and never both", async () => {
    const { machines, ids, database } = await twoMachines(kind, 1);
    const [first, second] = machines;
    const outcomes = await Promise.all(
      ids
        .map(async (tenantId) => {
          const taking = second.api.updateTenant({ body: { tenantId, status: "active" } });
          return taking.then(
            () => tenantId,
            () => undefined,
          );
        })
        .concat(first.api.purgeTenants().then(() => undefined)),
    );
    const restored = outcomes.filter((id) => id !== undefined);
    const rows = await database.query(`select id, status from ${database.quote("tenant")}`);
    await first.api.purgeTenants();
    for (const id of restored) {
      expect(rows).toContainEqual(expect.objectContaining({ id, status: "active" }));
      const where = `${database.quote("tenantId")} = ?`;
      expect(await first.rows("user", where, [id])).toBe(1);
    }
    await database.close();
  });
});

/** Ten tenants whose time has come, or comes in a moment, and two machines on one database. */
async function twoMachines(kind: DatabaseKind, after = 0) {
  const database: TestDatabase = await createDatabase(kind);
  const events: string[] = [];
  const tenant: InstanceOptions["tenant"] = {
    onTenantEvent: ({ type, tenantId }) => {
      if (type === "tenant:deleted") events.push(tenantId);
    },
  };
  const first = await createInstance({ database, tenant });
  // SQLite has one connection here, and a transaction of the other machine would be in ours.
  const isApart = kind !== "sqlite";
  const second = isApart ? await createInstance({ database, tenant, migrate: false }) : first;
  const machines: [Instance, Instance] = [first, second];
  const ids: string[] = [];
  for (let index = 0; index < 10; index++) {
    const { id } = await first.createTenant();
    await first.signUp(id);
    ids.push(id);
  }
  for (const tenantId of ids) {
    await first.api.deleteTenant({ body: { tenantId, after } });
  }
  return { machines, events, ids, database };
}
