import type { GenericEndpointContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../../core/database";
import { readUser } from "../../core/isolate/users";
import type { Isolation } from "../../core/isolation";
import type { Endpoint } from "../../core/request";
import { requestSlot, runInScope, scopeOf } from "../../core/request";
import type { SessionRow } from "../../core/session";
import {
  MANAGEMENT_ACTIONS,
  managementOptions,
  type ResolvedManagementOptions,
  type TenantManagementRequest,
  type TenantSession,
} from "./options";

/** The values that this feature keeps during a request. */
interface ManagementRequest {
  /** Earlier results of `mayManageUsersOf`, by session token and tenant. */
  operatorDecisions: Map<string, Promise<boolean>>;
}

const request = requestSlot((): ManagementRequest => ({ operatorDecisions: new Map() }));

export type Person = TenantSession["user"] & { banned?: boolean | null };

/** Returns whether a user is an operator by id or role. A tenant's user is never an operator. */
export function isOperator(
  user: TenantSession["user"],
  options: ResolvedManagementOptions,
): boolean {
  if (user.tenantId) return false;
  if (options.adminUserIds.includes(user.id)) return true;
  return rolesIn(user.role).some((role) => options.adminRoles.includes(role));
}

/** Splits the roles of a user, which the admin plugin stores in one string. */
export const rolesIn = (role: string | null | undefined) =>
  (role ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter(Boolean);

/**
 * Returns whether the caller may manage the users of a tenant, or of every tenant if none is given.
 * Only operators may: permissions of the admin plugin count only in the caller's own scope. Decides
 * once per request.
 */
export function mayManageUsersOf(...call: Parameters<typeof decide>): Promise<boolean> {
  const [, , session, tenantId] = call;
  const decisions = request.get().operatorDecisions;
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
  // Reads the user: a stored session may hold an outdated role.
  const user = await readUser<Person>(adapter, session.userId);
  if (!user || user.tenantId || user.banned) return false;
  if (!managementOptions(isolation.ctx).canManageTenants)
    return isOperator(user, managementOptions(isolation.ctx));
  const own = toSession(session, user);
  const call = { ...endpoint, context: { ...endpoint.context, session: own } };
  const action = "user:manage";
  return ask(isolation, call, { action, tenantId, session: own }).catch((error: unknown) => {
    logFailure(isolation, action, "so the caller stays on the platform", error);
    return false;
  });
}

/**
 * Returns whether a platform user is an operator, or would be with the given role. Asks
 * `canManageTenants` about every action: it may allow an operator some actions and refuse others.
 */
export async function isOrWouldBeOperator(
  isolation: Isolation,
  endpoint: Endpoint,
  user: TenantSession["user"],
): Promise<boolean> {
  if (!managementOptions(isolation.ctx).canManageTenants)
    return isOperator(user, managementOptions(isolation.ctx));
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
 * Asks `canManageTenants` about a user who did not make the current request. The caller's
 * credentials must not count for that user, so the call has no headers, and its session has no id
 * and token.
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

/**
 * Calls `canManageTenants` in a separate request. Otherwise, if that function reads the session, it
 * could be called again without end.
 */
const ask = (isolation: Isolation, call: Endpoint, request: TenantManagementRequest) =>
  runInScope(scopeOf(request.session?.user.tenantId ?? null), async () => {
    const ctx = call as GenericEndpointContext;
    return (await managementOptions(isolation.ctx).canManageTenants?.(ctx, request)) === true;
  });

export function logFailure({ ctx }: Isolation, action: string, outcome: string, error: unknown) {
  ctx.logger.error(`canManageTenants failed for ${action}, ${outcome}: ${error}`);
}

/** Converts a stored session for the application: its dates are strings in secondary storage. */
function toSession({ user: _, ...row }: Row, user: Person): TenantSession {
  const tenantId = user.tenantId || null;
  const dates = ["createdAt", "updatedAt", "expiresAt"].map((name) => [
    name,
    new Date(row[name] as Date | string),
  ]);
  const session = { ...row, ...Object.fromEntries(dates), tenantId };
  return { session: session as TenantSession["session"], user: { ...user, tenantId } };
}
