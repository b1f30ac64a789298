import type { DBTransactionAdapter } from "better-auth/types";
import { type AdminTarget, adminTarget } from "../admin-endpoints";
import { currentScope } from "../current-scope";
import { currentEndpoint } from "../endpoint";
import type { Extension } from "../extension";
import { type AfterHook, type BeforeHook, plainHook } from "../hooks";
import type { Isolation } from "../isolation";
import { tenantInPrefix } from "../prefix";
import {
  currentRequest,
  type Endpoint,
  enter,
  getTenantId,
  runInScope,
  type Scope,
  scopeOf,
} from "../request";
import type { SessionRow } from "../session";
import { isSessionTokenOf } from "../session-tokens";
import { textOf } from "../utils";
import { readUser } from "./users";

/** Cross-tenant access begins when an admin endpoint starts, and ends when it is done. */
export const openAdminEndpoint: BeforeHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: plainHook(() => {
    currentRequest().adminEndpoint = "running";
  }),
};

export const closeAdminEndpoint: AfterHook = {
  matcher: (ctx) => adminTarget(ctx as Endpoint) !== undefined,

  handler: plainHook(() => {
    currentRequest().adminEndpoint = "done";
    enter(scopeOf(getTenantId()));
  }),
};

/**
 * Begins the visit of an operator: enters the tenant that the request names, the tenant of the user
 * that the call acts on, or all tenants. Only the session that the endpoint uses can begin one.
 * Returns the scope of the call, which is unchanged for everybody else.
 */
export async function beginVisit(
  isolation: Isolation,
  session: SessionRow,
  adapter: DBTransactionAdapter,
): Promise<Scope> {
  const scope = currentScope();
  const endpoint = currentEndpoint();
  const target = adminTarget(endpoint);
  const record = currentRequest();
  if (!endpoint || !target || record.adminEndpoint === "done") return scope;
  if (!isSessionTokenOf(endpoint, session.token)) return scope;
  const staysHere = session.tenantId || scope.access !== "own" || session.impersonatedBy;
  if (staysHere || target === "oneself") return scope;
  // Hooks that run before the endpoint stay in the request's scope.
  if (scope.tenantId === null && record.adminEndpoint !== "running") return scope;
  const tenantId = scope.tenantId ?? (await tenantOfTarget(endpoint, target, adapter));
  if (tenantId === null) return scope;
  const { query, method } = (record.endpoint ?? endpoint) as Endpoint & { method?: string };
  const call = { ...endpoint, query, method };
  if (!(await mayVisit(isolation, call, session, tenantId, adapter))) return scope;
  record.visitor = { token: String(session.token), userId: String(session.userId) };
  if (tenantId === undefined) return enter(scopeOf(null, "all"));
  const staysOnPlatform =
    scope.tenantId !== null && (await endsOwnSessions(isolation, endpoint, session));
  return enter(staysOnPlatform ? scopeOf(null) : scopeOf(tenantId, "visits"));
}

/** Returns whether an extension lets the caller visit. */
async function mayVisit(
  { extensions }: Isolation,
  ...call: Parameters<NonNullable<Extension["mayVisit"]>>
): Promise<boolean> {
  for (const extension of extensions) if (await extension.mayVisit?.(...call)) return true;
  return false;
}

/**
 * Returns whether operators end their own sessions. This happens on the platform, even while they
 * visit a tenant. In the tenant, better-auth would find the list of their sessions but not every
 * session: some would stay valid, and no ban would end them.
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

/** Returns the tenant that a call acts on: null for the platform, undefined for all tenants. */
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
  // The query as it was sent: better-auth replaces the query while it reads the session.
  const id = body?.userId ?? currentRequest().endpoint?.query?.id;
  if (typeof id !== "string" && typeof id !== "number") return null;
  return (await readUser(adapter, id))?.tenantId || null;
}
