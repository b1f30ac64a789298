import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { runInTenant } from "../../../src/index";
import { type DatabaseKind, databases, servers } from "../../support/database";
import { type createStorage, mapStorage } from "../../support/stores";
import { createWorld, gate } from "../../support/world";

// Sessions in a secondary storage hold personal data: nothing of a deleted tenant stays there.

interface Listed {
  storage: ReturnType<typeof createStorage>;
  keys(): Promise<string[]>;
}

function listedMap(): Listed {
  const { entries, storage } = mapStorage();
  return { storage, keys: async () => [...entries.keys()] };
}

/** A storage in a real Redis, under keys that no other test has. */
function listedRedis(): Listed {
  const prefix = `test-${randomBytes(8).toString("hex")}:`;
  const redis = new Redis({ host: "127.0.0.1", port: 6379 });
  const keys = () => redis.keys(`${prefix}*`);
  onTestFinished(async () => {
    const left = await keys();
    if (left.length) await redis.del(left);
    await redis.quit();
  });
  return {
    keys,
    storage: {
      get: (key) => redis.get(prefix + key),
      set: async (key, value, ttl) =>
        void (await (ttl
          ? redis.set(prefix + key, value, "EX", ttl)
          : redis.set(prefix + key, value))),
      delete: async (key) => void (await redis.del(prefix + key)),
      getAndDelete: (key) => redis.getdel(prefix + key),
      increment: (key) => redis.incr(prefix + key),
    },
  };
}

const PLACES: [DatabaseKind, string, () => Listed][] = databases.flatMap((database) => [
  [database, "a map", listedMap],
  ...(servers.asked
    ? [[database, "Redis", listedRedis] as [DatabaseKind, string, () => Listed]]
    : []),
]);

describe.each(PLACES)("on %s, with sessions in %s", (database, _, list) => {
  it("a session that is written while its tenant is deleted does not stay", async () => {
    const { storage, keys } = list();
    const { pass, open, reached } = gate();
    let armed = false;
    const set = async (key: string, value: string, ttl?: number) => {
      if (armed) await pass();
      await storage.set(key, value, ttl);
    };
    const secondaryStorage = { ...storage, set };
    const world = await createWorld({ database, auth: { secondaryStorage } });
    const jane = await world.as("jane", "acme");
    const other = await world.as("jane", "globex");
    armed = true;
    const signingIn = world.signIn("acme", jane.email);
    await reached;
    await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
    open();
    await signingIn;
    expect((await keys()).filter((key) => key.includes(world.ids.acme))).toEqual([]);
    expect(await world.whoIs(other)).toMatchObject({ id: other.id });
  });

  it("nothing stays of users who have signed in several times at once", async () => {
    const { storage, keys } = list();
    const world = await createWorld({ database, auth: { secondaryStorage: storage } });
    const jane = await world.signUp("acme", "jane@example.com");
    const times = Array.from({ length: 10 });
    await Promise.all(times.map(() => world.signIn("acme", jane.email)));
    const stored = (await keys()).filter((key) => key.includes(`:${world.ids.acme}~`));
    expect(stored.length).toBeGreaterThanOrEqual(times.length);
    await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
    expect((await keys()).filter((key) => key.includes(world.ids.acme))).toEqual([]);
  });

  it("a user who is deleted while signing in leaves the others signed in", async () => {
    const { storage } = list();
    const { pass, open, reached } = gate();
    let armed = false;
    const set = async (key: string, value: string, ttl?: number) => {
      if (armed && key.includes("active-sessions-")) await pass();
      await storage.set(key, value, ttl);
    };
    const secondaryStorage = { ...storage, set };
    const world = await createWorld({ database, auth: { secondaryStorage } });
    const other = await world.as("ann", "acme");
    const jane = await world.signUp("acme", "jane@example.com");
    armed = true;
    const signingIn = world.signIn("acme", jane.email);
    await reached;
    await runInTenant(world.ids.acme, () => world.context.internalAdapter.deleteUser(jane.id));
    open();
    await signingIn;
    expect(await world.whoIs(other)).toMatchObject({ id: other.id });
  });

  it("nothing stays when many users sign in meanwhile", async () => {
    const { storage, keys } = list();
    const world = await createWorld({ database, auth: { secondaryStorage: storage } });
    const people = await Promise.all(
      Array.from({ length: 20 }, (_, index) => world.signUp("acme", `user-${index}@example.com`)),
    );
    const other = await world.as("jane", "globex");
    // better-auth's own list loses sessions of a user who signs in several times at once.
    const signIns = [1, 2, 3].flatMap(() => people.map(({ email }) => world.signIn("acme", email)));
    await Promise.any(signIns);
    await world.api.deleteTenant({ body: { tenantId: world.ids.acme } });
    await Promise.allSettled(signIns);
    expect((await keys()).filter((key) => key.includes(world.ids.acme))).toEqual([]);
    expect(await world.whoIs(other)).toMatchObject({ id: other.id });
  });
});
