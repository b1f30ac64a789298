import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Where } from "better-auth/types";
import { tenantError } from "../errors";
import type { ResolvedOptions } from "../options";
import { pagesOf } from "../pages";
import { notes, runInScope, settled } from "../scope/scope";
import { countRows, deleteTenant } from "./delete";
import { emit, type TenantActor, type TenantChange } from "./events";
import { findTenantById, noteChange, sinceOf, type Tenant } from "./find";
import {
  deleteAllOf,
  despiteDeadlocks,
  forgetSessions,
  forgetSideBySide,
  LATEST_ARRIVAL_MS,
  later,
  PAGE,
  type Rows,
} from "./sweep";

/** How often a change is tried that somebody else is faster with. */
const TRIES = 20;

/** Switches a tenant off or on; on, or off without a date, takes back a deletion that is not due. */
export async function changeStatus(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  tenant: Tenant,
  status: "active" | "suspended",
): Promise<Tenant> {
  const { before, after } = await move(ctx, tenant, { status, deleteAt: null });
  await followUp(ctx, before, after);
  const type = happened(before, after);
  if (type) await emit(ctx, options, actor, tenant.id, { type, tenant: after });
  return after;
}

function happened({ status: before }: Tenant, { status: after }: Tenant) {
  if (before === after) return undefined;
  if (before === "deleting") return "tenant:restored";
  return after === "active" ? "tenant:resumed" : "tenant:suspended";
}

/** Sets the time from which on a tenant may be purged. Until then it is suspended. */
async function scheduleDeletion(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  tenant: Tenant,
  seconds: number,
): Promise<Date> {
  const deleteAt = new Date(Date.now() + seconds * 1000);
  const { before, after } = await move(ctx, tenant, { status: "deleting", deleteAt });
  await followUp(ctx, before, after);
  const change: TenantChange = { type: "tenant:deletion-scheduled", tenant: after, deleteAt };
  await emit(ctx, options, actor, tenant.id, change);
  return deleteAt;
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
  if (dryRun) return { success, dryRun, rows: await countRows(ctx, options, tenant) };
  if (after !== undefined) {
    return { success, deleteAt: await scheduleDeletion(ctx, options, actor, tenant, after) };
  }
  await deleteTenant(ctx, options, actor, tenant);
  return { success };
}

type Target = Pick<Tenant, "status" | "deleteAt">;

/** From the status that was read, and from no other: somebody else may be changing it as well. */
async function move(ctx: AuthContext, tenant: Tenant, target: Target) {
  let before: Tenant | null = tenant;
  for (let tries = 0; before && tries < TRIES; tries++) {
    if (before.status === target.status && !target.deleteAt) return { before, after: before };
    assertNotDue(before);
    const now = new Date();
    const update = { ...target, sessionsEndedAt: now, updatedAt: now };
    const adapter = await getCurrentAdapter(ctx.adapter);
    const where = asItIs(before, now);
    if ((await adapter.updateMany({ model: "tenant", where, update })) > 0) {
      return { before, after: { ...before, ...target, updatedAt: now } };
    }
    before = await findTenantById(ctx, tenant.id);
  }
  throw before ? tenantError("TENANT_DELETING") : tenantError("TENANT_NOT_FOUND");
}

const asItIs = ({ id, status }: Tenant, now: Date): Where[] => [
  { field: "id", value: id },
  { field: "status", value: status },
  // A purge may be under way otherwise.
  ...(status === "deleting" ? [{ field: "deleteAt", operator: "gt" as const, value: now }] : []),
];

/** A deletion whose time has come cannot be taken back: it may be under way. */
export function assertNotDue({ status, deleteAt }: Tenant): void {
  if (status !== "deleting" || (deleteAt && deleteAt > new Date())) return;
  throw tenantError("TENANT_DELETING");
}

/** What follows from another status. Done again where it is there already: it may have failed. */
async function followUp(ctx: AuthContext, before: Tenant, after: Tenant): Promise<void> {
  if (before.status === "active" && after.status === "active") return;
  await queueAfterTransactionHook(async () => {
    // First, so that whoever signs in from here on is refused.
    noteChange(ctx, after.id);
    await endSessions(ctx, after);
    if (after.status === "active") return;
    later(LATEST_ARRIVAL_MS, async () => {
      // Not what is remembered: another process may have resumed it, and people have signed in.
      const tenant = await findTenantById(ctx, after.id);
      const isSame = tenant && sinceOf(tenant) === sinceOf(after);
      if (isSame && tenant.status !== "active") await endSessions(ctx, after);
    });
  });
}

/** Ends every session of a tenant that goes on being active. */
export async function endAllSessions(ctx: AuthContext, tenant: Tenant): Promise<void> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [{ field: "id", value: tenant.id }];
  await adapter.updateMany({ model: "tenant", where, update: { sessionsEndedAt: new Date() } });
  await queueAfterTransactionHook(async () => {
    noteChange(ctx, tenant.id);
    await endSessions(ctx, tenant);
  });
}

/**
 * Takes the sessions of a tenant away, where they are kept. Other processes may make some for ten
 * seconds, an index may have lost some, and cookies cannot be taken away at all: those are over
 * because of `sessionsEndedAt`.
 */
async function endSessions(
  ctx: AuthContext,
  tenant: Pick<Tenant, "id" | "createdAt">,
): Promise<void> {
  await runInScope(settled(tenant.id), async () => {
    notes().sweeping = sinceOf(tenant);
    if (ctx.options.secondaryStorage) await forgetAll(ctx);
    // Where sessions are in secondary storage alone, there is no table.
    if (!ctx.tables.session) return;
    const adapter = await getCurrentAdapter(ctx.adapter);
    await despiteDeadlocks(ctx, () => deleteAllOf(adapter, "session"));
  });
}

async function forgetAll(ctx: AuthContext): Promise<void> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  for await (const users of pagesOf<{ id: string }>(adapter, "user", PAGE, ["id"])) {
    const ids = users.map(({ id }) => id);
    await forgetSideBySide(ctx, ids, forgetSessions);
  }
}
