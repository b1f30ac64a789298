import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, servers } from "../support/database";
import { buildForProcesses } from "../support/processes";
import { findRows, LateComers, Operator, Person } from "./people";
import { createRandom, Fleet, Ledger, type Random, World } from "./world";

/*
 * Three processes on one PostgreSQL, with sessions there or in Redis, and everything at once: people
 * come and go, tenants too, and processes are killed. SOAK_SECONDS=60 makes it longer, and
 * SOAK_SEED=… makes the same choices again, as far as time allows.
 */
const SECONDS = Number(process.env.SOAK_SECONDS ?? 20);
const SEED = Number(process.env.SOAK_SEED ?? randomBytes(4).readUInt32BE());
const PEOPLE = 24;
const OPERATORS = 2;

let built: Awaited<ReturnType<typeof buildForProcesses>> | undefined;

beforeAll(async () => {
  if (servers.asked) built = await buildForProcesses(join(import.meta.dirname, "worker.ts"));
}, 60_000);

afterAll(() => built?.remove());

/** A database, the beginning of keys in Redis, and the processes on them. */
async function createWorld(sessionsIn: "PostgreSQL" | "Redis") {
  const database = await createDatabase("postgres");
  onTestFinished(() => database.close());
  const [row] = await database.query("select current_database() as name");
  const prefix = `soak-${randomBytes(8).toString("hex")}:`;
  const redis = new Redis({ host: "127.0.0.1", port: 6379 });
  onTestFinished(async () => {
    const keys = await redis.keys(`${prefix}*`);
    if (keys.length) await redis.del(keys);
    await redis.quit();
  });
  const world = new World(new Ledger());
  world.fleet = await Fleet.start({
    script: built?.path ?? "",
    order: {
      database: String(row?.name),
      secret: randomBytes(32).toString("hex"),
      ...(sessionsIn === "Redis" ? { redisPrefix: prefix } : {}),
    },
    onDeath: ({ number, log }) =>
      world.ledger.fail("server error", `process ${number} died: ${log.slice(-5).join(" ")}`),
  });
  // Runs first: what is still connected would keep the database, and write new keys.
  onTestFinished(() => world.fleet.close());
  return { world, database };
}

/** Kills one process after the other, never two at a time. */
async function killNowAndThen(
  { fleet, ledger, kills }: World,
  random: Random,
  goesOn: () => boolean,
) {
  for (;;) {
    const pause = 2_500 + random.below(3_000);
    for (const end = Date.now() + pause; Date.now() < end; await sleep(100)) if (!goesOn()) return;
    kills.push(Date.now());
    await fleet.killAndRestart(random.pick(fleet.running));
    ledger.count("kills");
  }
}

/** Everybody at once for so many seconds; then every tenant goes, while people are still there. */
async function liveThrough(world: World, late: LateComers) {
  const random = (index: number) => createRandom(SEED + index);
  const operator = await Operator.arrive(world, random(1));
  for (let tenants = 0; tenants < 4; tenants++) await operator.createTenant();

  const end = Date.now() + SECONDS * 1000;
  let closed = false;
  const isOpen = () => !closed && Date.now() < end;
  const isNotClosed = () => !closed;
  const manage = async () => {
    await Promise.all(Array.from({ length: OPERATORS }, () => operator.work(isOpen)));
    await operator.deleteAll();
  };
  const close = () => {
    closed = true;
  };
  const people = Array.from({ length: PEOPLE }, (_, index) =>
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
      const { ledger } = world;
      const late = new LateComers(world, createRandom(SEED));
      await liveThrough(world, late);
      await late.checkAll();
      await findRows(world, database);

      const seed = `${SECONDS} s, SOAK_SEED=${SEED}`;
      console.log(ledger.report(`Soak with sessions in ${sessionsIn}, ${seed}`));
      const logs = world.fleet.members.flatMap(({ log }) => log).slice(-20);
      expect(ledger.findings, logs.join("\n")).toEqual([]);
      // That nothing went wrong says something only if a lot was done.
      expect(ledger.counted("kills")).toBeGreaterThan(0);
      expect(ledger.counted("tenants deleted")).toBeGreaterThan(4);
      expect(ledger.counted("sessions checked after the deletion")).toBeGreaterThan(40);
    },
    SECONDS * 3_000 + 120_000,
  );
});
