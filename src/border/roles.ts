import type { AuthContext } from "better-auth";
import { MANAGEMENT_ACTIONS, type ResolvedOptions } from "../options";
import { adminPlugin } from "../scope/endpoint";

/** The options of better-auth's admin plugin that say what a role can do. */
type AdminOptions = {
  adminUserIds?: string[];
  adminRoles?: string | string[];
  defaultRole?: string;
  roles?: Record<string, { statements?: Record<string, readonly string[]> }>;
};

/** A user, as far as it says what they can do. */
export type Ranked = { id?: string | undefined; role?: string | null | undefined };

/** The user who gives a role; null is the server's own code. */
export type Giver = (Ranked & { tenantId: string | null }) | null;

export const adminOptions = (ctx: AuthContext) => (adminPlugin(ctx)?.options ?? {}) as AdminOptions;

/** Operators and the server give every role, a tenant's users those that can do no more. */
export function canGiveRole(
  ctx: AuthContext,
  options: ResolvedOptions,
  names: string[],
  giver: Giver,
): boolean {
  if (!giver || giver.tenantId === null) return true;
  return canDoAsMuch(ctx, options, giver, { role: names.join(",") });
}

/** Whether a user of a tenant can do everything that another one can. The default role is everyone's. */
export function canDoAsMuch(
  ctx: AuthContext,
  { tenantRoles }: ResolvedOptions,
  user: Ranked,
  other: Ranked,
): boolean {
  const options = adminOptions(ctx);
  const byDefault = rightsOfRole(options, tenantRoles, options.defaultRole ?? "user");
  const own = new Set([...byDefault, ...rightsOf(options, tenantRoles, user)]);
  return rightsOf(options, tenantRoles, other).every((right) => own.has(right));
}

function rightsOf(
  options: AdminOptions,
  tenantRoles: ResolvedOptions["tenantRoles"],
  { id, role }: Ranked,
): string[] {
  const names = namesIn(role || options.defaultRole || "user");
  const own = names.flatMap((name) => rightsOfRole(options, tenantRoles, name));
  // To the admin plugin, a user in this list may do everything.
  if (id === undefined || !options.adminUserIds?.includes(id)) return own;
  return [
    ...own,
    ADMINISTRATOR,
    ...Object.keys(options.roles ?? {}).flatMap(statementsIn(options)),
  ];
}

/** The admin plugin keeps several roles in one text. */
export const namesIn = (role: string) =>
  role
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);

const ADMINISTRATOR = "administrator";

const statementsIn =
  ({ roles = {} }: AdminOptions) =>
  (name: string): string[] =>
    Object.entries((Object.hasOwn(roles, name) && roles[name]?.statements) || {}).flatMap(
      ([resource, actions]) => actions.map((action) => `${resource}.${action}`),
    );

/** `invitation:*` is no more than all actions of invitations, however a role names them. */
const actionsIn = (action: string): string[] =>
  action.endsWith(":*")
    ? MANAGEMENT_ACTIONS.filter((name) => name.startsWith(action.slice(0, -1)))
    : [action];

/**
 * What a role can do, through the admin plugin and in its tenant. A role that neither describes may
 * mean anything to the application: only a user who has it can give it.
 */
function rightsOfRole(
  options: AdminOptions,
  tenantRoles: ResolvedOptions["tenantRoles"],
  name: string,
): string[] {
  const { adminRoles = "admin", defaultRole = "user", roles } = options;
  const isAdmin = [adminRoles].flat().flatMap(namesIn).includes(name);
  const isDescribed = roles && Object.hasOwn(roles, name);
  const inTenant = Object.hasOwn(tenantRoles, name) ? tenantRoles[name] : undefined;
  // The admin plugin has these two where it is given no others.
  const isBuiltIn = !roles && (name === "admin" || name === "user");
  const isKnown = isAdmin || isBuiltIn || isDescribed || inTenant || name === defaultRole;
  return [
    ...(isAdmin || (isBuiltIn && name === "admin") ? [ADMINISTRATOR] : []),
    ...statementsIn(options)(name),
    ...(inTenant ?? []).flatMap(actionsIn),
    ...(isKnown ? [] : [`the role ${name}`]),
  ];
}
