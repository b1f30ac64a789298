import type { AuthContext } from "better-auth";
import { adminPlugin } from "../../core/admin-endpoints";
import { currentScope } from "../../core/current-scope";
import { currentEndpoint, isOutermost } from "../../core/endpoint";
import { type Isolation, unscopedAdapter } from "../../core/isolation";
import type { Endpoint } from "../../core/request";
import { currentRequest } from "../../core/request";
import type { SessionRow } from "../../core/session";
import { managementError } from "./errors";
import { isOrWouldBeOperator, mayManageUsersOf, rolesIn } from "./operators";
import {
  MANAGEMENT_ACTIONS,
  managementOptions,
  type ResolvedManagementOptions,
  type TenantSession,
} from "./options";

/** The options of better-auth's admin plugin that decide the rights of a role. */
type AdminOptions = {
  adminUserIds?: string[];
  adminRoles?: string | string[];
  defaultRole?: string;
  roles?: Record<string, { statements?: Record<string, readonly string[]> }>;
};

/** The fields of a user that decide which rights the user has. */
type Ranked = { id?: string | undefined; role?: string | null | undefined };

/** The user who gives a role; null is the server's own code. */
export type RoleGranter = (Ranked & { tenantId: string | null }) | null;

export const adminOptions = (ctx: AuthContext) => (adminPlugin(ctx)?.options ?? {}) as AdminOptions;

/**
 * Returns whether a user may give a role. Operators and the server may give every role, a tenant's
 * users only roles with no more rights than their own.
 */
export const canGiveRole = (ctx: AuthContext, role: string, granter: RoleGranter): boolean =>
  !granter || granter.tenantId === null || canDoAsMuch(ctx, granter, { role });

/**
 * Returns whether a user of a tenant has every right that another user has. Every user has the
 * rights of the default role.
 */
export function canDoAsMuch(ctx: AuthContext, user: Ranked, other: Ranked): boolean {
  const known = { ...adminOptions(ctx), tenantRoles: managementOptions(ctx).tenantRoles };
  const own = new Set([...rightsOf(known, {}), ...rightsOf(known, user)]);
  return rightsOf(known, other).every((right) => own.has(right));
}

/** The configured roles: those of the admin plugin, and their rights by `tenantRoles`. */
type KnownRoles = AdminOptions & Pick<ResolvedManagementOptions, "tenantRoles">;

function rightsOf(known: KnownRoles, { id, role }: Ranked): string[] {
  const { adminUserIds, defaultRole, roles = {} } = known;
  const own = rolesIn(role || defaultRole || "user").flatMap((name) => rightsOfRole(known, name));
  // The admin plugin lets a user in this list do everything, so the user has the rights of all
  // roles.
  if (id === undefined || !adminUserIds?.includes(id)) return own;
  return [...own, ADMINISTRATOR, ...Object.keys(roles).flatMap((name) => statements(known, name))];
}

const ADMINISTRATOR = "administrator";

function statements({ roles = {} }: AdminOptions, name: string): string[] {
  const described = Object.hasOwn(roles, name) ? roles[name]?.statements : undefined;
  return Object.entries(described ?? {}).flatMap(([resource, actions]) =>
    actions.map((action) => `${resource}.${action}`),
  );
}

/** Expands `invitation:*`: it gives the same rights as a list of all actions of invitations. */
const actionsIn = (action: string): string[] =>
  action.endsWith(":*")
    ? MANAGEMENT_ACTIONS.filter((name) => name.startsWith(action.slice(0, -1)))
    : [action];

/**
 * Lists the rights of a role, in the admin plugin and by `tenantRoles`. A role in neither may mean
 * anything to the application, so the role counts as a right: only a user who has it can give it.
 */
function rightsOfRole(known: KnownRoles, name: string): string[] {
  const { adminRoles = "admin", defaultRole = "user", roles, tenantRoles } = known;
  const isAdmin = [adminRoles].flat().flatMap(rolesIn).includes(name);
  const isDescribed = roles && Object.hasOwn(roles, name);
  const inTenant = Object.hasOwn(tenantRoles, name) ? tenantRoles[name] : undefined;
  // Without the option `roles`, the admin plugin has the role "user" besides the administrator's.
  const isBuiltIn = !roles && name === "user";
  const isKnown = isAdmin || isBuiltIn || isDescribed || inTenant || name === defaultRole;
  return [
    ...(isAdmin ? [ADMINISTRATOR] : []),
    ...statements(known, name),
    ...(inTenant ?? []).flatMap(actionsIn),
    ...(isKnown ? [] : [`the role ${name}`]),
  ];
}

