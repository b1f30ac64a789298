import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { type Border, belowBorder, borderOf } from "../border/border";
import { rootCause } from "../framework";
import type { ResolvedOptions } from "../options";
import { pagesOf } from "../pages";
import { confinedModels, PLATFORM } from "../schema";
import { runInScope, settled } from "../scope/scope";
import { emit, type TenantActor } from "./events";
import { ALL, forgetTenant } from "./find";
import { deleteAllOf, despiteDeadlocks, PAGE, type Rows } from "./sweep";

const CONFIGS = "tenantOauthConfig";
const byId = (value: string): Where[] => [{ field: "id", value }];
const ofTenant = (value: string): Where[] => [{ field: "tenantId", value }];

/** The isolated models that have a table. Sessions may be in secondary storage only. */
const modelsOf = ({ tables }: AuthContext, options: ResolvedOptions) =>
  confinedModels(options).filter((model) => tables[model]);

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
  options: ResolvedOptions,
  actor: TenantActor,
  id: string,
  conditions: Where[] = [],
): Promise<boolean> {
  const rows = await transactionIn(ctx, id, async (adapter) => {
    // Locks the tenant's row: of two deletions at once, the second finds nothing.
    const where = [...byId(id), ...conditions];
    const update = { updatedAt: new Date() };
    if (!(await adapter.updateMany({ model: "tenant", where, update }))) return undefined;
    const deleted = await deleteRows(ctx, options, adapter, id);
    await adapter.deleteMany({ model: "tenant", where: byId(id) });
    return deleted;
  });
  await forgetTenant(ctx, id);
  if (!rows) return false;
  await emit(ctx, options, actor, id, { type: "tenant:deleted", rows });
  return true;
}

async function transactionIn<T>(
  ctx: AuthContext,
  tenantId: string,
  run: (adapter: DBTransactionAdapter) => Promise<T>,
): Promise<T> {
  const transaction = () =>
    runWithTransaction(ctx.adapter, async () => run(await getCurrentAdapter(ctx.adapter)));
  return runInScope(settled(tenantId), () => despiteDeadlocks(ctx, transaction));
}

async function deleteRows(
  ctx: AuthContext,
  options: ResolvedOptions,
  adapter: DBTransactionAdapter,
  tenantId: string,
): Promise<Rows> {
  const rows: Rows = {};
  const models = modelsOf(ctx, options);
  // Users last: the database would delete their rows in other tables one user at a time.
  for (const model of models.toReversed()) {
    rows[model] = await deleteAllOf(ctx, adapter, model, models);
  }
  rows[CONFIGS] = await adapter.deleteMany({ model: CONFIGS, where: ofTenant(tenantId) });
  return rows;
}

/** Counts what a deletion would delete. */
export const countRows = (
  ctx: AuthContext,
  options: ResolvedOptions,
  tenantId: string,
): Promise<Rows> =>
  runInScope(settled(tenantId), async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const rows: Rows = {};
    for (const model of modelsOf(ctx, options)) rows[model] = await adapter.count({ model });
    rows[CONFIGS] = await adapter.count({ model: CONFIGS, where: ofTenant(tenantId) });
    return rows;
  });

/** Deletes tenants past their deletion date, and rows whose tenant no longer exists. */
export async function purgeTenants(ctx: AuthContext, options: ResolvedOptions) {
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
  const due = await ctx.adapter.findMany<{ id: string }>({
    model: "tenant",
    where: isDue,
    select: ["id"],
    limit: ALL,
  });
  for (const { id } of due) {
    await attempt(id, async () => {
      if (await deleteTenant(ctx, options, "server", id, isDue)) purged.deleted.push(id);
    });
  }
  for (const id of await findOrphans(ctx, options)) {
    await attempt(id, () =>
      transactionIn(ctx, id, async (adapter) => {
        // As the database compares ids: MySQL ignores case, and would delete a live tenant's rows.
        if (await adapter.count({ model: "tenant", where: byId(id) })) return;
        await deleteRows(ctx, options, adapter, id);
      }),
    );
  }
  return purged;
}

/** The ids in `tenantId` columns that belong to no tenant. */
async function findOrphans(ctx: AuthContext, options: ResolvedOptions): Promise<Set<string>> {
  const raw = await belowBorder(borderOf(ctx) as Border);
  const found = new Set<string>();
  for (const model of [...modelsOf(ctx, options), CONFIGS]) {
    for await (const id of tenantIdsIn(raw, model)) found.add(id);
  }
  // Read after the rows: a tenant is committed before, or together with, what is in it.
  for await (const tenants of pagesOf<{ id: string }>(raw, "tenant", PAGE, ["id"])) {
    for (const { id } of tenants) found.delete(id);
  }
  return found;
}

async function* tenantIdsIn(raw: DBTransactionAdapter, model: string): AsyncGenerator<string> {
  // In this model the column has the type of ids, and no row belongs to the platform.
  let last = model === CONFIGS ? undefined : PLATFORM;
  for (;;) {
    const rows = await raw.findMany<{ tenantId: string }>({
      model,
      where: last === undefined ? [] : [{ field: "tenantId", operator: "gt", value: last }],
      select: ["tenantId"],
      sortBy: { field: "tenantId", direction: "asc" },
      limit: PAGE,
    });
    for (const { tenantId } of rows) yield String(tenantId);
    if (rows.length < PAGE) return;
    last = rows.at(-1)?.tenantId;
  }
}
