import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { isMySQL } from "../scope/adapter";
import { forgetSessions, refuseSessions } from "../scope/forget";
import { rootCause } from "../scope/root-cause";
import { createScope, runInScope } from "../scope/scope";
import {
  findTenantBySlug,
  noteCreation,
  noteDeletion,
  type Tenant,
  tenantExists,
  toTenant,
} from "./find";

/** How many rows are in memory at a time. */
const PAGE = 5_000;
/** How many ids are in a statement; there are databases that take 100 parameters at most. */
const CHUNK = 90;
/** How many users are forgotten at a time. */
const LANES = 20;
/** How often a deletion is tried that loses a deadlock. */
const TRIES = 5;
/** Words of MySQL, PostgreSQL and Prisma for it. */
const DEADLOCKS = ["ER_LOCK_DEADLOCK", "40P01", "P2034"];

export type TenantChanges = Partial<Pick<Tenant, "name" | "slug" | "metadata">>;

/** null when the slug is taken, also by somebody who was faster. */
export async function insertTenant(
  ctx: AuthContext,
  tenant: Pick<Tenant, "name" | "slug" | "metadata">,
): Promise<Tenant | null> {
  if (await findTenantBySlug(ctx, tenant.slug)) return null;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const now = new Date();
  try {
    const row = await adapter.create<Omit<Tenant, "id">, Tenant>({
      model: "tenant",
      data: { ...tenant, createdAt: now, updatedAt: now },
    });
    noteCreation(ctx, row.id);
    return toTenant(row);
  } catch (error) {
    // Adapters have no common word for "not unique", so the question is asked again.
    if (await findTenantBySlug(ctx, tenant.slug)) return null;
    throw error;
  }
}

/** "gone" when there is no such tenant (any more), "taken" when the slug is another one's. */
export async function updateTenant(
  ctx: AuthContext,
  id: string,
  changes: TenantChanges,
): Promise<Tenant | "gone" | "taken"> {
  const slugTaken = async () => {
    const holder = changes.slug !== undefined && (await findTenantBySlug(ctx, changes.slug));
    return holder !== false && holder !== null && holder.id !== id;
  };
  if (await slugTaken()) return "taken";
  const adapter = await getCurrentAdapter(ctx.adapter);
  try {
    const row = await adapter.update<Tenant>({
      model: "tenant",
      where: [{ field: "id", value: id }],
      update: { ...changes, updatedAt: new Date() },
    });
    return row ? toTenant(row) : "gone";
  } catch (error) {
    if (await slugTaken()) return "taken";
    throw error;
  }
}

/**
 * Deletes a tenant with everything in it, all or nothing: inside its scope, "everything" is what
 * the border lets through. The tenant's own row goes last: not every adapter has transactions, and
 * as long as that row is there, a deletion that was interrupted can be repeated. Whoever found the
 * tenant in time but is slower than the deletion looks once more after their own commit
 * (`undoIfTenantIsGone`), and the second sweep takes whatever they committed before.
 */
export async function removeTenant(ctx: AuthContext, id: string, models: string[]): Promise<void> {
  await runInScope(createScope(id), async () => {
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
    await refuseSessions(ctx, id);
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
    const forgets = model === "user" && ctx.options.secondaryStorage;
    if (!forgets && !isMySQL(adapter)) {
      await adapter.deleteMany({ model, where: [] });
      continue;
    }
    await deleteById(adapter, model, async (ids) => {
      if (!forgets) return;
      // Before the rows: without them nobody knows any more whose sessions there are.
      await forgetSideBySide(ctx, ids);
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
    for (let start = 0; start < ids.length; start += CHUNK) {
      const value = ids.slice(start, start + CHUNK);
      await adapter.deleteMany({ model, where: [{ field: "id", operator: "in", value }] });
    }
    // MySQL goes on showing rows that somebody else has deleted in the meantime.
    if (ids.length < PAGE || ids.every((id) => before.has(id))) return;
    before = new Set(ids);
  }
}

/** Each user costs a few trips to the storage, and there may be many users. */
async function forgetSideBySide(ctx: AuthContext, userIds: string[]): Promise<void> {
  const share = Math.ceil(userIds.length / LANES);
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    userIds.slice(lane * share, (lane + 1) * share),
  );
  await Promise.all(lanes.map((ids) => forgetSessions(ctx, ids)));
}
