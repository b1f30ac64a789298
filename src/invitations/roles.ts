import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { ResolvedOptions } from "../options";
import { adminPlugin } from "../scope/endpoint";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";

/** The options of better-auth's admin plugin that say what a role can do. */
type AdminOptions = {
  adminRoles?: string | string[];
  defaultRole?: string;
  roles?: Record<string, { statements?: Record<string, readonly string[]> }>;
};

/**
 * Refuses a role that nobody knows, and one that can do more than the inviter's own, where a
 * tenant's user invites: whoever may invite must not be able to invite an administrator.
 */
export function assertRole(
  ctx: AuthContext,
  { tenantRoles }: ResolvedOptions,
  role: string | null,
  inviter: { tenantId: string | null; role?: string | null } | null,
): void {
  if (role === null) return;
  const plugin = adminPlugin(ctx);
  const options = (plugin?.options ?? {}) as AdminOptions;
  const names = namesIn(role);
  const isKnown = (name: string) =>
    !options.roles || Object.hasOwn(options.roles, name) || Object.hasOwn(tenantRoles, name);
  if (!plugin || !names.length || !names.every(isKnown)) throw notAllowed();
  if (!inviter || inviter.tenantId === null) return;
  const rightsOf = (roles: string[]) =>
    new Set(roles.flatMap((name) => rightsOfRole(options, tenantRoles, name)));
  const own = rightsOf(namesIn(inviter.role || options.defaultRole || "user"));
  const has = (right: string) => own.has(right) || own.has(right.replace(/:.*/, ":*"));
  if (![...rightsOf(names)].every(has)) throw notAllowed();
}

const notAllowed = () => APIError.from("FORBIDDEN", TENANT_INVITATION_ERROR_CODES.ROLE_NOT_ALLOWED);

/** The admin plugin keeps several roles in one text. */
const namesIn = (role: string) =>
  role
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);

/** What a role can do, through the admin plugin and in its tenant. */
function rightsOfRole(
  { adminRoles = "admin", roles }: AdminOptions,
  tenantRoles: ResolvedOptions["tenantRoles"],
  name: string,
): string[] {
  const isAdmin = [adminRoles].flat().flatMap(namesIn).includes(name);
  const statements = roles && Object.hasOwn(roles, name) ? roles[name]?.statements : {};
  return [
    ...(isAdmin || (!roles && name === "admin") ? ["administrator"] : []),
    ...Object.entries(statements ?? {}).flatMap(([resource, actions]) =>
      actions.map((action) => `${resource}.${action}`),
    ),
    ...(Object.hasOwn(tenantRoles, name) ? (tenantRoles[name] ?? []) : []),
  ];
}
