import { randomBytes } from "node:crypto";
import type { BetterAuthOptions } from "better-auth";
import { Redis } from "ioredis";

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

export interface BenchStorage {
  storage: SecondaryStorage;
  close(): Promise<void>;
}

export function mapStorage(): BenchStorage {
  const entries = new Map<string, string>();
  const take = (key: string) => {
    const value = entries.get(key) ?? null;
    entries.delete(key);
    return value;
  };
  const increment = (key: string) => {
    const count = Number(entries.get(key) ?? 0) + 1;
    entries.set(key, String(count));
    return count;
  };
  const storage: SecondaryStorage = {
    get: async (key) => entries.get(key) ?? null,
    set: async (key, value) => void entries.set(key, value),
    delete: async (key) => void entries.delete(key),
    getAndDelete: async (key) => take(key),
    increment: async (key) => increment(key),
  };
  return { storage, close: async () => {} };
}

export function redisStorage(): BenchStorage {
  const keyPrefix = `bench-${randomBytes(6).toString("hex")}:`;
  const redis = new Redis({ host: process.env.REDIS_HOST ?? "127.0.0.1", keyPrefix });
  const storage: SecondaryStorage = {
    get: (key) => redis.get(key),
    // Everything ends by itself, also when the run is cut short.
    set: async (key, value, ttl) => void (await redis.set(key, value, "EX", ttl || 600)),
    delete: async (key) => void (await redis.del(key)),
    getAndDelete: (key) => redis.getdel(key),
    increment: async (key, ttl) => {
      const count = await redis.incr(key);
      await redis.expire(key, ttl);
      return count;
    },
  };
  return { storage, close: async () => void (await redis.quit()) };
}
