import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { TestDatabase } from "../support/database";
import type { LateComers } from "./late";
import { idsIn, type World } from "./world";

type Row = Record<string, unknown>;

/** How long after a deletion the process that did it sweeps for the last time, and a little more. */
const SWEPT_MS = 12_000;

/** Every table with a tenant in it: what belongs to one has to be gone with it. */
export async function findRows(world: World, database: TestDatabase): Promise<void> {
  if ((await leftIn(database)).length > 0) await sleep(SWEPT_MS);
  for (const { table, row } of await leftIn(database)) {
    // A sign-up that was cut off halfway is for the one that deleted the tenant to undo, and that
    // one was killed as well. Nobody can use such rows, and checkDeployment() finds them.
    if (nobodyWasLeft(world, row)) {
      world.ledger.count("rows that nobody was left to take away");
      continue;
    }
    world.ledger.fail("left behind", `${table}, ${storyOf(world, row)}: ${JSON.stringify(row)}`);
  }
}

async function leftIn(database: TestDatabase) {
  const columns = await database.query(
    "select table_name as name, column_name as column from information_schema.columns where table_schema = 'public'",
  );
  const withColumn = (column: string) =>
    columns.filter((one) => one.column === column).map(({ name }) => String(name));
  const rows = async (table: string, where: string) =>
    (await database.query(`select * from "${table}" where ${where}`)).map((row) => ({
      table,
      row,
    }));
  const found = [
    ...withColumn("tenantId").map((table) => rows(table, `coalesce("tenantId", '') <> ''`)),
    ...withColumn("userId").map((table) => rows(table, `"userId" not in (select id from "user")`)),
    rows("tenant", "true"),
  ];
  return (await Promise.all(found)).flat();
}

function nobodyWasLeft({ tenants, kills }: World, row: Row): boolean {
  const { deleters = [], goneAt = 0 } = tenants.find(({ id }) => id === row.tenantId) ?? {};
  const isCutOff = kills.some((time) => time >= madeAt(row) && time < madeAt(row) + SWEPT_MS);
  return isCutOff && deleters.every(({ killedAt = Infinity }) => killedAt < goneAt + SWEPT_MS);
}

const madeAt = ({ createdAt }: Row) =>
  createdAt instanceof Date ? createdAt.getTime() : Number.NaN;

/** What happened around the time at which a row was made: that tells whose fault it is. */
function storyOf({ tenants, kills }: World, row: Row) {
  const made = madeAt(row);
  const after = (time: number | undefined) =>
    time ? `${((time - made) / 1000).toFixed(2)} s later` : "never";
  const goneAt = tenants.find(({ id }) => id === row.tenantId)?.goneAt;
  const killed = kills.find((time) => time >= made);
  return `deletion answered ${after(goneAt)}, next kill ${after(killed)}`;
}

/**
 * What is left in Redis may wait there for its end, but must be of no use. How the plugin marks
 * what is whose is its own affair, so everything that looks like a token is tried as one.
 */
export async function findKeys(world: World, late: LateComers, redis: Redis, prefix: string) {
  const tokens = new Set<string>();
  for (const key of await redis.keys(`${prefix}*`)) {
    const entry = `${key.slice(prefix.length)} ${await redis.get(key)}`;
    if (!world.mentionsTenant(entry)) continue;
    world.ledger.count("left in Redis of tenants");
    world.ledger.count(`left in Redis of tenants, as ${formOf(entry)}`);
    for (const id of idsIn(entry)) tokens.add(id);
  }
  await late.checkTokens([...tokens]);
}

/** The key without what is random in it. */
function formOf(entry: string): string {
  const [key = ""] = entry.split(" ");
  return key.replace(/[A-Za-z0-9]{24,}/g, "*").replace(/(user|boss)-\S+@example.com/, "e-mail");
}
