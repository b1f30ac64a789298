import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { refuse } from "../../core/schema";
import { requirePolicy } from "../policy/policy-of";
import { mayStillImpersonate } from "./impersonation";
import { guardAdmins, requireAnotherAdmin } from "./last-admin";
import { mayManageUsersOf } from "./operators";
import { managementOptions } from "./options";
import { guardRoles } from "./roles";

/** Decides who manages tenants and their users. */
export const management = (isolation: Isolation): Extension => ({
  name: "management",
  mayVisit: (...call) => mayManageUsersOf(isolation, ...call),
  check({ tables }) {
    requirePolicy(isolation);
    if (
      Object.keys(managementOptions(isolation.ctx).tenantRoles).length &&
      !tables.user?.fields.role
    ) {
      refuse("tenantRoles: users have no role. Add better-auth's admin() to the plugins.");
    }
  },
  acceptsSession: async (session, { adapter }) =>
    !session.impersonatedBy || mayStillImpersonate(isolation, session, adapter),
  guards: [guardAdmins(isolation)],
  install() {
    const { internalAdapter } = isolation.ctx;
    guardRoles(internalAdapter, isolation);
    const { deleteUser } = internalAdapter;
    // Refuses here, because better-auth deletes sessions and accounts before the user.
    // `guardAdmins` would refuse too late.
    internalAdapter.deleteUser = async (userId) => {
      await requireAnotherAdmin(isolation, { where: [{ field: "id", value: userId }] });
      return deleteUser(userId);
    };
  },
});
