// A plugin may keep the adapter that it sees in its `init`. What it asks through it while a
// transaction runs belongs to that transaction: with one connection, all would wait for ever.
import { AsyncLocalStorage } from "node:async_hooks";
import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { BetterAuthPlugin } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { username } from "better-auth/plugins";
import type { DBAdapter } from "better-auth/types";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { runInTenant } from "../../src/index";
import { createSSOWorld } from "../features/enterprise/world";
import {
  allowOneConnection,
  createDatabase,
  type DatabaseKind,
  databases,
} from "../support/database";
import { createWorld } from "../support/world";

async function openOneConnection(kind: DatabaseKind) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  allowOneConnection(database);
  return database;
}

/** A plugin that keeps the adapter, as `username()` does. */
function keeper() {
  const kept = {} as { adapter: DBAdapter };
  const plugin: BetterAuthPlugin = {
    id: "keeper",
    init: ({ adapter }) => void Object.assign(kept, { adapter }),
  };
  return { kept, plugin };
}

const data = (identifier: string) => ({
  identifier,
  value: "a value",
  expiresAt: new Date(Date.now() + 60_000),
});

/** A world with one connection, and the adapter that a plugin has kept. */
async function createKeeping(kind: DatabaseKind) {
  const { kept, plugin } = keeper();
  const world = await createWorld({ database: await openOneConnection(kind), plugins: [plugin] });
  const { adapter } = world.context;
  const model = "verification";
  const where = (identifier: string) => [{ field: "identifier", value: identifier }];
  return {
    ...world,
    adapter,
    create: (identifier: string, by: Pick<DBAdapter, "create"> = kept.adapter) =>
      by.create({ model, data: data(identifier) }),
    count: (identifier: string, by: Pick<DBAdapter, "count"> = kept.adapter) =>
      by.count({ model, where: where(identifier) }),
    keptTransaction: kept.adapter.transaction,
    inAcme: <T>(run: () => Promise<T>) => runInTenant(world.ids.acme, run),
  };
}

