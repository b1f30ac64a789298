import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
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
/** How many users are forgotten at a time. */
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
    const ofUsers = model === "user" ? tablesOfUsers(ctx, models) : [];
    const forgets = model === "user" && ctx.options.secondaryStorage;
    if (!forgets && !ofUsers.length) {
      rows[model] = await deleteAllOf(adapter, model);
      continue;
    }
    rows[model] = await deleteById(adapter, model, async (ids) => {
      // Before the rows: without them nobody knows any more whose sessions there are.
      if (forgets) await forgetSideBySide(ctx, ids);
      for (const table of ofUsers) await deleteByIds(adapter, table, ids);
      for (const id of ids) userIds.push(id);
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

async function deleteByIds(
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
 * Tables of plugins that belong to users and to no tenant: two-factor secrets, say. Where the
 * database has foreign keys it would take those rows along; not every database has.
 */
function tablesOfUsers({ tables }: AuthContext, confined: string[]) {
  const user = tables.user?.modelName;
  return Object.entries(tables).flatMap(([model, { fields }]) =>
    Object.entries(fields).flatMap(([field, { references }]) => {
      const cascades = (references?.onDelete ?? "cascade") === "cascade";
      const isUser = references?.model === user || references?.model === "user";
      return isUser && cascades && !confined.includes(model) ? [{ model, field }] : [];
    }),
  );
}

/** Each user costs a few trips to the storage, and there may be many users. */
export async function forgetSideBySide(
  ctx: AuthContext,
  userIds: string[],
  what: "sessions" | "all" = "all",
): Promise<void> {
  const share = Math.ceil(userIds.length / LANES);
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    userIds.slice(lane * share, (lane + 1) * share),
  );
  await Promise.all(lanes.map((ids) => forgetUsers(ctx, ids, what)));
}

/** Ends the sessions of users, and their API keys where all has to go. Runs inside their scope. */
async function forgetUsers(
  { options }: AuthContext,
  userIds: string[],
  what: "sessions" | "all",
): Promise<void> {
  const storage = options.secondaryStorage;
  if (!storage) return;
  const read = async (key: string) => {
    const stored = await storage.get(key);
    return typeof stored === "string" ? JSON.parse(stored) : stored;
  };
  for (const userId of userIds) {
    const sessions = `active-sessions-${userId}`;
    for (const { token } of (await read(sessions)) ?? []) await storage.delete(token);
    await storage.delete(sessions);
    if (what === "sessions") continue;
    // As @better-auth/api-key stores them: a list for each user, and two entries for each key.
    const keys = `api-key:by-ref:${userId}`;
    for (const id of (await read(keys)) ?? []) {
      const stored = await read(`api-key:by-id:${id}`);
      await Promise.all(
        [`by-id:${id}`, stored?.key].map((key) => storage.delete(`api-key:${key}`)),
      );
    }
    await storage.delete(keys);
  }
}
