import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectToRedis, redisStorage } from "../soak/redis-storage";
import { PASSWORD } from "../support/instance";
import { createWorld, EMAIL } from "../support/world";
import { startSentinel } from "./redis";

/*
 * What a Redis behind Sentinels forgets when its master is killed, one thing at a time. Replicas
 * follow later: here they are cut off, so that the master alone has what is stored next.
 */

interface Given {
  /** Whether the storage knows that there are replicas, and waits for one. */
  hasReplicas: boolean;
  isLimited?: boolean;
}

async function startWorld({ hasReplicas, isLimited = false }: Given) {
  const sentinel = await startSentinel();
  const redis = connectToRedis({ prefix: "auth:", ...sentinel.connection });
  onTestFinished(() => redis.disconnect());
  const storage = redisStorage(redis, { hasReplicas });
  const world = await createWorld({
    store: { name: "Sentinel", storage: () => storage },
    auth: {
      rateLimit: {
        enabled: isLimited,
        storage: "secondary-storage",
        customRules: { "/sign-in/email": { window: 120, max: 5 } },
      },
    },
  });
  const master = await sentinel.findMaster();
  const replicas = sentinel.nodes.filter((node) => node !== master);
  return {
    ...world,
    cutReplicasOff: async () => {
      for (const { command } of replicas) await command("REPLICAOF", "127.0.0.1", "1");
    },
    /** The master is gone with what it alone has, and a replica is the master. */
    failOver: async () => {
      await master.kill();
      expect(await sentinel.findMaster()).not.toBe(master);
    },
  };
}

describe("a session that is revoked in the last moment before a failover", {
  timeout: 120_000,
}, () => {
  it("comes back, if the storage does not wait for a replica", async () => {
    const world = await startWorld({ hasReplicas: false });
    const jane = await world.as("jane", "acme");
    await sleep(500);
    await world.cutReplicasOff();
    expect((await jane.post("/revoke-session", { token: jane.token })).status).toBe(200);
    await world.failOver();
    expect((await world.whoIs(jane))?.id).toBe(jane.id);
  });

  it("is not called revoked, if the storage waits, and can be revoked again", async () => {
    const world = await startWorld({ hasReplicas: true });
    const jane = await world.as("jane", "acme");
    await sleep(500);
    await world.cutReplicasOff();
    const refused = await jane.post("/revoke-session", { token: jane.token });
    expect(refused.status).toBeGreaterThanOrEqual(500);
    await world.failOver();
    expect((await jane.post("/revoke-session", { token: jane.token })).status).toBe(200);
    expect(await world.whoIs(jane)).toBeFalsy();
  });
});

it("a rate limit that is reached holds after a failover", { timeout: 120_000 }, async () => {
  const world = await startWorld({ hasReplicas: true, isLimited: true });
  await world.as("jane", "acme");
  const guess = async (password: string) =>
    (await world.at("acme").post("/sign-in/email", { email: EMAIL, password })).status;
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 10) statuses.push(await guess("a guess"));
  expect(statuses.at(-1)).toBe(429);
  await world.failOver();
  expect(await guess(PASSWORD)).toBe(429);
});
