import type { AuthContext } from "better-auth";
import { adminOptions, canGiveRole, type Giver, namesIn } from "../border/roles";
import type { ResolvedOptions } from "../options";
import { adminPlugin } from "../scope/endpoint";
import { invitationError } from "./errors";

/**
 * Refuses a role that nobody knows, and one that can do more than the inviter's own, where a
 * tenant's user invites: whoever may invite must not be able to invite an administrator. Returns
 * the role as the admin plugin reads it.
 */
export function requireRole(
  ctx: AuthContext,
  tenantOptions: ResolvedOptions,
  role: string | null,
  inviter: Giver,
): string | null {
  if (role === null) return null;
  const plugin = adminPlugin(ctx);
  const { roles } = adminOptions(ctx);
  const names = namesIn(role);
  const isKnown = (name: string) =>
    !roles || Object.hasOwn(roles, name) || Object.hasOwn(tenantOptions.tenantRoles, name);
  if (!plugin || !names.length || !names.every(isKnown)) throw notAllowed();
  requireGiver(ctx, tenantOptions, role, inviter);
  return names.join(",");
}

/** Refuses whoever cannot give a role. */
export function requireGiver(
  ctx: AuthContext,
  tenantOptions: ResolvedOptions,
  role: string,
  inviter: Giver,
): void {
  if (!canGiveRole(ctx, tenantOptions, namesIn(role), inviter)) throw notAllowed();
}

const notAllowed = () => invitationError("ROLE_NOT_ALLOWED");
