import { setTimeout as sleep } from "node:timers/promises";
import { APIError, createAuthEndpoint } from "better-auth/api";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../src/index";
import { interceptStatements } from "../faults/faults";
import type { Browser } from "../support/browser";
import { createDatabase, servers } from "../support/database";
import { cleanUpCopies, createInstance, PASSWORD, secondCopy } from "../support/instance";
import { createMemory } from "../support/stores";
import { createWorld, gate, outcome, type Person, type WorldOptions } from "../support/world";

cleanUpCopies();

const LAST = [409, "LAST_ADMIN"];
const tenant: WorldOptions["tenant"] = { tenantRoles: { admin: ["tenant:get"], owner: [] } };

async function start(options: WorldOptions = {}) {
  const world = await createWorld({ tenant, ...options });
  const roleOf = async (id: string) =>
    (await world.rowsIn("acme", "user")).find((user) => user.id === id)?.role;
  return { ...world, roleOf };
}

const demote = (by: Browser, { id }: Person) =>
  by.post("/admin/set-role", { userId: id, role: "user" });
const deleteOneself = (by: Browser) => by.post("/delete-user", { password: PASSWORD });

describe("the last administrator of a tenant", () => {
  it("cannot demote, ban or remove themselves away, by no endpoint", async () => {
    const { join, roleOf, whoIs, signIn } = await start();
    const admin = await join("acme", "user,admin");
    await join("globex", "admin");
    await join("acme", "user");
    const userId = admin.id;
    const kept = { userId, role: ["user", "admin"] };
    expect((await admin.post("/admin/set-role", kept)).status).toBe(200);
    const answers = [
      await demote(admin, admin),
      await admin.post("/admin/update-user", { userId, data: { role: "user", name: "X" } }),
      await deleteOneself(admin),
    ];
    expect(answers.map(outcome)).toEqual(answers.map(() => LAST));
    // Nothing is gone: sessions, accounts, the row.
    expect(await roleOf(userId)).toBe("user,admin");
    expect(await whoIs(admin)).toMatchObject({ id: userId });
    expect((await signIn("acme", admin.email)).status).toBe(200);
  });

  it("can as soon as there is another, who can sign in", async () => {
    const { join, roleOf } = await start();
    const first = await join("acme", "admin");
    const { id: userId } = await join("acme", "owner,admin");
    const ban = await first.post("/admin/ban-user", { userId, banReason: "gone" });
    expect(ban.status).toBe(200);
    expect(outcome(await demote(first, first))).toEqual(LAST);
    await first.post("/admin/unban-user", { userId });
    expect((await demote(first, first)).status).toBe(200);
    expect(await roleOf(first.id)).toBe("user");
  });

  it.each([true, false])(
    "goes with nobody: a hook takes the next one along, and waits for nobody (transactions: %s)",
    async (transaction) => {
      const database = await createDatabase("sqlite");
      onTestFinished(() => database.close());
      database.option.transaction = transaction;
      let deputy: string | undefined;
      const before = async (): Promise<void> => {
        if (deputy) await context.internalAdapter.updateUser(deputy, { role: "user" });
      };
      const auth = { databaseHooks: { user: { delete: { before } } } };
      const { context, join, roleOf } = await start({ database, auth });
      const [first, second] = [await join("acme", "admin"), await join("acme", "admin")];
      deputy = second.id;
      expect(outcome(await deleteOneself(first))).toEqual(LAST);
      expect(await roleOf(second.id)).toBe("admin");
      const third = await join("acme", "admin");
      const removed = await third.post("/admin/remove-user", { userId: first.id });
      expect([removed.status, await roleOf(second.id)]).toEqual([200, "user"]);
    },
  );

  it.each(["set-role", "ban-user", "remove-user"])(
    "two who %s each other at once leave one, and no other tenant changes",
    async (path) => {
      const { join, rowsIn, change, api, ids } = await start();
      const [a, b] = [await join("globex", "admin"), await join("globex", "admin")];
      const before = await change("acme", { status: "suspended" });
      const take = (from: Person, { id }: Person) =>
        from.post(`/admin/${path}`, { userId: id, role: "user" });
      const answers = await Promise.all([take(a, b), take(b, a)]);
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      const left = (await rowsIn("globex", "user")).filter((user) => user.role === "admin");
      expect(left.filter(({ banned }) => !banned)).toHaveLength(1);
      expect(await api.getTenant({ query: { id: ids.acme } })).toEqual(before);
    },
  );

  it("operators, the server and the tenant's end take them all the same", async () => {
    const world = await start();
    const admin = await world.join("acme", "admin");
    expect((await demote(await world.operator(), admin)).status).toBe(200);
    expect(await world.roleOf(admin.id)).toBe("user");
    const { id } = await world.join("acme", "admin");
    const { acme: tenantId } = world.ids;
    await runInTenant(tenantId, () => world.context.internalAdapter.deleteUser(id));
    expect(await world.rows("user", "id = ?", [id])).toBe(0);
    await world.join("acme", "admin");
    await world.api.deleteTenant({ body: { tenantId } });
    expect(await world.rowsIn("acme", "user")).toEqual([]);
  });
});

