import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { Client } from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { servers } from "../support/database";
import { programs, startPgBouncer, startPostgres, startRedis } from "./services";
import { SECONDS, startSoak } from "./world";

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
      const postgres = await startPostgres(installed);
      const isInRedis = sessionsIn === "Redis";
      const redis = isInRedis ? await startRedis(installed) : undefined;
      const bouncer = isInRedis ? undefined : await startPgBouncer(installed, postgres.port);
      const world = await startSoak({
        database: { kind: "postgres", name: "postgres", port: (bouncer ?? postgres).port },
        ...(redis && { redis: { prefix: "soak:", port: redis.port } }),
      });

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
        await world.loseSessions(async () => void (await client.flushall()));
        await client.quit();
      };
      const restartRedis = async () => {
        await world.loseSessions(async () => {
          await redis?.stop("SIGTERM");
          await sleep(300);
          await redis?.start();
        });
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
      await Promise.all([faults(), ...world.crowd(() => isOpen)]);
      await world.checkPeople();
      console.log(`Sessions in ${sessionsIn}`, recoveries);
      const client = new Client({ host: "127.0.0.1", port: postgres.port, user: "postgres" });
      await client.connect();
      onTestFinished(() => client.end());
      const query = async (sql: string) => (await client.query(sql)).rows;
      await world.finish({ query, quote: (name) => `"${name}"` });
      expect(world.counts.failed).toBeGreaterThan(0);
    },
    SECONDS * 3_000 + 120_000,
  );
});
