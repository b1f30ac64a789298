import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, servers } from "../support/database";
import { SECONDS, startSoak } from "./world";

/*
 * Three processes on one PostgreSQL, with sessions there or in Redis: users and tenants come and go,
 * and processes are killed.
 */

describe.runIf(servers.asked)("three processes, users and tenants that come and go", () => {
  it.each(["PostgreSQL", "Redis"] as const)(
    "R3, R5, R10: with sessions in %s, nothing crosses, and nothing is left behind",
    async (sessionsIn) => {
      const database = await createDatabase("postgres");
      onTestFinished(() => database.close());
      const redisPrefix = `soak-${randomBytes(8).toString("hex")}:`;
      const redis = new Redis({ host: "127.0.0.1", port: 6379 });
      onTestFinished(async () => {
        const keys = await redis.keys(`${redisPrefix}*`);
        if (keys.length) await redis.del(keys);
        await redis.quit();
      });
      const [row] = await database.query("select current_database() as name");
      const world = await startSoak({
        database: { kind: "postgres", name: String(row?.name), port: 5432 },
        ...(sessionsIn === "Redis" && { redis: { prefix: redisPrefix, port: 6379 } }),
      });
      const end = Date.now() + SECONDS * 1000;
      const isOpen = () => Date.now() < end;
      await Promise.all([world.killNowAndThen(isOpen), ...world.crowd(isOpen)]);
      await world.finish(database);
      expect(world.counts.killed).toBeGreaterThan(0);
    },
    SECONDS * 3_000 + 120_000,
  );
});
