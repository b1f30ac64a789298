import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { programs, startPostgres } from "../soak/services";
import { SECONDS, startSoak } from "../soak/world";
import { startRedisCluster, startSentinel } from "./redis";

/*
 * Three processes with sessions in a replicated Redis. A master is killed twice. Replicas follow a
 * little later, so sessions of the last moment may be lost. Nothing else is, and no session that was
 * revoked comes back: see `runForGood` in `test/soak/worker.ts`.
 */

const KILLS = 2;
/** How much later, at most, a replica has what was stored. */
const LAST_MOMENT_MS = 2_000;

async function startSentinels() {
  const { connection, findMaster, isWhole } = await startSentinel();
  return { connection, findMaster, isWhole, hasMasters: async () => void (await findMaster()) };
}

it.each([
  ["Sentinel", startSentinels],
  ["Redis Cluster", startRedisCluster],
] as const)(
  "R3, R5, R10: with sessions in %s, a failover loses those of the last moment at most",
  { timeout: SECONDS * 3_000 + 240_000 },
  async (name, start) => {
    const installed = programs();
    if (!installed) throw new Error("PostgreSQL, PgBouncer or Redis is missing");
    const postgres = await startPostgres(installed);
    const redis = await start();
    const world = await startSoak({
      database: { kind: "postgres", name: "postgres", port: postgres.port },
      redis: { prefix: "soak:", ...redis.connection },
    });
    let isOpen = true;
    const pauses: number[] = [];
    const faults = async () => {
      for (let count = 0; count < KILLS; count++) {
        await sleep((SECONDS * 1_000) / 4);
        await redis.isWhole();
        const master = await redis.findMaster();
        world.counts.withoutWritesMs = 0;
        const failOver = async () => {
          await master.kill();
          await redis.hasMasters();
          await sleep(1_000);
          await master.start();
          // Until then, what waits for a replica waits in vain.
          await redis.isWhole();
        };
        await world.loseSessions(
          async () => void (await world.takeAway(failOver)),
          Date.now() - LAST_MOMENT_MS,
        );
        pauses.push(world.counts.withoutWritesMs);
      }
      await sleep((SECONDS * 1_000) / 4);
      isOpen = false;
    };
    await Promise.all([faults(), ...world.crowd(() => isOpen)]);
    await world.checkPeople();
    console.log(`${name}: time without new sessions, in ms:`, pauses);
    const client = new Client({ host: "127.0.0.1", port: postgres.port, user: "postgres" });
    await client.connect();
    onTestFinished(() => client.end());
    const query = async (sql: string) => (await client.query(sql)).rows;
    await world.finish({ query, quote: (column) => `"${column}"` });
    expect(world.counts.revoked).toBeGreaterThan(SECONDS);
  },
);
