import {
  getCurrentAdapter,
  queueAfterTransactionHook,
  runWithTransaction,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { SecondaryStorage } from "better-auth/db";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { clauses, pagesOf } from "../../core/database";
import { rootCause } from "../../core/database-errors";
import { isRolledBack } from "../../core/isolate/rolled-back";
import { forgetStoredSessions } from "../../core/isolate/stored-sessions";
import { type Isolation, isolationOf, unscopedAdapter } from "../../core/isolation";
import { runInScope, scopeOf } from "../../core/request";
import { PLATFORM } from "../../core/schema";
import { ALL, forgetTenant } from "../../core/tenants/tenants";
import { emit, type TenantActor } from "./events";

/** Rows in memory at a time. */
const PAGE = 5_000;
/** Ids in one statement: some databases accept at most 100 parameters. */
const CHUNK = 90;
/** Parallel calls to secondary storage. */
const LANES = 20;
const TRIES = 5;

const CONFIGS = "tenantOauthConfig";

/** The number of rows of each model. */
export type Rows = Record<string, number>;

/** Lists the isolated models that have a table: sessions may be in secondary storage only. */
const modelsOf = (ctx: AuthContext) =>
  (isolationOf(ctx)?.models ?? []).filter((model) => ctx.tables[model]);

/**
 * Deletes a tenant with everything in it, in one transaction. The tenant's own row goes last:
 * without transactions, an interrupted deletion can be repeated as long as that row exists. A
 * concurrent request that has already found the tenant may still write rows after the deletion. No
 * request can reach those rows, and `purgeTenants` removes them.
 *
 * Returns false if another process was faster, or the tenant does not match the conditions.
 */
export async function deleteTenant(
  ctx: AuthContext,
  actor: TenantActor,
  id: string,
  conditions: Where[] = [],
): Promise<boolean> {
  const userIds = new Set<string>();
  const rows = await transactionIn(ctx, id, async (adapter) => {
    // Locks the tenant's row: of two deletions at once, the second finds nothing.
    const where = [...clauses({ id }), ...conditions];
    const update = { updatedAt: new Date() };
    if (!(await adapter.updateMany({ model: "tenant", where, update }))) return undefined;
    const deleted = await deleteRows(ctx, adapter, id, userIds);
    await adapter.deleteMany({ model: "tenant", where: clauses({ id }) });
    return deleted;
  });
  await forgetTenant(ctx, id);
  if (!rows) return false;
  // A sign-in that found its user before the commit may have stored a session meanwhile. So
  // secondary storage is cleared again after the commit.
  await queueAfterTransactionHook(() =>
    runInScope(scopeOf(id), async () => {
      await forgetAll(ctx, "user", [...userIds]);
      await forgetStoredSessions(ctx);
    }),
  );
  await emit(ctx, actor, id, { type: "tenant:deleted", rows });
  return true;
}

const transactionIn = async <T>(
  ctx: AuthContext,
  tenantId: string,
  run: (adapter: DBTransactionAdapter) => Promise<T>,
): Promise<T> =>
  runInScope(scopeOf(tenantId), () =>
    despiteDeadlocks(ctx, () =>
      runWithTransaction(ctx.adapter, async () => run(await getCurrentAdapter(ctx.adapter))),
    ),
  );

/**
 * Calls `run` again if the database rolls it back because of a deadlock: concurrent sign-ups and
 * sign-ins lock rows, too. Inside a transaction of the caller, throws instead: the database rolled
 * it back as a whole, so `run` alone cannot repeat it.
 */
export async function despiteDeadlocks<T>(ctx: AuthContext, run: () => Promise<T>): Promise<T> {
  const inTransaction = (await getCurrentAdapter(ctx.adapter)) !== ctx.adapter;
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (inTransaction || tries === TRIES || !isRolledBack(error)) throw error;
    }
  }
}

async function deleteRows(
  ctx: AuthContext,
  adapter: DBTransactionAdapter,
  tenantId: string,
  userIds?: Set<string>,
) {
  const rows: Rows = {};
  const models = modelsOf(ctx);
  // Users go last. If they went first, the database would delete their rows in other tables one
  // user at a time.
  for (const model of models.toReversed()) {
    const ids = model === "user" ? userIds : undefined;
    rows[model] = await deleteAllOf(ctx, adapter, model, models, ids);
  }
  rows[CONFIGS] = await adapter.deleteMany({ model: CONFIGS, where: clauses({ tenantId }) });
  return rows;
}

