import {
  getCurrentAdapter,
  queueAfterTransactionHook,
  runWithTransaction,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { rootCause } from "../framework";
import type { ResolvedOptions } from "../options";
import { confinedModels } from "../schema";
import { keeperOf } from "../scope/instance";
import { getTenantId, notes, runInScope, settled } from "../scope/scope";
import { emit, type TenantActor } from "./events";
import { ALL, noteChange, noteDeletion, sinceOf, type Tenant, tenantExists } from "./find";
import {
  despiteDeadlocks,
  emptyScope,
  forgetSideBySide,
  LATEST_ARRIVAL_MS,
  later,
  type Rows,
} from "./sweep";

type Doomed = Pick<Tenant, "id" | "createdAt">;

/** How long after something was written its tenant is looked for once more. */
const WRITTEN_MS = 1_000;

/**
 * Deletes a tenant with everything in it, all or nothing: inside its scope, "everything" is what
 * the border lets through. The tenant's own row goes last: not every adapter has transactions, and
 * as long as that row is there, a deletion that was interrupted can be repeated. Whoever found the
 * tenant in time but is slower than the deletion looks once more after their own commit
 * (`undoIfTenantIsGone`), and the second sweep takes whatever they committed before.
 *
 * False when somebody else was faster, or when it is not due and was to be deleted only if it is.
 */
export async function deleteTenant(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  tenant: Doomed,
  onlyIfDue = false,
): Promise<boolean> {
  const models = confinedModels(options);
  const rows = await sweepTenant(ctx, tenant, models, onlyIfDue);
  if (!rows) return false;
  sweepLateArrivals(ctx, tenant, models);
  const { tenant: own, ...others } = rows;
  if (!own) return false;
  await emit(ctx, options, actor, tenant.id, { type: "tenant:deleted", rows: others });
  return true;
}

/** What a deletion would delete. */
export async function countRows(
  ctx: AuthContext,
  options: ResolvedOptions,
  { id }: Doomed,
): Promise<Rows> {
  return runInScope(settled(id), async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const rows: Rows = {};
    for (const model of confinedModels(options)) {
      if (ctx.tables[model]) rows[model] = await adapter.count({ model });
    }
    rows[CONFIGS] = await adapter.count({ model: CONFIGS, where: ofTenant(id) });
    return rows;
  });
}

const CONFIGS = "tenantOauthConfig";
const ofTenant = (value: string): Where[] => [{ field: "tenantId", value }];

/**
 * Deletes the tenants whose time has come. Each is claimed by its own row, inside its transaction,
 * so two machines can do this at once; and whatever is interrupted is due the next time.
 */
export async function purgeTenants(ctx: AuthContext, options: ResolvedOptions) {
  const due = await ctx.adapter.findMany<Doomed>({
    model: "tenant",
    where: dueBy(new Date()),
    select: ["id", "createdAt"],
    limit: ALL,
  });
  const purged: { deleted: string[]; failed: string[] } = { deleted: [], failed: [] };
  for (const tenant of due) {
    try {
      const isOurs = await deleteTenant(ctx, options, "server", tenant, true);
      if (isOurs) purged.deleted.push(tenant.id);
    } catch (error) {
      // The others are due as well.
      purged.failed.push(tenant.id);
      const { name, code } = rootCause(error);
      ctx.logger.error(`Tenant ${tenant.id} could not be deleted: ${name} ${code ?? ""}`);
    }
  }
  return purged;
}

const dueBy = (now: Date): Where[] => [
  { field: "status", value: "deleting" },
  { field: "deleteAt", operator: "lte", value: now },
];

/**
 * Locks the row of the tenant until the end of the transaction, where there are any. Somebody else
 * may have deleted it, and its number be another tenant's by now: that one is left alone.
 */
async function claim(adapter: DBTransactionAdapter, tenant: Doomed, onlyIfDue: boolean) {
  const now = new Date();
  const byId = [{ field: "id", value: tenant.id }];
  const where: Where[] = onlyIfDue ? [...byId, ...dueBy(now)] : byId;
  const update = { updatedAt: now };
  if (!(await adapter.updateMany({ model: "tenant", where, update }))) return false;
  const select = ["createdAt"];
  const row = await adapter.findOne<Doomed>({ model: "tenant", where: byId, select });
  return row !== null && sinceOf(row) === sinceOf(tenant);
}