describe.each(databases)("an adapter kept by a plugin, on %s with one connection", (kind) => {
  it("lets a tenant map a username for users who sign in at the same time", async () => {
    const database = await openOneConnection(kind);
    const world = await createSSOWorld({ database, plugins: [username()] });
    const { oidcConfig, ...rest } = world.oidc("acme-okta");
    const mapping = { email: "email", name: "name", extraFields: { username: "username" } };
    await world.register("acme", { ...rest, oidcConfig: { ...oidcConfig, mapping } });
    const names = ["ada", "bob", "eve", "joe", "kim"];
    for (const name of names) world.provider.addPerson(name, { email: `${name}@acme.example` });

    const signedIn = await Promise.all(
      names.map((name) => world.ssoSignIn("acme", "acme-okta", name)),
    );

    expect(signedIn.map(({ location }) => location)).toEqual(names.map(() => "/welcome"));
    const users = await world.rowsIn("acme", "user");
    const stored = users.map((user) => user.username).filter(Boolean);
    expect(stored.sort()).toEqual(names.map((name) => `${world.ids.acme}~${name}`));
  });

  it("reads and writes inside the transaction, which can be rolled back", async () => {
    const { adapter, ids, inAcme, create, count } = await createKeeping(kind);
    const failing = inAcme(() =>
      runWithTransaction(adapter, async () => {
        await create("undone", await getCurrentAdapter(adapter));
        await create("undone");
        expect(await count("undone")).toBe(2);
        throw new Error("rolled back");
      }),
    );
    await expect(failing).rejects.toThrow("rolled back");
    expect(await inAcme(() => count("undone"))).toBe(0);

    await inAcme(() => runWithTransaction(adapter, () => create("kept")));
    expect(await inAcme(() => count("kept"))).toBe(1);
    expect(await runInTenant(ids.globex, () => count("kept"))).toBe(0);
  });

  it("is inside a transaction that it has begun, and a nested one is part of it", async () => {
    const { adapter, inAcme, create, count, keptTransaction } = await createKeeping(kind);
    const failing = inAcme(() =>
      keptTransaction(async () => {
        await keptTransaction((inner) => create("nested", inner));
        await runWithTransaction(adapter, () => create("nested"));
        expect(await count("nested")).toBe(2);
        throw new Error("rolled back");
      }),
    );
    await expect(failing).rejects.toThrow("rolled back");
    expect(await inAcme(() => count("nested"))).toBe(0);
  });

  it("leaves the transaction when that is over", async () => {
    const { adapter, inAcme, create, count } = await createKeeping(kind);
    let rolledBack = () => {};
    const over = new Promise<void>((resolve) => {
      rolledBack = resolve;
    });
    let late: Promise<unknown> = Promise.resolve();
    const failing = inAcme(() =>
      runWithTransaction(adapter, async () => {
        const inner = await getCurrentAdapter(adapter);
        late = over.then(() => Promise.all([create("late"), create("late", inner)]));
        throw new Error("rolled back");
      }),
    );
    await expect(failing).rejects.toThrow("rolled back");
    // The connection is another request's by now, which is rolled back as well.
    const other = inAcme(() =>
      adapter.transaction(async (inner) => {
        await create("other", inner);
        rolledBack();
        await new Promise((resolve) => setTimeout(resolve, 50));
        throw new Error("rolled back");
      }),
    );
    await expect(other).rejects.toThrow("rolled back");
    await late;
    expect(await inAcme(() => count("late"))).toBe(2);
    expect(await inAcme(() => count("other"))).toBe(0);
  });

  it("begins a transaction when the one around it is over", async () => {
    const { adapter, inAcme, create, count, keptTransaction } = await createKeeping(kind);
    let committed = () => {};
    const over = new Promise<void>((resolve) => {
      committed = resolve;
    });
    let late: Promise<unknown> = Promise.resolve();
    await inAcme(() =>
      adapter.transaction(async () => {
        late = over.then(() =>
          keptTransaction(async (inner) => {
            await create("late", inner);
            await create("late");
            throw new Error("rolled back");
          }),
        );
      }),
    );
    committed();
    await expect(late).rejects.toThrow("rolled back");
    expect(await inAcme(() => count("late"))).toBe(0);
  });

  it("is of its own instance inside a transaction of another instance", async () => {
    const [one, other] = [await createKeeping(kind), await createKeeping(kind)];
    const failing = one.inAcme(() =>
      one.adapter.transaction(async () => {
        await other.inAcme(() => other.create("of the other"));
        await other.adapter.transaction(() => one.create("of the one"));
        expect(await one.count("of the one")).toBe(1);
        throw new Error("rolled back");
      }),
    );
    await expect(failing).rejects.toThrow("rolled back");
    expect(await other.inAcme(() => other.count("of the other"))).toBe(1);
    expect(await one.inAcme(() => one.count("of the one"))).toBe(0);
  });

  it("finishes what was begun inside the transaction before its end", async () => {
    const { adapter, inAcme, create, count } = await createKeeping(kind);
    await inAcme(() => create("consumed"));
    let started: Promise<unknown> = Promise.resolve();
    const failing = inAcme(() =>
      adapter.transaction(async (inner) => {
        // On MariaDB, a read and a deletion.
        const where = [{ field: "identifier", value: "consumed" }];
        started = inner.consumeOne({ model: "verification", where });
        await new Promise(setImmediate);
        throw new Error("rolled back");
      }),
    );
    await expect(failing).rejects.toThrow("rolled back");
    await started;
    expect(await inAcme(() => count("consumed"))).toBe(1);
  });
});

it("an adapter without transactions works as before", async () => {
  const { kept, plugin } = keeper();
  const tables = { user: [], session: [], account: [], verification: [], tenant: [] };
  const stored: Record<string, unknown[]> = { ...tables, tenantOauthConfig: [] };
  const world = await createWorld({
    auth: { database: memoryAdapter(stored) },
    migrate: false,
    plugins: [plugin],
  });
  const { adapter } = world.context;
  await runInTenant(world.ids.acme, async () => {
    const where = [{ field: "identifier", value: "memory" }];
    const counted = await runWithTransaction(adapter, async () => {
      await kept.adapter.create({ model: "verification", data: data("memory") });
      return kept.adapter.transaction((inner) => inner.count({ model: "verification", where }));
    });
    expect(counted).toBe(1);
  });
  expect(stored.verification).toHaveLength(1);
});

it("instances share the storages that follow a request: each slows every promise down", async () => {
  const used = new Set<unknown>();
  const { run } = AsyncLocalStorage.prototype;
  const spy = vi.spyOn(AsyncLocalStorage.prototype, "run");
  spy.mockImplementation(function (this: unknown, ...call: unknown[]) {
    used.add(this);
    return Reflect.apply(run, this, call);
  });
  onTestFinished(() => spy.mockRestore());
  const signUp = async () => (await createWorld()).signUp("acme", "jane@example.com");
  await signUp();
  const { size } = used;
  expect(size).toBeGreaterThan(0);
  for (const _ of [1, 2]) await signUp();
  expect(used.size).toBe(size);
});