/*
 * The admin plugin has one permission to give any role, and one to act on any user. With these,
 * callers could give themselves a role with more rights, or take over the account of a user who has
 * one. The guard below wraps better-auth's own methods, so it sees the values that are about to be
 * written. Banning or removing a user, or ending sessions, gives the caller no rights.
 */

/**
 * The admin endpoints that the guard checks. One lists sessions with their tokens: a caller could
 * use these as bearer tokens to act as the user.
 */
const GUARDED = new Set(
  "set-role create-user update-user set-user-password impersonate-user list-user-sessions"
    .split(" ")
    .map((name) => `/admin/${name}`),
);

type Person = TenantSession["user"];

/** A change that an admin endpoint is about to make to an existing or new user. */
interface AdminAction {
  userId?: string | undefined;
  data?: object | undefined;
}

/** Refuses a call of an admin endpoint by which the caller would get more rights. */
async function refuseEscalation(
  isolation: Isolation,
  { userId, data }: AdminAction,
): Promise<void> {
  const endpoint = currentEndpoint();
  const session = endpoint && callerIn(endpoint);
  if (!endpoint || !session) return;
  const { tenantId, access } = currentScope();
  // Only operators have cross-tenant access, and they may give every role.
  if (access !== "own") return;
  const target = userId === undefined ? null : await findUser(isolation, userId);
  // An id and a tenant in `data` must not count: the adapter does not write them.
  const kept = { id: target?.id ?? "", tenantId };
  const changed = data && ({ ...target, ...data, ...kept } as Person);
  const isRefused =
    tenantId === null
      ? await operatorGuard(isolation, endpoint, session)
      : rankGuard(isolation, await findUser(isolation, String(session.userId)));
  if (target && (await isRefused(target))) throw managementError("ROLE_NOT_ALLOWED", RANK);
  if (changed && (await isRefused(changed))) throw managementError("ROLE_NOT_ALLOWED");
}

/** Refuses an administrator of a tenant who acts on a user with more rights. */
export async function requireRank(isolation: Isolation, callerId: string, userId: string) {
  const isRefused = rankGuard(isolation, await findUser(isolation, callerId));
  const target = await findUser(isolation, userId);
  if (target && (await isRefused(target))) throw managementError("ROLE_NOT_ALLOWED", RANK);
}

const findUser = ({ ctx }: Isolation, id: string): Promise<Person | null> =>
  ctx.internalAdapter.findUserById(id);

const RANK = "This user has a role that you may not give";

/**
 * Returns the session that a checked endpoint acts for. Undefined for server calls and hooks, which
 * are trusted.
 */
function callerIn(endpoint: Endpoint): SessionRow | undefined {
  if (!GUARDED.has(endpoint.path ?? "") || !adminPlugin(endpoint.context)) return undefined;
  if (isOutermost(endpoint) && currentRequest().adminEndpoint !== "running") return undefined;
  return endpoint.context.session?.session;
}

type IsRefused = (user: Person) => boolean | Promise<boolean>;

/** In a tenant: refuses users who have more rights than the caller. */
const rankGuard =
  ({ ctx }: Isolation, caller: Person | null): IsRefused =>
  (user) =>
    !caller || !canDoAsMuch(ctx, caller, user);

/** On the platform: refuses operators, who can enter every tenant, unless the caller is one. */
async function operatorGuard(
  isolation: Isolation,
  endpoint: Endpoint,
  session: SessionRow,
): Promise<IsRefused> {
  const adapter = await unscopedAdapter(isolation);
  if (await mayManageUsersOf(isolation, endpoint, session, undefined, adapter)) return () => false;
  return (user) => isOrWouldBeOperator(isolation, endpoint, user);
}

type Method = (...call: never[]) => Promise<unknown>;

/** Guards every method by which an admin endpoint gives a role, or an account to its caller. */
export function guardRoles(
  internalAdapter: AuthContext["internalAdapter"],
  isolation: Isolation,
): void {
  const methods = internalAdapter as unknown as Record<string, Method>;
  const guard = (name: string, actionOf: (...call: never[]) => AdminAction) => {
    const run = methods[name];
    if (!run) return;
    methods[name] = (...call) =>
      currentEndpoint()?.path?.startsWith("/admin/")
        ? refuseEscalation(isolation, actionOf(...call)).then(() => run(...call))
        : run(...call);
  };
  guard("createUser", (data: object) => ({ data }));
  guard("updateUser", (userId: string, data: object) => ({ userId, data }));
  guard("createAccount", ({ userId }: AdminAction) => ({ userId }));
  for (const name of ["updatePassword", "createSession", "listSessions"]) {
    guard(name, (userId: string) => ({ userId }));
  }
}
