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
import type { Isolation } from "./isolation";

/** Whether a session may manage the users of a tenant, by its token and that tenant. */
const operatorDecisions = requestSlot(() => new Map<string, Promise<boolean>>());

type Person = TenantSession["user"] & { banned?: boolean | null };

/** A user of the platform with the right id or role. A tenant's user is none, whatever its role. */
export function isOperator(user: TenantSession["user"], options: ResolvedOptions): boolean {
  if (user.tenantId) return false;
  if (options.adminUserIds.includes(user.id)) return true;
  return rolesOf(user).some((role) => options.adminRoles.includes(role));
}

export const rolesOf = ({ role }: TenantSession["user"]) =>
  (role ?? "").split(",").map((name) => name.trim());

/**
 * Whether the caller may manage the users of a tenant, or of every tenant where none is given. Only
 * operators may: a permission of the admin plugin is for the caller's own place. Decided once for
 * each request.
 */
export function mayManageUsersOf(
  isolation: Isolation,
  endpoint: Endpoint,
  session: SessionRow,
  tenantId: string | undefined,
  adapter: DBTransactionAdapter,
): Promise<boolean> {
  const decisions = operatorDecisions.get();
  const key = JSON.stringify([session.token, tenantId]);
  const known = decisions.get(key) ?? decide(isolation, endpoint, session, tenantId, adapter);
  decisions.set(key, known);
  return known;
}

async function decide(
  isolation: Isolation,
  endpoint: Endpoint,
  session: SessionRow,
  tenantId: string | undefined,
  adapter: DBTransactionAdapter,
): Promise<boolean> {
  if (session.tenantId || session.impersonatedBy) return false;
  // A session in a storage has the role of when it was made.
  const where = [{ field: "id", value: String(session.userId) }];
  const user = await adapter.findOne<Person>({ model: "user", where });
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
 * for a user who makes no request: it gets no headers, and a session without an id and a token. It
 * is asked about every action: one who may delete tenants need not be one who may manage users.
 */
export async function isOrWouldBeOperator(
  isolation: Isolation,
  endpoint: Endpoint,
  user: TenantSession["user"],
): Promise<boolean> {
  if (!isolation.options.canManageTenants) return isOperator(user, isolation.options);
  const request = { headers: new Headers(), request: undefined, body: undefined, query: {} };
  const context = { ...endpoint.context, session: null };
  const now = new Date();
  const dates = { createdAt: now, updatedAt: now, expiresAt: now };
  const session = toSession({ id: "", token: "", userId: user.id, ...dates }, user);
  const call = { ...endpoint, ...request, context };
  for (const action of MANAGEMENT_ACTIONS) {
    const about = { action, tenantId: undefined, session };
    const isAllowed = await ask(isolation, call, about).catch((error: unknown) => {
      logFailure(isolation, action, `so user ${user.id} is taken for an operator`, error);
      return true;
    });
    if (isAllowed) return true;
  }
  return false;
}

/**
 * On the platform, in a request of its own that no endpoint has opened: if the application asks for
 * the session itself, it is not asked again.
 */
const ask = (
  { options: { canManageTenants } }: Isolation,
  call: Endpoint,
  request: TenantManagementRequest,
): Promise<boolean> =>
  runInScope(scopeOf(null), async () => {
    const ctx = call as GenericEndpointContext;
    return (await canManageTenants?.(ctx, request)) === true;
  });

function logFailure({ ctx }: Isolation, action: string, outcome: string, error: unknown): void {
  ctx.logger.error(`canManageTenants failed for ${action}, ${outcome}: ${error}`);
}

/** A session as the application sees it: a storage has its dates as text. */
function toSession({ user: _, ...row }: Row, user: Person): TenantSession {
  const dates = ["createdAt", "updatedAt", "expiresAt"].map((name) => [
    name,
    new Date(row[name] as Date | string),
  ]);
  const session = { ...row, ...Object.fromEntries(dates), tenantId: null };
  return { session: session as TenantSession["session"], user: { ...user, tenantId: null } };
}

type Row = Record<string, unknown>;
