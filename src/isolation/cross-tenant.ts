import type { HookEndpointContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { textOf } from "../framework";
import { asErrorRedirect } from "../policy/admission";
import {
  type AdminTarget,
  adminTarget,
  currentEndpoint,
  type Endpoint,
  effectiveScope,
  hasNoRequest,
  isAdminRunning,
  requestEndpoint,
  visitor,
} from "../request/endpoint";
import { carries, prefixesIn, tenantInPrefix } from "../request/prefix";
import { enter, runInScope, type Scope, type SessionRow, scopeOf } from "../request/scope";
import type { Isolation } from "./isolation";
import { mayManageUsersOf } from "./operators";
import { readUser } from "./users";

/**
 * Cross-tenant access of operators on better-auth's admin endpoints: to the tenant that the request
 * names, to the tenant of the user that the call is about, or to all of them. It is granted to the
 * session that the endpoint uses, once its user is found to be an operator.
 */
export async function scopeOfAdmin(
  isolation: Isolation,
  session: SessionRow,
  adapter: DBTransactionAdapter,
): Promise<Scope> {
  const scope = effectiveScope();
  const endpoint = currentEndpoint();
  const target = adminTarget(endpoint);
  const isRunning = isAdminRunning.get();
  if (!endpoint || !target || isRunning === false) return scope;
  if (!carries(endpoint, session.token)) return scope;
  const isOwn = session.tenantId || scope.access !== "own" || session.impersonatedBy;
  if (isOwn || target === "oneself") return scope;
  // Hooks that run before the endpoint stay in the request's scope.
  if (scope.tenantId === null && !isRunning) return scope;
  const tenantId = scope.tenantId ?? (await tenantOfTarget(endpoint, target, adapter));
  if (tenantId === null) return scope;
  const { query, method } = (requestEndpoint.get() ?? endpoint) as Endpoint & { method?: string };
  const asked = { ...endpoint, query, method };
  if (!(await mayManageUsersOf(isolation, asked, session, tenantId, adapter))) return scope;
  visitor.set({ token: String(session.token), userId: String(session.userId) });
  if (tenantId === undefined) return enter(scopeOf(null, "all"));
  const isOwnEnd = scope.tenantId !== null && (await endsOwnSessions(isolation, endpoint, session));
  return enter(isOwnEnd ? scopeOf(null) : scopeOf(tenantId, "visits"));
}

/**
 * Operators end their own sessions on the platform, also while they visit a tenant. In the tenant,
 * better-auth would find their list but not all sessions: some would live on, and no ban would end
 * them.
 */
async function endsOwnSessions(
  isolation: Isolation,
  { path, body }: Endpoint,
  { userId }: SessionRow,
): Promise<boolean> {
  if (path === "/admin/revoke-user-sessions") return textOf(body?.userId) === String(userId);
  if (path !== "/admin/revoke-user-session" || typeof body?.sessionToken !== "string") return false;
  const token = body.sessionToken;
  if (tenantInPrefix(token) !== null) return false;
  const find = () => isolation.ctx.internalAdapter.findSession(token);
  return (await runInScope(scopeOf(null), find))?.session.userId === userId;
}

/** A suspended tenant is entered by operators who manage its users, and by server code. */
export function requireVisitor(endpoint: Endpoint): void {
  const { request, headers, context } = endpoint;
  const call = { request, headers, context } as HookEndpointContext;
  const mayVisit = hasNoRequest(endpoint) || prefixesIn(call)[0] === null;
  if (adminTarget(endpoint) && mayVisit) return;
  throw asErrorRedirect(tenantError("TENANT_SUSPENDED"));
}

/** The tenant that a call is about: null is the platform, undefined all of them. */
async function tenantOfTarget(
  { body }: Endpoint,
  target: AdminTarget,
  adapter: DBTransactionAdapter,
): Promise<string | null | undefined> {
  if (target === "everybody") return undefined;
  if (target === "a session") {
    const token = body?.sessionToken;
    return typeof token === "string" ? tenantInPrefix(token) : null;
  }
  if (target !== "a user") return null;
  // As it was sent: better-auth reads the session with a query of its own.
  const id = body?.userId ?? requestEndpoint.get()?.query?.id;
  if (typeof id !== "string" && typeof id !== "number") return null;
  return (await readUser(adapter, id))?.tenantId || null;
}
