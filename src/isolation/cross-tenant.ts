import type { HookEndpointContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { textOf } from "../framework";
import { asErrorRedirect } from "../policy/admission";
import {
  type AdminTarget,
  adminTarget,
  carries,
  currentEndpoint,
  type Endpoint,
  isAdminRunning,
  requestEndpoint,
  visitor,
} from "../request/endpoint";
import { prefixesIn, tenantInPrefix } from "../request/prefix";
import type { SessionRow } from "../request/scope";
import { enter, runInScope, type Scope, scopeOf } from "../request/scope";
import { nullIfInvalidId } from "./database-errors";
import type { Isolation, Row } from "./isolation";
import { mayManageUsersOf } from "./operators";

/**
 * An operator reaches further on better-auth's own admin endpoints: the tenant that is named, the
 * tenant of the user that the call is about, or all of them. That is granted to the very session
 * that the endpoint uses, once its user is found to be an operator.
 */
export async function scopeOfAdmin(
  isolation: Isolation,
  scope: Scope,
  session: SessionRow,
  adapter: DBTransactionAdapter,
): Promise<Scope> {
  const endpoint = currentEndpoint();
  const target = adminTarget(endpoint);
  const isRunning = isAdminRunning.get();
  if (!endpoint || !target || isRunning === false) return scope;
  if (!carries(endpoint, session.token)) return scope;
  const isOwn = session.tenantId || scope.access !== "own" || session.impersonatedBy;
  if (isOwn || target === "oneself") return scope;
  // Until the endpoint runs, its hooks are where the request is.
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
 * Operators who end sessions of their own end them on the platform, whichever tenant they visit. In
 * the tenant better-auth would find the list of them, but not all of the sessions: some would live
 * on, listed nowhere, and no ban would end them.
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

/**
 * A suspended tenant is entered by operators who manage its people, and by the server's own code:
 * asked before, so that nobody else gets to know more of it than that it is suspended.
 */
export async function requireVisitor(endpoint: Endpoint): Promise<void> {
  if (adminTarget(endpoint) && mayVisit(endpoint)) return;
  const error = tenantError("TENANT_SUSPENDED");
  throw asErrorRedirect(endpoint, error);
}

function mayVisit({ request, headers, context }: Endpoint): boolean {
  if (!request && !headers) return true;
  return prefixesIn({ request, headers, context } as HookEndpointContext)[0] === null;
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
  // As it was sent: better-auth asks for the session with a query of its own.
  const id = body?.userId ?? requestEndpoint.get()?.query?.id;
  if (typeof id !== "string" && typeof id !== "number") return null;
  const where = [{ field: "id", value: String(id) }];
  const user = await adapter.findOne<Row>({ model: "user", where }).catch(nullIfInvalidId);
  return user?.tenantId || null;
}
