import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, servers } from "../support/database";
import { buildForProcesses } from "../support/processes";
import { createWorld, rowsLeft, SECONDS, SEED } from "./world";

/*
 * Three processes on one PostgreSQL, with sessions there or in Redis: users and tenants come and go,
 * and processes are killed.
 */

describe.runIf(servers.asked)("three processes, users and tenants that come and go", () => {
  it.each(["PostgreSQL", "Redis"] as const)(
    "R3, R5, R10: with sessions in %s, nothing crosses, and nothing is left behind",
    async (sessionsIn) => {
      const worker = await buildForProcesses(join(import.meta.dirname, "worker.ts"));
      onTestFinished(worker.remove);
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
      const world = createWorld(worker.path, {
        database: { name: String(row?.name), port: 5432 },
        secret: randomBytes(32).toString("hex"),
        ...(sessionsIn === "Redis" && { redis: { prefix: redisPrefix, port: 6379 } }),
      });
      onTestFinished(async () => void (await Promise.all(world.running().map(world.kill))));
      for (const index of [0, 1, 2]) await world.launch(index);

      await world.operator();
      const end = Date.now() + SECONDS * 1000;
      const isOpen = () => Date.now() < end;
      await Promise.all([
        world.manage(isOpen),
        world.killNowAndThen(isOpen),
        ...Array.from({ length: 24 }, (_, index) => world.live(`user-${index}`, isOpen)),
      ]);
      await world.removeAll();
      await world.checkSessions();
      const [member] = world.members;
      member?.child.send("purge");
      if (member) await once(member.child, "message");

      console.log(`Sessions in ${sessionsIn}, ${SECONDS} s, SOAK_SEED=${SEED}`, world.counts);
      expect(world.findings).toEqual([]);
      expect(await rowsLeft(database)).toEqual([]);
      // That nothing went wrong says something only if a lot was done.
      const { killed, deleted, checked } = world.counts;
      expect([killed > 0, deleted > 4, checked > 40]).toEqual([true, true, true]);
    },
    SECONDS * 3_000 + 120_000,
  );
});
