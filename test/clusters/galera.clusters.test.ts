import { setTimeout as sleep } from "node:timers/promises";
import { createPool } from "mysql2/promise";
import { expect, it, onTestFinished } from "vitest";
import { SECONDS, startSoak } from "../soak/world";
import { startGalera } from "./galera";

/*
 * Three processes on three nodes, all of which are written to. One node is killed and comes back.
 * While two of three are there, a response is never worse than 503 `TRY_AGAIN`.
 */

it("R3, R5, R10: on a Galera cluster that loses a node, nothing crosses, and nothing is lost", {
  timeout: SECONDS * 3_000 + 240_000,
}, async () => {
  const galera = await startGalera({ "wsrep-sync-wait": Number(process.env.SYNC_WAIT ?? 7) });
  const world = await startSoak(
    { database: { kind: "mysql", name: "auth", port: galera.port } },
    { mayRollBack: true },
  );
  let isOpen = true;
  const faults = async () => {
    const [, node] = galera.nodes;
    if (!node) throw new Error("There is no second node");
    await sleep(SECONDS * 300);
    await node.kill();
    await sleep(SECONDS * 300);
    const since = Date.now();
    await galera.restart(node);
    console.log(`The node was back after ${Date.now() - since} ms`);
    await sleep(SECONDS * 300);
    isOpen = false;
  };
  await Promise.all([faults(), ...world.crowd(() => isOpen)]);
  await world.checkPeople();

  const pool = createPool({
    host: "127.0.0.1",
    port: galera.port,
    user: "root",
    database: "auth",
    connectionLimit: 1,
  });
  onTestFinished(() => pool.end());
  const query = async (sql: string) => (await pool.query(sql))[0] as Record<string, unknown>[];
  await world.finish({ query, quote: (name) => `\`${name}\`` });
  expect(world.counts.signedUp).toBeGreaterThan(SECONDS);
});
