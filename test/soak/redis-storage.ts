import type { BetterAuthOptions } from "better-auth";
import { Cluster, Redis } from "ioredis";

/** One Redis, a master that Sentinels know, or a cluster. Numbers are ports. */
export type RedisOrder = { prefix: string } & (
  | { port: number }
  | { sentinels: number[] }
  | { nodes: number[] }
);

export function connectToRedis({ prefix: keyPrefix, ...given }: RedisOrder): Redis | Cluster {
  const address = (port: number) => ({ host: "127.0.0.1", port });
  const connect = () => {
    if ("nodes" in given) return new Cluster(given.nodes.map(address), { keyPrefix });
    if ("port" in given) return new Redis({ ...address(given.port), keyPrefix });
    return new Redis({ sentinels: given.sentinels.map(address), name: "auth", keyPrefix });
  };
  const redis = connect();
  // Without a listener, it writes every failed attempt to connect to the console.
  redis.on("error", () => {});
  return redis;
}

export function redisStorage(redis: Redis | Cluster, { hasReplicas = false }) {
  /**
   * Runs what a failover must not undo: waits until a replica has it as well, which Sentinel and
   * Redis Cluster then prefer to one that has not.
   */
  async function runForGood(...commands: (string | number)[][]): Promise<unknown> {
    const confirmed = hasReplicas ? [["wait", 1, 1_000]] : [];
    const results = (await redis.pipeline([...commands, ...confirmed]).exec()) ?? [];
    for (const [failed] of results) if (failed) throw failed;
    const [[, result] = []] = results;
    if (hasReplicas && !results.at(-1)?.[1]) throw new Error("No replica has confirmed");
    return result;
  }

  return {
    get: (key) => redis.get(key),
    set: (key, value, ttl) => (ttl ? redis.set(key, value, "EX", ttl) : redis.set(key, value)),
    delete: async (key) => void (await runForGood(["del", key])),
    getAndDelete: (key) => runForGood(["getdel", key]),
    increment: async (key, ttl) =>
      Number(await runForGood(["incr", key], ["expire", key, ttl, "NX"])),
  } satisfies BetterAuthOptions["secondaryStorage"];
}
