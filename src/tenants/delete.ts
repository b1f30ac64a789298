import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { isMySQL } from "../border/adapter";
import { rootCause } from "../framework";
import type { ResolvedOptions } from "../options";
import { confinedModels } from "../schema";
import { getTenantId, notes, runInScope, settled } from "../scope/scope";
import { noteDeletion, sinceOf, type Tenant, tenantExists } from "./find";

type Doomed = Pick<Tenant, "id" | "createdAt">;

/** How many rows are in memory at a time. */
const PAGE = 5_000;
/** How many ids are in a statement; there are databases that take 100 parameters at most. */
const CHUNK = 90;
/** How many users are forgotten at a time. */
const LANES = 20;
/** By when every process knows that a tenant is gone: it is remembered for ten seconds. */
const LATEST_ARRIVAL_MS = 11_000;
/** How long after something was written its tenant is looked for once more. */
const WRITTEN_MS = 1_000;
/** How often a deletion is tried that loses a deadlock. */
const TRIES = 5;
/** Words of MySQL, PostgreSQL and Prisma for it. */
const DEADLOCKS = ["ER_LOCK_DEADLOCK", "40P01", "P2034"];

/**
 * Deletes a tenant with everything in it, all or nothing: inside its scope, "everything" is what
 * the border lets through. The tenant's own row goes last: not every adapter has transactions, and
 * as long as that row is there, a deletion that was interrupted can be repeated. Whoever found the
 * tenant in time but is slower than the deletion looks once more after their own commit
 * (`undoIfTenantIsGone`), and the second sweep takes whatever they committed before.
 */
export async function deleteTenant(
  ctx: AuthContext,
  options: ResolvedOptions,
  tenant: Doomed,
): Promise<void> {
  const models = confinedModels(options);
  await sweepTenant(ctx, tenant, models);
  sweepLateArrivals(ctx, tenant, models);
}

/**
 * Other processes remember a tenant for ten seconds, and may write something of it until then: a
 * one-time code, which belongs to no user that the database would miss. Nobody can use it, and
 * here it is taken away. A number that has been given to a new tenant meanwhile is left alone.
 */
function sweepLateArrivals(ctx: AuthContext, { id }: Doomed, models: string[]): void {
  later(LATEST_ARRIVAL_MS, () => sweepIfGone(ctx, id, models));
}

/**
 * The same by the process that has written something: a one-time code may have been made for a
 * tenant that another process has deleted a moment ago. Looked at once for all that a tenant
 * writes within a second, and after the answer, whose time must not tell that there was a code.
 */
export function sweepUnlessThere(ctx: AuthContext, id: string, models: string[]): void {
  const pending = pendingSweeps.get(ctx.adapter) ?? new Set<string>();
  pendingSweeps.set(ctx.adapter, pending);
  if (pending.has(id)) return;
  pending.add(id);
  later(WRITTEN_MS, () => {
    pending.delete(id);
    return sweepIfGone(ctx, id, models);
  });
}

const pendingSweeps = new WeakMap<object, Set<string>>();

async function sweepIfGone(ctx: AuthContext, id: string, models: string[]): Promise<void> {
  if (await tenantExists(ctx, id)) return;
  await runInScope(settled(id), () => emptyScope(ctx, models));
}

/** The process need not stay alive for it, and the database may be closed by then. */
function later(ms: number, run: () => Promise<void>): void {
  const timer = setTimeout(() => void run().catch(() => {}), ms);
  (timer as { unref?: () => void }).unref?.();
}

