import type { AuthContext, User } from "better-auth";
import { APIError } from "better-auth/api";
import type { ResolvedOptions } from "../options";
import { adminPlugin } from "../scope/endpoint";
import { runInScope, settled } from "../scope/scope";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import { tenantOptions } from "./options";
import type { StoredInvitation } from "./schema";

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
  { tenantRoles }: ResolvedOptions,
  role: string | null,
  inviter: Giver,
): string | null {
  if (role === null) return null;
  const plugin = adminPlugin(ctx);
  const options = (plugin?.options ?? {}) as AdminOptions;
  const names = namesIn(role);
  const isKnown = (name: string) =>
    !options.roles || Object.hasOwn(options.roles, name) || Object.hasOwn(tenantRoles, name);
  if (!plugin || !names.length || !names.every(isKnown)) throw notAllowed();
  if (!canGive(options, tenantRoles, names, inviter)) throw notAllowed();
  return names.join(",");
}

const notAllowed = () => APIError.from("FORBIDDEN", TENANT_INVITATION_ERROR_CODES.ROLE_NOT_ALLOWED);

/** Operators and the server give out every role, a tenant's users those that can do no more. */
function canGive(
  options: AdminOptions,
  tenantRoles: ResolvedOptions["tenantRoles"],
  names: string[],
  inviter: Giver,
): boolean {
  if (!inviter || inviter.tenantId === null) return true;
  const rightsOf = (roles: string[]) =>
    new Set(roles.flatMap((name) => rightsOfRole(options, tenantRoles, name)));
  const own = rightsOf(namesIn(inviter.role || options.defaultRole || "user"));
  const has = (right: string) => own.has(right) || own.has(right.replace(/:.*/, ":*"));
  return [...rightsOf(names)].every(has);
}

/**
 * Whether the inviter could give the role today. Somebody who loses a role must not get it back by
 * an invitation from before. Of an inviter who is gone, or banned, the default role is left.
 */
export async function mayStillGiveRole(
  ctx: AuthContext,
  { tenantId, inviterId, role }: StoredInvitation,
): Promise<boolean> {
  const find = (place: string | null): Promise<Person | null> =>
    runInScope(settled(place), () => ctx.internalAdapter.findUserById(inviterId ?? ""));
  const options = tenantOptions(ctx);
  const inTenant = await find(tenantId);
  const operator = inTenant ? null : await find(null);
  // Where the application decides who invites, it may be an operator of another kind, or somebody
  // of a third place.
  if (!inTenant && options.canManageTenants) return !operator?.banned;
  if (operator && isOperator(operator, options)) return true;
  const inviter = { tenantId, role: inTenant?.banned ? null : (inTenant?.role ?? null) };
  const admin = (adminPlugin(ctx)?.options ?? {}) as AdminOptions;
  return canGive(admin, options.tenantRoles, namesIn(role ?? ""), inviter);
}

type Person = User & { role?: string | null; banned?: boolean | null };

const isOperator = (
  { id, role, banned }: Person,
  { adminUserIds, adminRoles }: ResolvedOptions,
): boolean =>
  !banned &&
  (adminUserIds.includes(id) || namesIn(role ?? "").some((name) => adminRoles.includes(name)));

/** The admin plugin keeps several roles in one text. */
const namesIn = (role: string) =>
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
