import type { AuthContext } from "better-auth";
import type { ResolvedOptions } from "../options";
import { adminPlugin } from "../scope/endpoint";
import { invitationError } from "./errors";

/** The options of better-auth's admin plugin that say what a role can do. */
type AdminOptions = {
  adminRoles?: string | string[];
  defaultRole?: string;
  roles?: Record<string, { statements?: Record<string, readonly string[]> }>;
};

/** Who invites; null is the server's own code. */
type Giver = { tenantId: string | null; role?: string | null } | null;

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

const adminOptions = (ctx: AuthContext) => (adminPlugin(ctx)?.options ?? {}) as AdminOptions;

/** Operators and the server give out every role, a tenant's users those that can do no more. */
export function canGiveRole(
  ctx: AuthContext,
  { tenantRoles }: ResolvedOptions,
  names: string[],
  inviter: Giver,
): boolean {
  if (!inviter || inviter.tenantId === null) return true;
  const options = adminOptions(ctx);
  const rightsOf = (roles: string[]) =>
    new Set(roles.flatMap((name) => rightsOfRole(options, tenantRoles, name)));
  const own = rightsOf(namesIn(inviter.role || options.defaultRole || "user"));
  const has = (right: string) => own.has(right) || own.has(right.replace(/:.*/, ":*"));
  return [...rightsOf(names)].every(has);
}

/** The admin plugin keeps several roles in one text. */
export const namesIn = (role: string) =>
  role
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);

/**
 * What a role can do, through the admin plugin and in its tenant. One that neither describes may
 * mean anything to the application: only who has it can give it.
 */
function rightsOfRole(
  { adminRoles = "admin", defaultRole = "user", roles }: AdminOptions,
  tenantRoles: ResolvedOptions["tenantRoles"],
  name: string,
): string[] {
  const isAdmin = [adminRoles].flat().flatMap(namesIn).includes(name);
  const described = roles && Object.hasOwn(roles, name) ? roles[name] : undefined;
  const inTenant = Object.hasOwn(tenantRoles, name) ? tenantRoles[name] : undefined;
  // The admin plugin has these two where it is given no others.
  const isBuiltIn = !roles && (name === "admin" || name === "user");
  const isKnown = isAdmin || isBuiltIn || described || inTenant || name === defaultRole;
  return [
    ...(isAdmin || (isBuiltIn && name === "admin") ? ["administrator"] : []),
    ...Object.entries(described?.statements ?? {}).flatMap(([resource, actions]) =>
      actions.map((action) => `${resource}.${action}`),
    ),
    ...(inTenant ?? []),
    ...(isKnown ? [] : [`the role ${name}`]),
  ];
}
