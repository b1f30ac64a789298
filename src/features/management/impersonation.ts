import type { DBTransactionAdapter } from "better-auth/types";
import { currentEndpoint } from "../../core/endpoint";
import { readUser } from "../../core/isolate/users";
import { type Isolation, instanceKey, unscopedAdapterFor } from "../../core/isolation";
import type { SessionRow } from "../../core/session";
import { expiringMap, oncePerObject } from "../../core/utils";
import { isOrWouldBeOperator, type Person } from "./operators";
import { managementOptions } from "./options";
import { canDoAsMuch } from "./roles";

/**
 * Returns whether an administrator may still act as the user of a session. `refuseEscalation` (see
 * roles.ts) checked this when the session was created. Since then the user may have been promoted,
 * or the administrator demoted, banned or deleted.
 */
export async function mayStillImpersonate(
  isolation: Isolation,
  { userId, impersonatedBy }: SessionRow,
  given?: DBTransactionAdapter,
): Promise<boolean> {
  const adapter = await unscopedAdapterFor(isolation, given);
  const user = await readUser<Person>(adapter, userId);
  const administrator = await readUser<Person>(adapter, impersonatedBy);
  if (!user || !administrator || administrator.banned) return false;
  if (administrator.tenantId) return canDoAsMuch(isolation.ctx, administrator, user);
  // The administrator is a platform user, who may act as every user of a tenant.
  if (user.tenantId) return true;
  return !(await isOperator(isolation, user)) || isOperator(isolation, administrator);
}

/** Caches decisions of `canManageTenants`, which may be slow, by user id and role. */
const operatorsOf = oncePerObject((_instance: object) => expiringMap<boolean>(1_000, 10_000));

async function isOperator(isolation: Isolation, user: Person): Promise<boolean> {
  const endpoint = currentEndpoint();
  // Server code outside of every request is trusted, so it is not kept from any user.
  if (!endpoint) return false;
  if (!managementOptions(isolation.ctx).canManageTenants)
    return isOrWouldBeOperator(isolation, endpoint, user);
  const decisions = operatorsOf(instanceKey(isolation.ctx));
  const key = JSON.stringify([user.id, user.role]);
  const decided = decisions.get(key);
  if (decided !== undefined) return decided;
  const keep = decisions.startRead();
  const decision = await isOrWouldBeOperator(isolation, endpoint, user);
  keep(key, decision);
  return decision;
}
