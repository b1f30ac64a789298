import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { SecondaryStorage } from "better-auth/db";
import type { DBTransactionAdapter } from "better-auth/types";
import { isMySQL } from "../border/border";
import { rootCause } from "../framework";

/*
 * What takes rows and sessions of a tenant away. All of it runs inside the tenant's scope, where
 * "everything" is what the border lets through.
 */

/** How many rows are in memory at a time. */
export const PAGE = 5_000;
/** How many ids are in a statement; there are databases that take 100 parameters at most. */
const CHUNK = 90;
/** How many ids are forgotten at a time. */
const LANES = 20;
/** By when every process knows that a tenant is gone or suspended: it is remembered for ten seconds. */
export const LATEST_ARRIVAL_MS = 11_000;
/** How often a deletion is tried that loses a deadlock. */
const TRIES = 5;
/** Words of MySQL, PostgreSQL and Prisma for it. */
const DEADLOCKS = ["ER_LOCK_DEADLOCK", "40P01", "P2034"];

/** How many rows of each model. */
export type Rows = Record<string, number>;

/** The process need not stay alive for it, and the database may be closed by then. */
export function later(ms: number, run: () => Promise<void>): void {
  const timer = setTimeout(() => void run().catch(() => {}), ms);
  (timer as { unref?: () => void }).unref?.();
}

/**
 * Whoever signs up or in meanwhile has locks of their own. On a deadlock the database rolls one side
 * back, and we try again, unless a transaction of the caller was rolled back with ours.
 */
export async function despiteDeadlocks<T>(ctx: AuthContext, run: () => Promise<T>): Promise<T> {
  const inTransaction = (await getCurrentAdapter(ctx.adapter)) !== ctx.adapter;
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      const { code = "" } = rootCause(error);
      if (inTransaction || tries === TRIES || !DEADLOCKS.includes(code)) throw error;
    }
  }
}

/** Returns the ids of the deleted users, and counts what it deletes. */
export async function emptyScope(
  ctx: AuthContext,
  models: string[],
  rows: Rows,
): Promise<string[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const userIds: string[] = [];
  // Users last: they would take their rows in the other tables along, one user at a time.
  for (const model of models.toReversed()) {
    if (!ctx.tables[model]) continue;
    const owned = ownedTables(ctx, models, model);
    const forget = ctx.options.secondaryStorage && FORGET.get(model);
    if (!forget && !owned.length) {
      rows[model] = await deleteAllOf(adapter, model);
      continue;
    }
    rows[model] = await deleteById(adapter, model, async (ids) => {
      // Before the rows: without them nobody knows any more whose sessions there are.
      if (forget) await forgetSideBySide(ctx, ids, forget);
      for (const table of owned) await deleteByIds(adapter, table, ids);
      if (model === "user") for (const id of ids) userIds.push(id);
    });
  }
  return userIds;
}

/** Whatever of a model is in the scope. */
export function deleteAllOf(adapter: DBTransactionAdapter, model: string): Promise<number> {
  return isMySQL(adapter)
    ? deleteById(adapter, model, async () => {})
    : adapter.deleteMany({ model, where: [] });
}

/**
 * For those who have to know who is deleted, and for MySQL, which locks whatever it goes through
 * until the commit: the whole table where it takes a tenant for large, and the gaps between rows,
 * which is where other tenants' rows are about to be put. By id it locks the rows themselves.
 */
async function deleteById(
  adapter: DBTransactionAdapter,
  model: string,
  beforeDeletion: (ids: string[]) => Promise<void>,
): Promise<number> {
  let before = new Set<string>();
  for (let count = 0; ; ) {
    const rows = await adapter.findMany<{ id: string }>({ model, select: ["id"], limit: PAGE });
    const ids = rows.map(({ id }) => id);
    await beforeDeletion(ids);
    count += await deleteByIds(adapter, { model, field: "id" }, ids);
    // MySQL goes on showing rows that somebody else has deleted in the meantime.
    if (ids.length < PAGE || ids.every((id) => before.has(id))) return count;
    before = new Set(ids);
  }
}

export async function deleteByIds(
  adapter: DBTransactionAdapter,
  { model, field }: { model: string; field: string },
  ids: string[],
): Promise<number> {
  let count = 0;
  for (let start = 0; start < ids.length; start += CHUNK) {
    const value = ids.slice(start, start + CHUNK);
    count += await adapter.deleteMany({ model, where: [{ field, operator: "in", value }] });
  }
  return count;
}

