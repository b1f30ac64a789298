import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { tenantError } from "../errors";
import type { ResolvedOptions } from "../options";
import { runInScope, scopeOf } from "../request/scope";
import { forgetTenant, type Tenant } from "./cache";
import { countRows, deleteAllOf, deleteTenant, despiteDeadlocks, type Rows } from "./delete";
import { emit, type TenantActor, type TenantChange } from "./events";

/** Suspends or resumes a tenant. Both cancel a deletion that is not due yet. */
export async function changeStatus(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  tenant: Tenant,
  status: "active" | "suspended",
): Promise<Tenant> {
  if (tenant.status === status) return tenant;
  const changed = await update(ctx, tenant, { status, deleteAt: null });
  const ended = status === "active" ? "tenant:resumed" : "tenant:suspended";
  const type = tenant.status === "deleting" ? "tenant:restored" : ended;
  await emit(ctx, options, actor, tenant.id, { type, tenant: changed });
  return changed;
}

/** What a deletion answers. */
export interface TenantDeletion {
  success: true;
  /** Nothing was deleted, and `rows` has the number of rows of each model that would be. */
  dryRun?: true;
  rows?: Rows;
  /** It was not deleted yet, and will be when `auth.api.purgeTenants()` runs after this time. */
  deleteAt?: Date;
}

/** Deletes a tenant, at once or later, or tells what that would delete. */
export async function removeTenant(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  tenant: Tenant,
  { dryRun, after }: { dryRun?: boolean | undefined; after?: number | undefined },
): Promise<TenantDeletion> {
  const success = true;
  if (dryRun) return { success, dryRun, rows: await countRows(ctx, options, tenant.id) };
  if (after === undefined) {
    await deleteTenant(ctx, options, actor, tenant.id);
    return { success };
  }
  const deleteAt = new Date(Date.now() + after * 1000);
  const changed = await update(ctx, tenant, { status: "deleting", deleteAt });
  const change: TenantChange = { type: "tenant:deletion-scheduled", tenant: changed, deleteAt };
  await emit(ctx, options, actor, tenant.id, change);
  return { success, deleteAt };
}

/** A deletion that is due cannot be canceled: a purge may be deleting rows already. */
export function assertNotDue({ status, deleteAt }: Tenant): void {
  if (status !== "deleting" || (deleteAt && deleteAt > new Date())) return;
  throw tenantError("TENANT_DELETING");
}

async function update(
  ctx: AuthContext,
  tenant: Tenant,
  changes: Pick<Tenant, "status" | "deleteAt">,
): Promise<Tenant> {
  assertNotDue(tenant);
  const updatedAt = new Date();
  await endSessions(ctx, tenant.id, { ...changes, updatedAt });
  return { ...tenant, ...changes, updatedAt };
}

/**
 * Ends every session of a tenant. `sessionsEndedAt` decides: secondary storage and cookies cannot be
 * searched, and other processes may create sessions for ten seconds.
 */
export async function endSessions(
  ctx: AuthContext,
  tenantId: string,
  changes: Partial<Tenant> = {},
): Promise<void> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [{ field: "id", value: tenantId }];
  const update = { ...changes, sessionsEndedAt: new Date() };
  if (!(await adapter.updateMany({ model: "tenant", where, update }))) {
    throw tenantError("TENANT_NOT_FOUND");
  }
  await forgetTenant(ctx, tenantId);
  if (!ctx.tables.session) return;
  // After the commit: until then, requests outside of the transaction create sessions.
  await queueAfterTransactionHook(() =>
    runInScope(scopeOf(tenantId), async () => {
      const adapter = await getCurrentAdapter(ctx.adapter);
      await despiteDeadlocks(ctx, () => deleteAllOf(ctx, adapter, "session", []));
    }),
  );
}
