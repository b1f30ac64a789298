import type { AuthContext } from "better-auth";
import type { Border, PolicyOf } from "../border/border";
import { guardAdmins, keepAdminsAccounts } from "../border/keep-admin";
import { requiresVerification } from "../border/late-policy";
import { openerOf } from "../border/trusted";
import { lazy } from "../framework";
import type { ResolvedOptions } from "../options";
import { settledScope } from "../scope/endpoint";
import { recentlySeen, rememberedPolicy } from "./find";

export { latePolicyContext, latePolicyOptions } from "../border/late-policy";

/** Loaded by the first tenant that has a policy. */
const admission = lazy(() => import("../border/admission"));

/** What the policy of a tenant decides. It comes with the tenant that this process remembers. */
export function policyOf(
  ctx: AuthContext,
  options: ResolvedOptions,
  border: () => Border,
): PolicyOf {
  const roles = Object.keys(options.tenantRoles);
  const now = () => {
    const { tenantId } = settledScope() ?? {};
    return tenantId ? rememberedPolicy(ctx, tenantId) : undefined;
  };
  return {
    now,
    requiresVerification: () => requiresVerification(now()),
    refuseEarly: async (endpoint) => {
      const policy = now();
      if (policy) await (await admission()).refuseEarly(policy, endpoint);
    },
    admitRow: async (model, scope, row, adapter) => {
      if (!scope.tenantId || (model !== "user" && model !== "session")) return undefined;
      const policy = (await recentlySeen(ctx, scope.tenantId, adapter))?.policy;
      // Where everybody may come, an invitation still says in which role.
      if (!policy && (model !== "user" || !openerOf(ctx.adapter))) return undefined;
      return (await admission()).admitRow(policy ?? {}, model, scope, row, adapter);
    },
    capExpiry: async (session) => {
      const policy = now();
      return policy ? (await admission()).capExpiry(policy, session) : undefined;
    },
    guard: roles.length ? guardAdmins(roles, border) : undefined,
  };
}

/** better-auth deletes sessions and accounts first: the last administrator keeps those, too. */
export function guardDeletions(
  { internalAdapter }: AuthContext,
  options: ResolvedOptions,
  border: Border,
) {
  const roles = Object.keys(options.tenantRoles);
  if (!roles.length) return;
  const { deleteUser } = internalAdapter;
  internalAdapter.deleteUser = (userId) =>
    keepAdminsAccounts(roles, border, userId, () => deleteUser(userId));
}
