import { getCurrentAdapter } from "@better-auth/core/context";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { currentScope } from "../../core/current-scope";
import { type AdapterMethod, CHANGES, changeOf, type Guard, type Row } from "../../core/database";
import { isServerCall } from "../../core/endpoint";
import { serviceOf } from "../../core/extensions";
import type { Isolation } from "../../core/isolation";
import { ALL } from "../../core/tenants/tenants";
import { managementError } from "./errors";
import { rolesIn } from "./operators";
import { managementOptions } from "./options";

/*
 * Keeps the last administrator of a tenant, a user with a role of `tenantRoles`. The tenant's users
 * cannot demote, ban or delete the last administrator. Operators and server code can. There is no
 * lock: two administrators who demote each other at the same moment may both succeed, and an
 * operator can repair that.
 */

const DELETIONS: readonly AdapterMethod[] = ["delete", "deleteMany", "consumeOne"];

/** Checks adapter calls that change or delete users. */
export const guardAdmins = (isolation: Isolation): Guard => ({
  models: ["user"],
  methods: [...CHANGES, ...DELETIONS],
  async run({ method, call, transaction }, next) {
    const update = changeOf(method, call);
    const isDeletion = DELETIONS.includes(method);
    if (isDeletion || update?.role !== undefined || update?.banned) {
      await requireAnotherAdmin(isolation, { where: call.where ?? [], update }, transaction);
    }
    return next(call);
  },
});

/** Refuses a change or deletion of users that leaves the tenant without an administrator. */
export async function requireAnotherAdmin(
  isolation: Isolation,
  { where, update }: { where: Where[]; update?: Row | undefined },
  transaction?: DBTransactionAdapter,
): Promise<void> {
  const roles = Object.keys(managementOptions(isolation.ctx).tenantRoles);
  const { tenantId, access } = currentScope();
  if (!roles.length || tenantId === null || access !== "own" || isServerCall()) return;
  if (update && isAdmin(update, roles)) return;
  const adapter = transaction ?? (await getCurrentAdapter(isolation.ctx.adapter));
  const admins = await findAdmins(adapter, roles);
  if (!admins.length) return;
  const changed = await adapter.findMany<Row>({ model: "user", where, select: ["id"], limit: ALL });
  const changedIds = new Set(changed.map(({ id }) => id));
  const directory = serviceOf(isolation, "directory");
  const someCanSignIn = async (candidates: Row[]) => {
    for (const { id } of candidates) {
      if (!(await directory?.isBarred(tenantId, String(id), adapter))) return true;
    }
    return false;
  };
  const lost = admins.filter(
    // A directory may deactivate the last administrator. The application may then take the role
    // away, which must not be refused either.
    ({ id }) => changedIds.has(id) && !directory?.isDeactivating(String(id)),
  );
  if (!(await someCanSignIn(lost))) return;
  if (await someCanSignIn(admins.filter(({ id }) => !changedIds.has(id)))) return;
  throw managementError("LAST_ADMIN");
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
