import { getCurrentAdapter } from "@better-auth/core/context";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { tenantError } from "../errors";
import type { AdapterCall, Isolation, Row } from "../isolation/isolation";
import { rolesIn } from "../isolation/operators";
import { effectiveScope, isServerCall } from "../request/endpoint";
import { requestSlot } from "../request/scope";
import { ALL } from "../tenants/cache";

/*
 * A tenant that has administrators of its own (`tenantRoles`) keeps one: its users cannot demote, ban
 * or delete the last. Operators and server code can. There is no lock: two administrators who demote
 * each other in the same instant may both succeed, and an operator repairs that.
 */

/**
 * The user that the tenant's directory has deactivated in this request. A directory may deactivate
 * the last administrator, and what the application does next (taking the role away) is part of that.
 */
export const deactivatedUserId = requestSlot<string>();

const CHANGES = ["update", "updateMany", "incrementOne"];
const DELETIONS = ["delete", "deleteMany", "consumeOne"];

/** The new values that an adapter call writes into existing rows. */
export const changeOf = (name: string, { update, set }: AdapterCall): Row | undefined =>
  CHANGES.includes(name) ? (update ?? set) : undefined;

/** Whether an adapter call on users can remove an administrator. */
export function mayRemoveAdmin(name: string, call: AdapterCall): boolean {
  const change = changeOf(name, call);
  return DELETIONS.includes(name) || change?.role !== undefined || Boolean(change?.banned);
}

/** Refuses a change or deletion of users that leaves the tenant without an administrator. */
export async function requireAnotherAdmin(
  isolation: Isolation,
  { where, update }: { where: Where[]; update?: Row | undefined },
  transaction?: DBTransactionAdapter,
): Promise<void> {
  const roles = Object.keys(isolation.options.tenantRoles);
  const { tenantId, access } = effectiveScope();
  if (!roles.length || tenantId === null || access !== "own" || isServerCall()) return;
  if (update && isAdmin(update, roles)) return;
  const adapter = transaction ?? (await getCurrentAdapter(isolation.ctx.adapter));
  const admins = await findAdmins(adapter, roles);
  if (!admins.length) return;
  const changed = await adapter.findMany<Row>({ model: "user", where, select: ["id"], limit: ALL });
  const changedIds = new Set(changed.map(({ id }) => id));
  const someCanSignIn = async (candidates: Row[]) => {
    for (const { id } of candidates) {
      if (!(await isolation.directory?.isBarred(tenantId, String(id), adapter))) return true;
    }
    return false;
  };
  const lost = admins.filter(
    ({ id }) => changedIds.has(id) && String(id) !== deactivatedUserId.get(),
  );
  if (!(await someCanSignIn(lost))) return;
  if (await someCanSignIn(admins.filter(({ id }) => !changedIds.has(id)))) return;
  throw tenantError("LAST_ADMIN");
}

async function findAdmins(adapter: DBTransactionAdapter, roles: string[]): Promise<Row[]> {
  const where = roles.map(
    (value): Where => ({ field: "role", operator: "contains", value, connector: "OR" }),
  );
  const users = await adapter.findMany<Row>({ model: "user", where, limit: ALL });
  return users.filter((user) => isAdmin(user, roles));
}

const isAdmin = ({ role, banned }: Row, roles: string[]) =>
  !banned && rolesIn(String(role ?? "")).some((name) => roles.includes(name));
