import type { AuthContext } from "better-auth";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { databaseOf, isMySQL, type Row } from "../database";
import { ALL } from "../tenants/tenants";
import { type ExactConditions, readSchema } from "./exact-conditions";

/*
 * MySQL, MariaDB and SQL Server compare texts by the collation of the column. By default, case,
 * accents and trailing spaces do not count: a condition on `boss@pártner.com` finds the row of
 * `boss@partner.com`. An attacker who owns the first address could reset the password of the
 * second.
 *
 * This layer lies directly above the application's adapter, for tenants and the platform. It finds
 * a row only if the row holds exactly the texts that `eq` and `in` conditions ask for, as far as
 * `exact-conditions.ts` compares them. A read drops look-alikes from its result. A write that could
 * change one first reads the ids of the exact rows, and adds them to its conditions.
 */

type FindMany = Parameters<DBAdapter["findMany"]>[0];
type Write = { model: string; where: Where[] };

/** Databases that compare texts exactly by default: this layer is left out. */
const EXACT = [
  ...["sqlite", "postgres", "postgresql", "pg", "cockroachdb", "mongodb"],
  ...["mongodb-adapter", "memory"],
];

/** How many ids one statement takes. */
const CHUNK = 500;

/** Returns an adapter that finds and changes only exact rows: see above. */
export function withExactRows<A extends DBTransactionAdapter>(ctx: AuthContext, adapter: A): A {
  if (EXACT.includes(databaseOf(adapter) ?? adapter.id)) return adapter;
  const schema = readSchema(ctx, isMySQL(adapter));

  async function findOne<T>(asked: Parameters<DBAdapter["findOne"]>[0]): Promise<T | null> {
    const input = schema.withTexts(asked);
    const exact = schema.readConditions(input.model, input.where);
    const { select, removeAdded } = selectCompared(input.select, exact);
    const row = await adapter.findOne<T & Row>(select ? { ...input, select } : input);
    if (!row) return null;
    if (exact.areMetBy(row)) return removeAdded(schema.dropLookAlikes(row, input));
    // The database returned a look-alike. The exact row may come after it.
    const [exactRow = null] = await findMany<T>({ ...input, limit: 1 });
    return exactRow;
  }

  async function findMany<T>(asked: FindMany): Promise<T[]> {
    const input = schema.withTexts(asked);
    const exact = schema.readConditions(input.model, input.where);
    const { select, removeAdded } = selectCompared(input.select, exact);
    const call = select ? { ...input, select } : input;
    const { offset = 0 } = input;
    // Look-alikes on earlier pages would shift this page.
    const isMoved = offset > 0 && exact.needIds;
    const found = isMoved ? [] : await adapter.findMany<T & Row>(call);
    let rows = found.filter(exact.areMetBy);
    if (isMoved || rows.length < found.length) {
      // Look-alikes filled places of this page, so later rows are missing.
      const { limit = ctx.options.advanced?.database?.defaultFindManyLimit ?? 100 } = input;
      const all = await adapter.findMany<T & Row>({ ...call, limit: ALL, offset: 0 });
      rows = all.filter(exact.areMetBy).slice(offset, offset + limit);
    }
    return rows.map((row) => removeAdded(schema.dropLookAlikes(row, input)));
  }

  /**
   * Returns the ids of the rows that a write may change; undefined if its conditions need no ids.
   */
  async function findIds({ model, where }: Write): Promise<string[] | undefined> {
    if (!schema.readConditions(model, where).needIds) return undefined;
    const rows = await findMany<Row>({ model, where, select: ["id"], limit: ALL });
    return rows.map(({ id }) => String(id));
  }

  /** Runs a write of many rows for the exact ones, and returns how many it has written. */
  async function writeMany<W extends Write>(asked: W, run: (write: W) => Promise<number>) {
    const write = schema.withTexts(asked);
    const ids = await findIds(write);
    if (!ids) return run(write);
    let count = 0;
    for (let start = 0; start < ids.length; start += CHUNK) {
      count += await run(withIds(write, ids.slice(start, start + CHUNK)));
    }
    return count;
  }

  /** Runs a write of a single row on the first exact row that still exists. */
  async function takeOne<W extends Write, T>(asked: W, run: (write: W) => Promise<T | null>) {
    const write = schema.withTexts(asked);
    const ids = await findIds(write);
    if (!ids) return run(write);
    for (const id of ids) {
      const row = await run(withIds(write, [id]));
      if (row) return row;
    }
    return null;
  }

  /**
   * Runs a write for each exact row, and returns the first result. Writes one row at a time,
   * because adapters expect a single id in the conditions of these methods.
   */
  async function writeEach<W extends Write, T>(asked: W, run: (write: W) => Promise<T>) {
    const write = schema.withTexts(asked);
    const ids = await findIds(write);
    if (!ids) return run(write);
    const results: T[] = [];
    for (const id of ids) results.push(await run(withIds(write, [id])));
    return results[0] ?? null;
  }

  const writes: Partial<DBTransactionAdapter> = {
    async count(input) {
      const call = schema.withTexts(input);
      const ids = await findIds({ model: call.model, where: call.where ?? [] });
      return ids ? ids.length : adapter.count(call);
    },
    update: <T>(input: Parameters<DBAdapter["update"]>[0]) =>
      writeEach(input, (write) => adapter.update<T>(write)),
    async delete(input) {
      await writeEach(input, (write) => adapter.delete(write));
    },
    updateMany: (input) => writeMany(input, (write) => adapter.updateMany(write)),
    deleteMany: (input) => writeMany(input, (write) => adapter.deleteMany(write)),
    consumeOne: <T>(input: Parameters<DBAdapter["consumeOne"]>[0]) =>
      takeOne(input, (write) => adapter.consumeOne<T>(write)),
    incrementOne: <T>(input: Parameters<DBAdapter["incrementOne"]>[0]) =>
      takeOne(input, (write) => adapter.incrementOne<T>(write)),
  };
  return Object.assign(Object.create(adapter), { findOne, findMany }, writes);
}

/**
 * Adds the ids to the conditions of a write, in front: MySQL does not return changed rows, and
 * adapters read them again by the first condition.
 */
function withIds<W extends Write>(write: W, ids: string[]): W {
  const [id = ""] = ids;
  const clause: Where =
    ids.length === 1
      ? { field: "id", value: id }
      : { field: "id", operator: "in" as const, value: ids };
  return { ...write, where: [clause, ...write.where] };
}

/** Adds the compared columns to the selected ones, and removes them from the rows again. */
function selectCompared(selected: string[] | undefined, { keys }: ExactConditions) {
  const added = selected?.length ? keys.filter((key) => !selected.includes(key)) : [];
  const removeAdded = <T extends Row>(row: T): T => {
    for (const key of added) delete row[key];
    return row;
  };
  return { select: added.length ? [...(selected ?? []), ...added] : undefined, removeAdded };
}