async function sweepTenant(ctx: AuthContext, tenant: Doomed, models: string[]): Promise<void> {
  const { id } = tenant;
  await runInScope(settled(id), async () => {
    notes().sweeping = sinceOf(tenant);
    let userIds: string[] = [];
    try {
      await despiteDeadlocks(ctx, () =>
        runWithTransaction(ctx.adapter, async () => {
          const adapter = await getCurrentAdapter(ctx.adapter);
          userIds = await emptyScope(ctx, models);
          await adapter.deleteMany({
            model: "tenantOauthConfig",
            where: [{ field: "tenantId", value: id }],
          });
          await adapter.delete({ model: "tenant", where: [{ field: "id", value: id }] });
        }),
      );
    } catch (error) {
      // The answer to a commit can get lost. If the tenant is gone, the rest has to follow.
      if (await tenantExists(ctx, id)) throw error;
    }
    noteDeletion(ctx, id);
    await despiteDeadlocks(ctx, () => emptyScope(ctx, models));
    // Those who signed in while their row was being deleted.
    await forgetSideBySide(ctx, userIds);
  });
}

/**
 * Whoever signs up or in meanwhile has locks of their own, and the database ends a deadlock at the
 * cost of either. What was lost is undone, so it can be done again: but not inside a transaction
 * of the caller, who has lost more than that.
 */
async function despiteDeadlocks<T>(ctx: AuthContext, run: () => Promise<T>): Promise<T> {
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

/** Answers who may have sessions in secondary storage. */
async function emptyScope(ctx: AuthContext, models: string[]): Promise<string[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const userIds: string[] = [];
  // Users last: they would take their rows in the other tables along, one user at a time.
  for (const model of models.toReversed()) {
    if (!ctx.tables[model]) continue;
    const ofUsers = model === "user" ? tablesOfUsers(ctx, models) : [];
    const forgets = model === "user" && ctx.options.secondaryStorage;
    if (!forgets && !ofUsers.length && !isMySQL(adapter)) {
      await adapter.deleteMany({ model, where: [] });
      continue;
    }
    await deleteById(adapter, model, async (ids) => {
      // Before the rows: without them nobody knows any more whose sessions there are.
      if (forgets) await forgetSideBySide(ctx, ids);
      for (const table of ofUsers) await deleteByIds(adapter, table, ids);
      for (const id of ids) userIds.push(id);
    });
  }
  return userIds;
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
): Promise<void> {
  let before = new Set<string>();
  for (;;) {
    const rows = await adapter.findMany<{ id: string }>({ model, select: ["id"], limit: PAGE });
    const ids = rows.map(({ id }) => id);
    await beforeDeletion(ids);
    await deleteByIds(adapter, { model, field: "id" }, ids);
    // MySQL goes on showing rows that somebody else has deleted in the meantime.
    if (ids.length < PAGE || ids.every((id) => before.has(id))) return;
    before = new Set(ids);
  }
}

async function deleteByIds(
  adapter: DBTransactionAdapter,
  { model, field }: { model: string; field: string },
  ids: string[],
): Promise<void> {
  for (let start = 0; start < ids.length; start += CHUNK) {
    const value = ids.slice(start, start + CHUNK);
    await adapter.deleteMany({ model, where: [{ field, operator: "in", value }] });
  }
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
async function forgetSideBySide(ctx: AuthContext, userIds: string[]): Promise<void> {
  const share = Math.ceil(userIds.length / LANES);
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    userIds.slice(lane * share, (lane + 1) * share),
  );
  await Promise.all(lanes.map((ids) => forgetSessions(ctx, ids)));
}

/** Ends the sessions and API keys of users of a deleted tenant. Runs inside its scope. */
async function forgetSessions({ options }: AuthContext, userIds: string[]): Promise<void> {
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

/**
 * Runs after the commit that created a user. A sign-up that saw its tenant, and was overtaken by
 * the deletion of that tenant, must not leave anybody behind in a tenant that is no more.
 */
export async function undoIfTenantIsGone(ctx: AuthContext, userId: string): Promise<boolean> {
  const tenantId = getTenantId();
  if (tenantId === null || (await tenantExists(ctx, tenantId))) return false;
  await ctx.internalAdapter.deleteUser(userId);
  return true;
}
