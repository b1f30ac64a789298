import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, servers } from "../support/database";
import { buildForProcesses } from "../support/processes";
import { CHECKED, findRows, LateComers, Operator, Person } from "./people";
import { Random, World } from "./world";

/*
 * Three processes on one PostgreSQL, with sessions there or in Redis, and everything at once: people
 * come and go, tenants too, and processes are killed. SOAK_SECONDS=60 makes it longer, and
 * SOAK_SEED=… makes the same choices again, as far as time allows.
 */
const SECONDS = Number(process.env.SOAK_SECONDS ?? 20);
const SEED = Number(process.env.SOAK_SEED ?? randomBytes(4).readUInt32BE());
const random = (index: number) => new Random(SEED + index);

/** A database, the beginning of keys in Redis, and the processes on them. */
async function createWorld(sessionsIn: "PostgreSQL" | "Redis") {
  const worker = await buildForProcesses(join(import.meta.dirname, "worker.ts"));
  onTestFinished(worker.remove);
  const database = await createDatabase("postgres");
  onTestFinished(() => database.close());
  const [row] = await database.query("select current_database() as name");
  const redisPrefix = `soak-${randomBytes(8).toString("hex")}:`;
  const redis = new Redis({ host: "127.0.0.1", port: 6379 });
  onTestFinished(async () => {
    const keys = await redis.keys(`${redisPrefix}*`);
    if (keys.length) await redis.del(keys);
    await redis.quit();
  });
  const world = new World(worker.path, {
    database: String(row?.name),
    secret: randomBytes(32).toString("hex"),
    ...(sessionsIn === "Redis" && { redisPrefix }),
  });
  // Runs first: what is still connected would keep the database, and write new keys.
  onTestFinished(() => world.fleet.close());
  await world.fleet.start();
  return { world, database };
}

/** Kills one process after the other, never two at a time. */
async function killNowAndThen(world: World, chance: Random, goesOn: () => boolean) {
  for (;;) {
    const end = Date.now() + 2_500 + chance.below(3_000);
    for (; Date.now() < end; await sleep(100)) if (!goesOn()) return;
    world.kills.push(Date.now());
    await world.fleet.killAndRestart(chance.pick(world.fleet.running));
  }
}

/** Everybody at once for so many seconds; then every tenant goes, while people are still there. */
async function liveThrough(world: World, late: LateComers) {
  const operator = new Operator(world, random(1));
  await operator.arrive();
  const end = Date.now() + SECONDS * 1000;
  let closed = false;
  const isOpen = () => !closed && Date.now() < end;
  const isNotClosed = () => !closed;
  const manage = async () => {
    await Promise.all([operator.work(isOpen), operator.work(isOpen)]);
    await operator.deleteAll();
  };
  const close = () => {
    closed = true;
  };
  const people = Array.from({ length: 24 }, (_, index) =>
    new Person(world, random(100 + index), `p${index}`).live(isNotClosed),
  );
  // Whoever is in trouble ends it for everybody.
  await Promise.all([
    ...people,
    late.comeBack(isNotClosed).finally(close),
    killNowAndThen(world, random(2), isOpen),
    manage().finally(close),
  ]);
}

describe.runIf(servers.asked)("three processes, people and tenants that come and go", () => {
  it.each(["PostgreSQL", "Redis"] as const)(
    "with sessions in %s: nothing crosses, stays or is left behind",
    async (sessionsIn) => {
      const { world, database } = await createWorld(sessionsIn);
      const late = new LateComers(world, random(3));
      await liveThrough(world, late);
      await late.checkAll();
      await findRows(world, database);

      const { counts, kills, fleet } = world;
      console.log(`Soak with sessions in ${sessionsIn}, ${SECONDS} s, SOAK_SEED=${SEED}`, counts);
      const logs = fleet.members.flatMap(({ log }) => log).slice(-20);
      expect(world.findings, logs.join("\n")).toEqual([]);
      // That nothing went wrong says something only if a lot was done.
      expect(kills.length).toBeGreaterThan(0);
      expect(counts["tenants deleted"]).toBeGreaterThan(4);
      expect(counts[CHECKED]).toBeGreaterThan(40);
    },
    SECONDS * 3_000 + 120_000,
  );
});