/** Counts what a deletion would delete. */
export const countRows = (ctx: AuthContext, tenantId: string): Promise<Rows> =>
  runInScope(scopeOf(tenantId), async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const rows: Rows = {};
    for (const model of modelsOf(ctx)) rows[model] = await adapter.count({ model });
    rows[CONFIGS] = await adapter.count({ model: CONFIGS, where: clauses({ tenantId }) });
    return rows;
  });

/** Deletes tenants past their deletion date, and rows whose tenant no longer exists. */
export async function purgeTenants(ctx: AuthContext) {
  const purged: { deleted: string[]; failed: string[] } = { deleted: [], failed: [] };
  const attempt = async (id: string, run: () => Promise<void>) => {
    try {
      await run();
    } catch (error) {
      // One failure must not stop the others.
      purged.failed.push(id);
      const { name, code } = rootCause(error);
      ctx.logger.error(`Tenant ${id} could not be deleted: ${name} ${code ?? ""}`);
    }
  };
  const isDue: Where[] = [
    { field: "status", value: "deleting" },
    { field: "deleteAt", operator: "lte", value: new Date() },
  ];
  const due = { model: "tenant", where: isDue, select: ["id"], limit: ALL };
  for (const { id } of await ctx.adapter.findMany<{ id: string }>(due)) {
    await attempt(id, async () => {
      if (await deleteTenant(ctx, "server", id, isDue)) purged.deleted.push(id);
    });
  }
  for (const id of await findOrphans(ctx)) {
    await attempt(id, async () => {
      const isGone = await transactionIn(ctx, id, async (adapter) => {
        // Compares ids in the database, as the deletion does: MySQL may ignore case, and would
        // delete the rows of a live tenant.
        if (await adapter.count({ model: "tenant", where: clauses({ id }) })) return false;
        await deleteRows(ctx, adapter, id);
        return true;
      });
      if (isGone) await runInScope(scopeOf(id), () => forgetStoredSessions(ctx));
    });
  }
  return purged;
}

/** Finds the ids in `tenantId` columns that belong to no tenant. */
async function findOrphans(ctx: AuthContext): Promise<Set<string>> {
  const unscoped = await unscopedAdapter(isolationOf(ctx) as Isolation);
  const found = new Set<string>();
  for (const model of [...modelsOf(ctx), CONFIGS]) {
    // Skips the rows of the platform, whose `tenantId` is empty. No config is the platform's, and
    // the column of configs may have a type without an empty value, such as UUID.
    const start = { by: "tenantId", after: model === CONFIGS ? undefined : PLATFORM } as const;
    const pages = pagesOf<{ tenantId: string }>(unscoped, model, PAGE, ["tenantId"], start);
    for await (const rows of pages) for (const { tenantId } of rows) found.add(String(tenantId));
  }
  // Reads tenants after rows: a tenant is committed no later than its rows. So no row of a live
  // tenant counts as an orphan.
  for await (const tenants of pagesOf<{ id: string }>(unscoped, "tenant", PAGE, ["id"])) {
    for (const { id } of tenants) found.delete(id);
  }
  return found;
}

/**
 * Deletes all rows of a model in the current scope. Also deletes what belongs to these rows in
 * secondary storage and in models that are not isolated. Deletes by id: otherwise MySQL locks the
 * gaps between rows, where other tenants write.
 */
export async function deleteAllOf(
  ctx: AuthContext,
  adapter: DBTransactionAdapter,
  model: string,
  isolated: string[],
  deletedIds?: Set<string>,
): Promise<number> {
  const owned = ownedTables(ctx, isolated, model);
  let count = 0;
  for await (const rows of pagesOf<{ id: string }>(adapter, model, PAGE, ["id"])) {
    const ids = rows.map(({ id }) => id);
    // Comes before the rows, whose ids are needed to find the keys in secondary storage.
    await forgetAll(ctx, model, ids);
    if (ctx.options.secondaryStorage) for (const id of ids) deletedIds?.add(id);
    for (const table of owned) await deleteByIds(adapter, table, ids);
    count += await deleteByIds(adapter, { model, field: "id" }, ids);
  }
  return count;
}

