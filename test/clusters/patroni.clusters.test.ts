import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { SECONDS, startSoak } from "../soak/world";
import { startPatroni } from "./patroni";

/*
 * Three processes, and three PostgreSQL with Patroni. The primary is killed three times, and comes
 * back as a standby.
 */

const KILLS = 3;

it("R3, R5, R10: with a PostgreSQL that fails over, nothing crosses, and nothing is lost", {
  timeout: SECONDS * 3_000 + 480_000,
}, async () => {
  const patroni = await startPatroni();
  const world = await startSoak(
    { database: { kind: "postgres", name: "postgres", port: patroni.port } },
    { mayRollBack: true },
  );
  let isOpen = true;
  const pauses: number[] = [];
  const faults = async () => {
    for (let count = 0; count < KILLS; count++) {
      await sleep((SECONDS * 1_000) / 8);
      await patroni.findStandby();
      const primary = await patroni.findPrimary();
      world.counts.withoutWritesMs = 0;
      await world.takeAway(async () => {
        await primary.kill();
        await patroni.findPrimary();
      });
      await primary.start();
      await sleep(2_000);
      pauses.push(world.counts.withoutWritesMs);
    }
    isOpen = false;
  };
  await Promise.all([faults(), ...world.crowd(() => isOpen)]);
  await world.checkPeople();
  console.log("Time without writes, in ms:", pauses);

  const pool = new Pool({ host: "127.0.0.1", port: patroni.port, user: "postgres", max: 1 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  const query = async (sql: string) => (await pool.query(sql)).rows;
  await world.finish({ query, quote: (name) => `"${name}"` });
  expect(world.counts.signedUp).toBeGreaterThan(SECONDS);
});
