import type { GenericEndpointContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import {
  MANAGEMENT_ACTIONS,
  type ResolvedOptions,
  type TenantManagementRequest,
  type TenantSession,
} from "../options";
import type { Endpoint } from "../request/endpoint";
import { requestSlot, runInScope, type SessionRow, scopeOf } from "../request/scope";
import type { Isolation, Row } from "./isolation";
import { readUser } from "./users";

/** Whether a session may manage the users of a tenant, by its token and that tenant. */
const operatorDecisions = requestSlot(() => new Map<string, Promise<boolean>>());

type Person = TenantSession["user"] & { banned?: boolean | null };

/** A platform user with the right id or role. A tenant's user is never one. */
export function isOperator(user: TenantSession["user"], options: ResolvedOptions): boolean {
  if (user.tenantId) return false;
  if (options.adminUserIds.includes(user.id)) return true;
  return rolesIn(user.role).some((role) => options.adminRoles.includes(role));
}

/** The admin plugin stores several roles in one string. */
export const rolesIn = (role: string | null | undefined) =>
  (role ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);

/**
 * Whether the caller may manage the users of a tenant, or of every tenant if none is given. Only
 * operators may: permissions of the admin plugin are for the caller's own scope. Decided once per
 * request.
 */
export function mayManageUsersOf(...call: Parameters<typeof decide>): Promise<boolean> {
  const [, , session, tenantId] = call;
  const decisions = operatorDecisions.get();
  const key = JSON.stringify([session.token, tenantId]);
  const decision = decisions.get(key) ?? decide(...call);
  decisions.set(key, decision);
  return decision;
}

async function decide(
  isolation: Isolation,
  endpoint: Endpoint,
  session: SessionRow,
  tenantId: string | undefined,
  adapter: DBTransactionAdapter,
): Promise<boolean> {
  if (session.tenantId || session.impersonatedBy) return false;
  // A stored session has the role that the user had when it was created.
  const user = await readUser<Person>(adapter, session.userId);
  if (!user || user.tenantId || user.banned) return false;
  if (!isolation.options.canManageTenants) return isOperator(user, isolation.options);
  const own = toSession(session, user);
  const call = { ...endpoint, context: { ...endpoint.context, session: own } };
  const action = "user:manage";
  return ask(isolation, call, { action, tenantId, session: own }).catch((error: unknown) => {
    logFailure(isolation, action, "so the caller stays on the platform", error);
    return false;
  });
}

/**
 * Whether a platform user is an operator, or would be with another role. `canManageTenants` is asked
 * about every action: a user who may delete tenants need not be one who may manage users.
 */
export async function isOrWouldBeOperator(
  isolation: Isolation,
  endpoint: Endpoint,
  user: TenantSession["user"],
): Promise<boolean> {
  if (!isolation.options.canManageTenants) return isOperator(user, isolation.options);
  const call = { ...endpoint, body: undefined };
  for (const action of MANAGEMENT_ACTIONS) {
    const about = { action, tenantId: undefined };
    const isAllowed = await askAbout(isolation, call, user, about).catch((error: unknown) => {
      logFailure(isolation, action, `so user ${user.id} counts as an operator`, error);
      return true;
    });
    if (isAllowed) return true;
  }
  return false;
}

const HOUR_MS = 3_600_000;

/**
 * Asks the application about a user who does not make the current request: nothing in it may speak
 * for them, so `canManageTenants` gets no headers, and a session without id and token.
 */
export function askAbout(
  isolation: Isolation,
  { context, ...endpoint }: Endpoint,
  user: Person,
  about: Omit<TenantManagementRequest, "session">,
  expiresAt = new Date(Date.now() + HOUR_MS),
): Promise<boolean> {
  const none = { headers: new Headers(), request: undefined, query: {} };
  const call = { ...endpoint, ...none, context: { ...context, session: null } };
  const now = new Date();
  const dates = { createdAt: now, updatedAt: now, expiresAt };
  const session = toSession({ id: "", token: "", userId: user.id, ...dates }, user);
  return ask(isolation, call, { ...about, session });
}

/** In a request of its own: if the application asks for the session, it is not asked again. */
const ask = ({ options }: Isolation, call: Endpoint, request: TenantManagementRequest) =>
  runInScope(scopeOf(request.session?.user.tenantId ?? null), async () => {
    const ctx = call as GenericEndpointContext;
    return (await options.canManageTenants?.(ctx, request)) === true;
  });

export function logFailure({ ctx }: Isolation, action: string, outcome: string, error: unknown) {
  ctx.logger.error(`canManageTenants failed for ${action}, ${outcome}: ${error}`);
}

/** A session as the application sees it. In secondary storage, its dates are strings. */
function toSession({ user: _, ...row }: Row, user: Person): TenantSession {
  const tenantId = user.tenantId || null;
  const dates = ["createdAt", "updatedAt", "expiresAt"].map((name) => [
    name,
    new Date(row[name] as Date | string),
  ]);
  const session = { ...row, ...Object.fromEntries(dates), tenantId };
  return { session: session as TenantSession["session"], user: { ...user, tenantId } };
}