/** Deletes the entries in secondary storage that belong to rows of a model. */
async function forgetAll(ctx: AuthContext, model: string, ids: string[]): Promise<void> {
  const { secondaryStorage: storage } = ctx.options;
  const forget = FORGET.get(model);
  for (let start = 0; storage && forget && start < ids.length; start += LANES) {
    await Promise.all(ids.slice(start, start + LANES).map((id) => forget(storage, id)));
  }
}

export async function deleteByIds(
  adapter: DBTransactionAdapter,
  { model, field }: { model: string; field: string },
  ids: string[],
): Promise<number> {
  let count = 0;
  for (let start = 0; start < ids.length; start += CHUNK) {
    const where = clauses({ [field]: ids.slice(start, start + CHUNK) });
    count += await adapter.deleteMany({ model, where });
  }
  return count;
}

/**
 * Finds columns of models that are not isolated and that hold the id of an isolated row, such as
 * `twoFactor.userId`. Not every database deletes such rows by foreign key.
 */
function ownedTables({ tables, options }: AuthContext, isolated: string[], owner: string) {
  const names = [owner, tables[owner]?.modelName];
  const hasPlugin = (plugin: string) => options.plugins?.some(({ id }) => id === plugin);
  return Object.entries(tables).flatMap(([model, { fields }]) =>
    Object.entries(fields).flatMap(([field, { references }]) => {
      const { plugin = "", owners = [] } = UNREFERENCED[`${model}.${field}`] ?? {};
      const isOwned = references
        ? names.includes(references.model) && (references.onDelete ?? "cascade") === "cascade"
        : owners.includes(owner) && hasPlugin(plugin);
      return isOwned && !isolated.includes(model) ? [{ model, field }] : [];
    }),
  );
}

/**
 * Columns of official plugins that hold the id of a user or organization without declaring it.
 * `verifyApiKey` would still accept a key whose row is left behind.
 *
 * Guarded by "official plugins say whose id is in a column, except for these".
 */
const UNREFERENCED: Record<string, { plugin: string; owners: string[] }> = {
  "apikey.referenceId": { plugin: "api-key", owners: ["user", "organization"] },
  "deviceCode.userId": { plugin: "device-authorization", owners: ["user"] },
};

/** Deletes everything a storage has for an id. */
type Forget = (storage: SecondaryStorage, id: string) => Promise<void>;

const forgetUser: Forget = async (storage, userId) => {
  const sessions = `active-sessions-${userId}`;
  for (const { token } of (await read(storage, sessions)) ?? []) await storage.delete(token);
  await storage.delete(sessions);
  // Newer versions of better-auth write this when sessions are ended.
  await storage.delete(`revoked-sessions-before-${userId}`);
  await forgetKeys(storage, userId);
};

/** @better-auth/api-key stores a list for each owner, and two entries for each key. */
const forgetKeys: Forget = async (storage, ownerId) => {
  const keys = `api-key:by-ref:${ownerId}`;
  for (const id of (await read(storage, keys)) ?? []) await forgetKey(storage, id);
  await storage.delete(keys);
};

const forgetKey: Forget = async (storage, id) => {
  const stored = await read(storage, `api-key:by-id:${id}`);
  if (!stored) return;
  await storage.delete(`api-key:by-id:${id}`);
  await storage.delete(`api-key:${stored.key}`);
};

/**
 * What to delete in secondary storage with a row, by model. Keys are listed here because a key that
 * also has a row is not in the storage's list of its owner.
 */
const FORGET = new Map([
  ["user", forgetUser],
  ["organization", forgetKeys],
  ["apikey", forgetKey],
]);

/**
 * Deletes some keys from secondary storage, and keeps the others in the owner's list: a user and an
 * organization with the same id share one list.
 */
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
    // Drops keys that the storage has lost, even if their rows are still in the database.
    if (!ids.includes(id) && (await storage.get(`api-key:by-id:${id}`))) left.push(id);
  }
  await (left.length ? storage.set(keys, JSON.stringify(left)) : storage.delete(keys));
}

async function read(storage: SecondaryStorage, key: string) {
  const stored = await storage.get(key);
  return typeof stored === "string" ? JSON.parse(stored) : stored;
}
