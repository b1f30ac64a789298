import type { AuthContext } from "better-auth";
import { tenantError } from "../errors";
import { MANAGEMENT_ACTIONS, type ResolvedOptions, type TenantSession } from "../options";
import {
  adminPlugin,
  currentEndpoint,
  type Endpoint,
  effectiveScope,
  isAdminRunning,
  isOutermost,
} from "../request/endpoint";
import type { SessionRow } from "../request/scope";
import { type Isolation, tenantAuthOptions, unscopedAdapter } from "./isolation";
import { isOrWouldBeOperator, mayManageUsersOf, rolesIn } from "./operators";

/** The options of better-auth's admin plugin that say what a role can do. */
type AdminOptions = {
  adminUserIds?: string[];
  adminRoles?: string | string[];
  defaultRole?: string;
  roles?: Record<string, { statements?: Record<string, readonly string[]> }>;
};

/** A user, as far as it says what they can do. */
type Ranked = { id?: string | undefined; role?: string | null | undefined };

/** The user who gives a role; null is the server's own code. */
export type Giver = (Ranked & { tenantId: string | null }) | null;

export const adminOptions = (ctx: AuthContext) => (adminPlugin(ctx)?.options ?? {}) as AdminOptions;

/** Operators and the server give every role, a tenant's users those that can do no more. */
export const canGiveRole = (ctx: AuthContext, role: string, giver: Giver): boolean =>
  !giver || giver.tenantId === null || canDoAsMuch(ctx, giver, { role });

/** Whether a user of a tenant can do everything that another one can. The default role is everyone's. */
function canDoAsMuch(ctx: AuthContext, user: Ranked, other: Ranked): boolean {
  const known = { ...adminOptions(ctx), tenantRoles: tenantAuthOptions(ctx).tenantRoles };
  const own = new Set([...rightsOf(known, {}), ...rightsOf(known, user)]);
  return rightsOf(known, other).every((right) => own.has(right));
}

/** Roles of the admin plugin, and what they can do in their tenant. */
type KnownRoles = AdminOptions & Pick<ResolvedOptions, "tenantRoles">;

function rightsOf(known: KnownRoles, { id, role }: Ranked): string[] {
  const { adminUserIds, defaultRole, roles = {} } = known;
  const own = rolesIn(role || defaultRole || "user").flatMap((name) => rightsOfRole(known, name));
  // To the admin plugin, a user in this list may do everything.
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

/** `invitation:*` is no more than all actions of invitations, however a role names them. */
const actionsIn = (action: string): string[] =>
  action.endsWith(":*")
    ? MANAGEMENT_ACTIONS.filter((name) => name.startsWith(action.slice(0, -1)))
    : [action];

/**
 * What a role can do, through the admin plugin and in its tenant. A role that neither describes may
 * mean anything to the application: only a user who has it can give it.
 */
function rightsOfRole(known: KnownRoles, name: string): string[] {
  const { adminRoles = "admin", defaultRole = "user", roles, tenantRoles } = known;
  const isAdmin = [adminRoles].flat().flatMap(rolesIn).includes(name);
  const isDescribed = roles && Object.hasOwn(roles, name);
  const inTenant = Object.hasOwn(tenantRoles, name) ? tenantRoles[name] : undefined;
  // Where the admin plugin is given no roles, it has this one beside the administrator's.
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
 * The admin plugin has one permission for giving any role, and one for acting on any user: callers
 * could give themselves a greater role, or take over the account of a user who has one. This is
 * checked where better-auth acts, with what it is about to write. Banning or removing a user, or
 * ending sessions, gives the caller nothing.
 */

/** A list of sessions contains their tokens, which are valid as bearer tokens. */
const GUARDED = new Set(
  "set-role create-user update-user set-user-password impersonate-user list-user-sessions"
    .split(" ")
    .map((name) => `/admin/${name}`),
);

type Person = TenantSession["user"];

/** What is about to happen to an existing or new user. */
export interface Act {
  userId?: string | undefined;
  data?: object | undefined;
}

/** Refuses an act of an admin endpoint by which the caller would get more rights than they have. */
export async function refuseEscalation(isolation: Isolation, { userId, data }: Act): Promise<void> {
  const endpoint = currentEndpoint();
  const session = endpoint && callerIn(endpoint);
  if (!endpoint || !session) return;
  const { tenantId, access } = effectiveScope();
  // Only operators get here.
  if (access !== "own") return;
  const target = userId === undefined ? null : await findUser(isolation, userId);
  // The adapter ignores an id and a tenant that the caller has sent.
  const kept = { id: target?.id ?? "", tenantId };
  const changed = data && ({ ...target, ...data, ...kept } as Person);
  const isRefused =
    tenantId === null
      ? await operatorGuard(isolation, endpoint, session)
      : rankGuard(isolation, await findUser(isolation, String(session.userId)));
  if (target && (await isRefused(target))) throw tenantError("ROLE_NOT_ALLOWED", RANK);
  if (changed && (await isRefused(changed))) throw tenantError("ROLE_NOT_ALLOWED");
}

/** Refuses a tenant's administrator who acts on a user of the scope that can do more. */
export async function requireRank(isolation: Isolation, callerId: string, userId: string) {
  const isRefused = rankGuard(isolation, await findUser(isolation, callerId));
  const target = await findUser(isolation, userId);
  if (target && (await isRefused(target))) throw tenantError("ROLE_NOT_ALLOWED", RANK);
}

const findUser = ({ ctx }: Isolation, id: string): Promise<Person | null> =>
  ctx.internalAdapter.findUserById(id);

const RANK = "This user has a role that you may not give";

/** The session that an endpoint acts for. Hooks around it, and server calls, are trusted. */
function callerIn(endpoint: Endpoint): SessionRow | undefined {
  if (!GUARDED.has(endpoint.path ?? "") || !adminPlugin(endpoint.context)) return undefined;
  if (isOutermost(endpoint) && !isAdminRunning.get()) return undefined;
  return endpoint.context.session?.session;
}

type IsRefused = (user: Person) => boolean | Promise<boolean>;

/** In a tenant: a user who can do more than the caller. */
const rankGuard =
  ({ ctx }: Isolation, caller: Person | null): IsRefused =>
  (user) =>
    !caller || !canDoAsMuch(ctx, caller, user);

/** On the platform: an operator, unless the caller is one. Operators can get into every tenant. */
async function operatorGuard(
  isolation: Isolation,
  endpoint: Endpoint,
  session: SessionRow,
): Promise<IsRefused> {
  const adapter = await unscopedAdapter(isolation);
  if (await mayManageUsersOf(isolation, endpoint, session, undefined, adapter)) return () => false;
  return (user) => isOrWouldBeOperator(isolation, endpoint, user);
}
