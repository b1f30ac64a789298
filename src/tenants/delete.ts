import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { SecondaryStorage } from "better-auth/db";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { clauses, pagesOf, rootCause } from "../framework";
import {
  type Isolation,
  isolationOf,
  tenantAuthOptions,
  unscopedAdapter,
} from "../isolation/isolation";
import { runInScope, scopeOf } from "../request/scope";
import { isolatedModels, PLATFORM } from "../schema";
import { ALL, forgetTenant } from "./cache";
import { emit, type TenantActor } from "./events";

/** Rows in memory at a time. */
const PAGE = 5_000;
/** Ids in a statement: some databases accept 100 parameters. */
const CHUNK = 90;
/** Parallel calls to secondary storage. */
const LANES = 20;
const TRIES = 5;
/** The codes of MySQL, PostgreSQL and Prisma. */
const DEADLOCKS = ["ER_LOCK_DEADLOCK", "40P01", "P2034"];

const CONFIGS = "tenantOauthConfig";

/** The number of rows of each model. */
export type Rows = Record<string, number>;

/** The isolated models that have a table. Sessions may be in secondary storage only. */
const modelsOf = (ctx: AuthContext) =>
  isolatedModels(tenantAuthOptions(ctx)).filter((model) => ctx.tables[model]);

/**
 * Deletes a tenant with everything in it, in one transaction. The tenant's own row goes last: without
 * transactions, an interrupted deletion can be repeated as long as that row exists. A request that
 * found the tenant before and commits after this leaves rows that no request can reach;
 * `purgeTenants` removes them.
 *
 * Returns false if another process was faster, or the tenant does not match the conditions.
 */
export async function deleteTenant(
  ctx: AuthContext,
  actor: TenantActor,
  id: string,
  conditions: Where[] = [],
): Promise<boolean> {
  const rows = await transactionIn(ctx, id, async (adapter) => {
    // Locks the tenant's row: of two deletions at once, the second finds nothing.
    const where = [...clauses({ id }), ...conditions];
    const update = { updatedAt: new Date() };
    if (!(await adapter.updateMany({ model: "tenant", where, update }))) return undefined;
    const deleted = await deleteRows(ctx, adapter, id);
    await adapter.deleteMany({ model: "tenant", where: clauses({ id }) });
    return deleted;
  });
  await forgetTenant(ctx, id);
  if (!rows) return false;
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
 * Users who sign up or in at the same time hold locks of their own. The database rolls one side of a
 * deadlock back, and we try again, unless that also rolled back a transaction of the caller.
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

async function deleteRows(ctx: AuthContext, adapter: DBTransactionAdapter, tenantId: string) {
  const rows: Rows = {};
  const models = modelsOf(ctx);
  // Users last: the database would delete their rows in other tables one user at a time.
  for (const model of models.toReversed()) {
    rows[model] = await deleteAllOf(ctx, adapter, model, models);
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
    await attempt(id, () =>
      transactionIn(ctx, id, async (adapter) => {
        // The database compares: MySQL ignores case, and would delete a live tenant's rows.
        if (await adapter.count({ model: "tenant", where: clauses({ id }) })) return;
        await deleteRows(ctx, adapter, id);
      }),
    );
  }
  return purged;
}

/** The ids in `tenantId` columns that belong to no tenant. */
async function findOrphans(ctx: AuthContext): Promise<Set<string>> {
  const raw = await unscopedAdapter(isolationOf(ctx) as Isolation);
  const found = new Set<string>();
  for (const model of [...modelsOf(ctx), CONFIGS]) {
    // In configs the column has the type of ids, and no row belongs to the platform.
    const start = { by: "tenantId", after: model === CONFIGS ? undefined : PLATFORM } as const;
    const pages = pagesOf<{ tenantId: string }>(raw, model, PAGE, ["tenantId"], start);
    for await (const rows of pages) for (const { tenantId } of rows) found.add(String(tenantId));
  }
  // Read after the rows: a tenant is committed before, or together with, its rows.
  for await (const tenants of pagesOf<{ id: string }>(raw, "tenant", PAGE, ["id"])) {
    for (const { id } of tenants) found.delete(id);
  }
  return found;
}

/**
 * Deletes all rows of a model in the current scope, and what belongs to them in secondary storage and
 * in models that are not isolated. By id: otherwise MySQL locks the gaps where other tenants write.
 */
export async function deleteAllOf(
  ctx: AuthContext,
  adapter: DBTransactionAdapter,
  model: string,
  isolated: string[],
): Promise<number> {
  const { secondaryStorage: storage } = ctx.options;
  const forget = FORGET.get(model);
  const owned = ownedTables(ctx, isolated, model);
  let count = 0;
  for await (const rows of pagesOf<{ id: string }>(adapter, model, PAGE, ["id"])) {
    const ids = rows.map(({ id }) => id);
    // Before the rows: their ids are the keys of the storage.
    for (let start = 0; storage && forget && start < ids.length; start += LANES) {
      await Promise.all(ids.slice(start, start + LANES).map((id) => forget(storage, id)));
    }
    for (const table of owned) await deleteByIds(adapter, table, ids);
    count += await deleteByIds(adapter, { model, field: "id" }, ids);
  }
  return count;
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
 * Columns in models without a tenant that hold the id of an isolated row: of a two-factor secret, for
 * example. Not every database deletes such rows by foreign key.
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
 * Columns of official plugins with an undeclared id of a user or organization. A row that stays
 * there is a key that `verifyApiKey` still accepts.
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

/** By model. A key that also has a row is not in the list of its owner. */
const FORGET = new Map([
  ["user", forgetUser],
  ["organization", forgetKeys],
  ["apikey", forgetKey],
]);

/** Deletes some keys of an owner: a user and an organization with the same id share one list. */
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
    // A storage may lose a key whose row is still in the database.
    if (!ids.includes(id) && (await storage.get(`api-key:by-id:${id}`))) left.push(id);
  }
  await (left.length ? storage.set(keys, JSON.stringify(left)) : storage.delete(keys));
}

async function read(storage: SecondaryStorage, key: string) {
  const stored = await storage.get(key);
  return typeof stored === "string" ? JSON.parse(stored) : stored;
}
