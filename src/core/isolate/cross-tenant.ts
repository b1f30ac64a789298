import type { DBTransactionAdapter } from "better-auth/types";
import { type AdminTarget, adminTarget } from "../admin-endpoints";
import { currentScope } from "../current-scope";
import { currentEndpoint } from "../endpoint";
import type { Extension } from "../extension";
import { type AfterHook, type BeforeHook, plainHook } from "../hooks";
import { type Isolation, unscopedAdapter } from "../isolation";
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

/**
 * From here to `closeAdminEndpoint`, the admin endpoint runs. A visit begins no earlier, unless the
 * request names the tenant (`findVisit`), and ends when the endpoint is done.
 */
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

/** The visit of an operator: a call of an admin endpoint in another scope than the session's. */
export interface Visit {
  session: SessionRow;
  scope: Scope;
}

/**
 * Returns the visit that a session may begin. An operator visits the tenant that the request names,
 * the tenant of the user that the call acts on, or all tenants. Only the session that the endpoint
 * uses can begin a visit.
 */
export async function findVisit(
  isolation: Isolation,
  session: SessionRow,
  given?: DBTransactionAdapter,
): Promise<Visit | undefined> {
  const scope = currentScope();
  const endpoint = currentEndpoint();
  const target = adminTarget(endpoint);
  const record = currentRequest();
  if (!endpoint || !target || record.adminEndpoint === "done") return undefined;
  if (!isSessionTokenOf(endpoint, session.token)) return undefined;
  // A visit has begun already, or the session is not an operator's.
  if (scope.access !== "own" || session.tenantId || session.impersonatedBy) return undefined;
  if (target === "oneself") return undefined;
  // Hooks that run before the endpoint stay on the platform. If the request names a tenant, the
  // visit may begin earlier.
  if (scope.tenantId === null && record.adminEndpoint !== "running") return undefined;
  const adapter = given ?? (await unscopedAdapter(isolation));
  const tenantId = scope.tenantId ?? (await tenantOfTarget(endpoint, target, adapter));
  if (tenantId === null) return undefined;
  const { query, method } = (record.endpoint ?? endpoint) as Endpoint & { method?: string };
  const call = { ...endpoint, query, method };
  if (!(await mayVisit(isolation, call, session, tenantId, adapter))) return undefined;
  if (tenantId === undefined) return { session, scope: scopeOf(null, "all") };
  const staysOnPlatform =
    scope.tenantId !== null && (await endsOwnSessions(isolation, endpoint, session));
  return { session, scope: staysOnPlatform ? scopeOf(null) : scopeOf(tenantId, "visits") };
}

/** Enters the scope of a visit. */
export function beginVisit({ session, scope }: Visit): void {
  currentRequest().visitor = { token: String(session.token), userId: String(session.userId) };
  enter(scope);
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