/**
 * Tables of plugins that belong to rows of a model and to no tenant: two-factor secrets, say. Where
 * the database has foreign keys it would take those rows along; not every database has.
 */
function ownedTables({ tables, options }: AuthContext, confined: string[], owner: string) {
  const names = [owner, tables[owner]?.modelName];
  const unreferenced = UNREFERENCED.filter(
    ({ plugin, owners }) =>
      owners.includes(owner) && options.plugins?.some(({ id }) => id === plugin),
  );
  return Object.entries(tables).flatMap(([model, { fields }]) =>
    Object.entries(fields).flatMap(([field, { references }]) => {
      const isOwned = references
        ? names.includes(references.model) && (references.onDelete ?? "cascade") === "cascade"
        : unreferenced.some((column) => column.model === model && column.field === field);
      return isOwned && !confined.includes(model) ? [{ model, field }] : [];
    }),
  );
}

/**
 * Columns of official plugins that hold the id of somebody without saying so in the schema. A row
 * that is left there is a key or a code of whoever gets that number next.
 *
 * Guarded by "official plugins say whose id is in a column, except for these".
 */
const UNREFERENCED = [
  {
    plugin: "api-key",
    model: "apikey",
    field: "referenceId",
    owners: ["user", "organization"],
  },
  { plugin: "device-authorization", model: "deviceCode", field: "userId", owners: ["user"] },
];

/** Takes what belongs to an id away from a storage. Runs inside the scope that it is in. */
type Forget = (storage: SecondaryStorage, id: string) => Promise<void>;

/** Each id costs a few trips to the storage, and there may be many. */
export async function forgetSideBySide(
  { options: { secondaryStorage } }: AuthContext,
  ids: string[],
  forget: Forget = forgetUser,
): Promise<void> {
  if (!secondaryStorage) return;
  const share = Math.ceil(ids.length / LANES);
  const lanes = Array.from({ length: LANES }, async (_, lane) => {
    for (const id of ids.slice(lane * share, (lane + 1) * share))
      await forget(secondaryStorage, id);
  });
  await Promise.all(lanes);
}

export const forgetSessions: Forget = async (storage, userId) => {
  const sessions = `active-sessions-${userId}`;
  for (const { token } of (await read(storage, sessions)) ?? []) await storage.delete(token);
  await storage.delete(sessions);
};

/** As @better-auth/api-key stores them: a list for each owner, and two entries for each key. */
const forgetKeys: Forget = async (storage, ownerId) => {
  const keys = `api-key:by-ref:${ownerId}`;
  for (const id of (await read(storage, keys)) ?? []) await forgetKey(storage, id);
  await storage.delete(keys);
};

const forgetKey: Forget = async (storage, id) => {
  const stored = await read(storage, `api-key:by-id:${id}`);
  if (!stored) return;
  const entries = [`by-id:${id}`, stored.key];
  await Promise.all(entries.map((entry) => storage.delete(`api-key:${entry}`)));
};

/** Some of an owner's keys: a user and an organization of the same number have one list. */
export async function forgetSomeKeys(
  { options: { secondaryStorage: storage } }: AuthContext,
  ownerId: string,
  ids: string[],
): Promise<void> {
  if (!storage) return;
  for (const id of ids) await forgetKey(storage, id);
  const keys = `api-key:by-ref:${ownerId}`;
  const left: string[] = [];
  for (const id of ((await read(storage, keys)) ?? []) as string[]) {
    // A storage may lose a key, and then nobody sees that it is still in the database.
    if (!ids.includes(id) && (await storage.get(`api-key:by-id:${id}`))) left.push(id);
  }
  await (left.length ? storage.set(keys, JSON.stringify(left)) : storage.delete(keys));
}

const forgetUser: Forget = async (storage, id) => {
  await forgetSessions(storage, id);
  // In newer better-auth, when they were ended: nobody is left whose could be from before that.
  await storage.delete(`revoked-sessions-before-${id}`);
  await forgetKeys(storage, id);
};

/** By model. Keys with a row are not in the list of their owner: the storage only has copies. */
const FORGET = new Map([
  ["user", forgetUser],
  ["organization", forgetKeys],
  ["apikey", forgetKey],
]);

async function read(storage: SecondaryStorage, key: string) {
  const stored = await storage.get(key);
  return typeof stored === "string" ? JSON.parse(stored) : stored;
}