it("holds inside of a transaction of a plugin's own, which is rolled back as a whole", async () => {
  const demoter = {
    id: "demoter",
    endpoints: {
      demote: createAuthEndpoint("/demoter/demote", { method: "POST" }, async (ctx) => {
        const { id, fails, how, bans } = ctx.query as Record<string, string> & { how: "update" };
        const where = [{ field: "id", value: id ?? "" }];
        const update = bans ? { banned: true } : { role: "user" };
        await ctx.context.adapter.transaction(async (inner) => {
          const call = { model: "user", where, update, set: update, increment: {} };
          await inner[how](call);
          if (fails) throw new APIError("CONFLICT", { code: "CHANGED_MY_MIND" });
        });
        return ctx.json({ ok: true });
      }),
    },
  };
  const { join, roleOf } = await start({ plugins: [demoter] });
  const [first, second] = [await join("acme", "admin"), await join("acme", "admin")];
  // Without a name: the session says which tenant it is, and is first asked for inside.
  const ask = (id: string, fails = "", how = "update") =>
    first.fork({}).post(`/demoter/demote?id=${id}&fails=${fails}&how=${how}`);
  expect((await ask(second.id, "yes")).code).toBe("CHANGED_MY_MIND");
  expect(await roleOf(second.id)).toBe("admin");
  expect((await ask(second.id)).status).toBe(200);
  for (const how of "update update&bans=1 updateMany incrementOne delete deleteMany consumeOne".split(
    " ",
  )) {
    expect([how, ...outcome(await ask(first.id, "", how))]).toEqual([how, ...LAST]);
  }
  expect([await roleOf(first.id), await roleOf(second.id)]).toEqual(["admin", "user"]);
});

it("nothing is held back where the application names no roles", async () => {
  const { join, roleOf } = await start({ tenant: {} });
  const admin = await join("acme", "admin");
  expect((await demote(admin, admin)).status).toBe(200);
  expect(await roleOf(admin.id)).toBe("user");
});

it("holds in a database without transactions, in one process", async () => {
  const { database, tables } = createMemory();
  const { signUp, signIn } = await createWorld({ tenant, database, migrate: false });
  const people = [];
  for (const email of ["a@example.com", "b@example.com"]) {
    const { id } = await signUp("acme", email);
    Object.assign(tables.user?.find((user) => user.id === id) ?? {}, { role: "admin" });
    people.push((await signIn("acme", email)).person);
  }
  const [a, b] = people as [Person, Person];
  const answers = await Promise.all([demote(a, b), demote(b, a)]);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(tables.user?.filter(({ role }) => role === "admin")).toHaveLength(1);
});

it("R10: what another process remembers of a deleted tenant is not written into the next one with its number", async () => {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const auth = { advanced: { database: { generateId: "serial" as const } } };
  const { createTenant, join, api } = await start({ database, auth });
  const there = await createInstance({ tenant, database, auth, migrate: false });
  const old = await createTenant("old");
  const window = there.browser({ "x-tenant-id": old.id });
  expect((await window.get("/list-sessions")).status).toBe(401);
  await sleep(2);
  await api.deleteTenant({ body: { tenantId: old.id } });
  const next = await createTenant("next");
  expect(next.id).toBe(old.id);
  const [admin, other] = [await join(next.id, "admin"), await join(next.id, "admin")];
  for (const [name, value] of admin.cookies) window.cookies.set(name, value);
  expect(outcome(await demote(window, other))).toEqual([404, "TENANT_NOT_FOUND"]);
  expect(await api.getTenant({ query: { id: next.id } })).toEqual(next);
});

/** Two administrators at two machines: between the two there is only the database. */
describe.runIf(servers.asked).each(servers.kinds)("on %s", (kind) => {
  async function createMachines() {
    const database = await createDatabase(kind);
    onTestFinished(() => database.close());
    let held: ReturnType<typeof gate> | undefined;
    interceptStatements(database, async (sql, { send }) => {
      if (!held || !/^commit/i.test(sql)) return send();
      const { pass } = held;
      held = undefined;
      return pass().then(send);
    });
    const world = await createWorld({ tenant, database });
    const a = await world.join("acme", "admin");
    const b = await world.join("acme", "admin");
    // Another copy of the package takes its own turns.
    const { tenantAuth } = await secondCopy();
    const auth = { user: { deleteUser: { enabled: true } } };
    const second = await createInstance({ tenant, database, tenantAuth, auth, migrate: false });
    const elsewhere = second.browser(world.naming("acme"));
    for (const [name, value] of b.cookies) elsewhere.cookies.set(name, value);
    const left = async () =>
      (await world.rowsIn("acme", "user")).filter(({ role, banned }) => role === "admin" && !banned)
        .length;
    const holdCommit = () => {
      held = gate();
      return held;
    };
    return { a, b, elsewhere, left, holdCommit };
  }

  const ban = (by: Browser, { id }: Person) => by.post("/admin/ban-user", { userId: id });
  it.each([
    ["demote", demote],
    ["ban", ban],
    ["delete themselves", deleteOneself],
  ])("two at two machines who %s at the same moment leave one", async (_, take) => {
    const { a, b, elsewhere, left, holdCommit } = await createMachines();
    expect(await left()).toBe(2);
    const commit = holdCommit();
    const first = take(a, b);
    await commit.reached;
    // The first has done everything but for its commit, which the second cannot see.
    const second = take(elsewhere, a);
    await Promise.race([second, sleep(500)]);
    commit.open();
    const answers = await Promise.all([first, second]);
    expect(answers.map(outcome)).toEqual([[200, undefined], LAST]);
    expect(await left()).toBe(1);
  });
});
