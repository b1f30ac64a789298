import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { Client } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { servers } from "../support/database";
import { buildForProcesses } from "../support/processes";
import { programs, startPgBouncer, startPostgres, startRedis } from "./services";
import { createWorld, rowsLeft, SECONDS, SEED } from "./world";

/*
 * Servers that restart and clocks that jump under load. Nothing crosses, nothing that was acknowledged
 * is lost (except sessions in a Redis that was emptied), every process recovers by itself, and no
 * response tells what is behind it.
 */

const installed = programs();
const HOUR_MS = 3_600_000;

describe.runIf(servers.asked)("three processes, and servers that restart", () => {
  it("has PostgreSQL, PgBouncer and Redis to start, where they are required", () => {
    expect(installed !== undefined || process.env.SOAK_FAULTS !== "required").toBe(true);
  });

  it.runIf(installed).each(["PostgreSQL, by PgBouncer", "Redis"])(
    "R3, R5, R10: with sessions in %s, nothing crosses, and nothing is lost",
    async (sessionsIn) => {
      if (!installed) return;
      const worker = await buildForProcesses(join(import.meta.dirname, "worker.ts"));
      onTestFinished(worker.remove);
      const postgres = await startPostgres(installed);
      const isInRedis = sessionsIn === "Redis";
      const redis = isInRedis ? await startRedis(installed) : undefined;
      const bouncer = isInRedis ? undefined : await startPgBouncer(installed, postgres.port);
      const world = createWorld(worker.path, {
        database: { name: "postgres", port: (bouncer ?? postgres).port },
        secret: randomBytes(32).toString("hex"),
        ...(redis && { redis: { prefix: "soak:", port: redis.port } }),
      });
      onTestFinished(async () => void (await Promise.all(world.running().map(world.kill))));
      for (const index of [0, 1, 2]) await world.launch(index);
      await world.operator();

      /** How long processes needed once a server was back, in ms. */
      const recoveries: Record<string, number[]> = {};
      const takeAway = async (name: string, run: () => Promise<void>) => {
        recoveries[name] = [...(recoveries[name] ?? []), await world.takeAway(run)];
      };
      const setClock = (index: number, ahead: number) =>
        world.members[index]?.child.send({ ahead });

      const restartPostgres = async (signal: "SIGINT" | "SIGQUIT") => {
        await postgres.stop(signal);
        await sleep(300);
        await postgres.start();
      };
      const emptyRedis = async () => {
        const client = new Redis({ host: "127.0.0.1", port: redis?.port ?? 0 });
        await client.flushall();
        await client.quit();
        world.loseSessions();
      };
      const restartRedis = async () => {
        await redis?.stop("SIGTERM");
        await sleep(300);
        await redis?.start();
        world.loseSessions();
      };

      let isOpen = true;
      const pause = () => sleep((SECONDS * 1000) / 8);
      const faults = async () => {
        await pause();
        setClock(0, HOUR_MS);
        await takeAway("PostgreSQL, fast", () => restartPostgres("SIGINT"));
        await pause();
        if (isInRedis) await takeAway("FLUSHALL", emptyRedis);
        await takeAway("PostgreSQL, immediate", () => restartPostgres("SIGQUIT"));
        await pause();
        setClock(1, -HOUR_MS);
        if (isInRedis) await takeAway("Redis", restartRedis);
        await pause();
        // What is known of tenants now must not be believed for another hour.
        for (const index of [0, 1]) setClock(index, 0);
        await pause();
        isOpen = false;
      };
      await Promise.all([
        faults(),
        world.manage(() => isOpen),
        ...Array.from({ length: 24 }, (_, index) => world.live(`user-${index}`, () => isOpen)),
      ]);
      await world.checkPeople();
      await world.removeAll();
      await world.checkSessions();
      const [member] = world.members;
      member?.child.send("purge");
      if (member) await once(member.child, "message");

      console.log(`Sessions in ${sessionsIn}, SOAK_SEED=${SEED}`, world.counts, recoveries);
      expect(world.findings).toEqual([]);
      const client = new Client({ host: "127.0.0.1", port: postgres.port, user: "postgres" });
      await client.connect();
      onTestFinished(() => client.end());
      const query = async (sql: string) => (await client.query(sql)).rows;
      expect(await rowsLeft({ query })).toEqual([]);
      const { failed, deleted, checked } = world.counts;
      expect([failed > 0, deleted > 4, checked > 40]).toEqual([true, true, true]);
    },
    SECONDS * 3_000 + 120_000,
  );
});