/**
 * Other processes remember a tenant for ten seconds, and may write something of it until then: a
 * one-time code, which belongs to no user that the database would miss, or a user, and be killed
 * before they find that the tenant is gone. Nobody can use it, and here it is taken away. A number
 * that has been given to a new tenant meanwhile is left alone.
 */
function sweepLateArrivals(ctx: AuthContext, { id }: Doomed, models: string[]): void {
  later(LATEST_ARRIVAL_MS, () => sweepIfGone(ctx, id, models));
}

/**
 * The same by the process that has written something: a one-time code may have been made for a
 * tenant that another process has deleted a moment ago. Runs at most once
 * a second for each tenant, and after the response, whose time must not tell whether there was a code.
 */
export function sweepUnlessThere(ctx: AuthContext, id: string, models: string[]): void {
  const instance = keeperOf(ctx);
  const pending = pendingSweeps.get(instance) ?? new Set<string>();
  pendingSweeps.set(instance, pending);
  if (pending.has(id)) return;
  pending.add(id);
  later(WRITTEN_MS, () => {
    pending.delete(id);
    return sweepIfGone(ctx, id, models);
  });
}

const pendingSweeps = new WeakMap<object, Set<string>>();

/** In one transaction: nobody may be given the number between the look and the sweep. */
async function sweepIfGone(ctx: AuthContext, id: string, models: string[]): Promise<void> {
  const sweep = async () => {
    if (await tenantExists(ctx, id)) return;
    await emptyScope(ctx, models, {});
    const adapter = await getCurrentAdapter(ctx.adapter);
    await adapter.deleteMany({ model: CONFIGS, where: ofTenant(id) });
  };
  const { sweeping } = notes();
  await runInScope(settled(id), async () => {
    if (sweeping) notes().sweeping = sweeping;
    await despiteDeadlocks(ctx, () => runWithTransaction(ctx.adapter, sweep));
  });
}

/** What was deleted; undefined when nothing was: the tenant is not due, or somebody was faster. */
async function sweepTenant(
  ctx: AuthContext,
  tenant: Doomed,
  models: string[],
  onlyIfDue: boolean,
): Promise<Rows | undefined> {
  const { id } = tenant;
  return runInScope(settled(id), async () => {
    notes().sweeping = sinceOf(tenant);
    let rows: Rows | undefined;
    let userIds: string[] = [];
    try {
      await despiteDeadlocks(ctx, () =>
        runWithTransaction(ctx.adapter, async () => {
          const adapter = await getCurrentAdapter(ctx.adapter);
          rows = undefined;
          if (!(await claim(adapter, tenant, onlyIfDue))) return;
          rows = {};
          userIds = await emptyScope(ctx, models, rows);
          rows[CONFIGS] = await adapter.deleteMany({ model: CONFIGS, where: ofTenant(id) });
          const where = [{ field: "id", value: id }];
          rows.tenant = await adapter.deleteMany({ model: "tenant", where });
        }),
      );
    } catch (error) {
      // The answer to a commit can get lost. If the tenant is gone, the rest has to follow.
      if (await tenantExists(ctx, id)) throw error;
    }
    noteChange(ctx, id);
    if (!rows) return undefined;
    // A transaction that the application has around this may be rolled back.
    await queueAfterTransactionHook(async () => {
      noteDeletion(ctx, id);
      await sweepIfGone(ctx, id, models);
      // Those who signed in while their row was being deleted.
      await forgetSideBySide(ctx, userIds);
    });
    return rows;
  });
}

/**
 * Runs after the commit that created a user. A sign-up that saw its tenant, and was overtaken by
 * the deletion of that tenant, must not leave anybody behind in a tenant that is no more. In a scope
 * of its own: nobody asks whether an administrator is left there.
 */
export async function undoIfTenantIsGone(ctx: AuthContext, userId: string): Promise<boolean> {
  const tenantId = getTenantId();
  const { since } = notes();
  if (tenantId === null || (await tenantExists(ctx, tenantId, since))) return false;
  noteChange(ctx, tenantId);
  await runInScope(settled(tenantId), async () => {
    if (since) notes().sweeping = since;
    await ctx.internalAdapter.deleteUser(userId);
  });
  return true;
}
