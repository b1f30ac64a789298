import type { AuthContext } from "better-auth";
import { type Border, type KeepAdmin, openerOf } from "../border/border";
import { lazy } from "../framework";
import type { ResolvedOptions } from "../options";
import { settledScope } from "../scope/endpoint";
import { recentlySeen, rememberedPolicy } from "./find";

/** Loaded by the first tenant that has a policy, and by the first that might lose its administrator. */
export const admission = lazy(() => import("../border/admission"));
const admins = lazy(() => import("../border/administrators"));

/** What the policy of a tenant decides. It comes with the tenant that this process remembers. */
export function policyOf(
  ctx: AuthContext,
): Pick<Border, "policyNow" | "refuseEarly" | "admitUser" | "admitSession"> {
  const find = async (...call: Parameters<Border["tenantSince"]>) =>
    (await recentlySeen(ctx, ...call))?.policy;
  const policyNow = () => {
    const { tenantId } = settledScope() ?? {};
    return tenantId ? rememberedPolicy(ctx, tenantId) : undefined;
  };
  return {
    policyNow,
    refuseEarly: async (endpoint) => {
      const policy = policyNow();
      if (policy) await (await admission()).refuseEarly(policy, endpoint);
    },
    admitUser: async (tenantId, user, adapter) => {
      const policy = await find(tenantId, adapter);
      // Where everybody may come, an invitation still says in which role.
      if (!policy && !openerOf(ctx.adapter)) return undefined;
      return (await admission()).admitUser(policy ?? {}, user);
    },
    admitSession: async (scope, session, adapter) => {
      const policy = scope.tenantId ? await find(scope.tenantId, adapter) : undefined;
      return policy ? (await admission()).admitSession(policy, adapter, scope, session) : undefined;
    },
  };
}

/** The roles of a tenant's own administrators; undefined where there are none. */
function rolesOf({ tenantRoles }: ResolvedOptions): string[] | undefined {
  const roles = Object.keys(tenantRoles);
  return roles.length ? roles : undefined;
}

/** What keeps the last administrator of a tenant; undefined where the application names no roles. */
export function keeperOf(options: ResolvedOptions, border: () => Border): KeepAdmin | undefined {
  const roles = rolesOf(options);
  return roles && (async (...call) => (await admins()).keepAdmin(border(), roles, ...call));
}

/** better-auth deletes sessions and accounts first: the last administrator keeps those, too. */
export function keepAdminsAccounts(
  { internalAdapter }: AuthContext,
  border: Border,
  options: ResolvedOptions,
): void {
  const roles = rolesOf(options);
  if (!roles) return;
  const { deleteUser } = internalAdapter;
  internalAdapter.deleteUser = async (userId) =>
    (await admins()).keepAdminAround(border, roles, userId, () => deleteUser(userId));
}
