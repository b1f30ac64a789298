import type { Redis } from "ioredis";
import type { TestDatabase } from "../support/database";
import type { LateComers } from "./late";
import { idsIn, type World } from "./world";

/** Every table with a tenant in it: what belongs to one has to be gone with it. */
export async function findRows(world: World, database: TestDatabase): Promise<void> {
  const columns = await database.query(
    "select table_name as name, column_name as column from information_schema.columns where table_schema = 'public'",
  );
  const withColumn = (column: string) =>
    columns.filter((one) => one.column === column).map(({ name }) => String(name));
  for (const table of withColumn("tenantId")) {
    await expectNone(world, database, table, `coalesce("tenantId", '') <> ''`);
  }
  for (const table of withColumn("userId")) {
    await expectNone(world, database, table, `"userId" not in (select id from "user")`);
  }
  await expectNone(world, database, "tenant", "true");
}

async function expectNone(world: World, database: TestDatabase, table: string, where: string) {
  const rows = await database.query(`select * from "${table}" where ${where}`);
  for (const row of rows) {
    world.ledger.fail("left behind", `${table}, ${storyOf(world, row)}: ${JSON.stringify(row)}`);
  }
  world.ledger.count("tables looked at");
}

/** What happened around the time at which a row was made: that tells whose fault it is. */
function storyOf({ tenants, kills }: World, { tenantId, createdAt }: Record<string, unknown>) {
  const made = createdAt instanceof Date ? createdAt.getTime() : Number.NaN;
  const after = (time: number | undefined) =>
    time ? `${((time - made) / 1000).toFixed(2)} s later` : "never";
  const goneAt = tenants.find(({ id }) => id === tenantId)?.goneAt;
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
