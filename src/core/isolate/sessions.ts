import type { BetterAuthOptions } from "better-auth";
import { adminTarget } from "../admin-endpoints";
import { currentScope } from "../current-scope";
import type { Row } from "../database";
import { currentEndpoint } from "../endpoint";
import type { SessionSource } from "../extension";
import { extensionsWith } from "../extensions";
import type { Isolation } from "../isolation";
import { tenantInPrefix } from "../prefix";
import { currentRequest, getTenantId, type Scope, scopeOf } from "../request";
import type { SessionRow } from "../session";
import { acceptsSession } from "../tenants/tenants";
import { beginVisit, findVisit } from "./cross-tenant";
import { isOfGeneration } from "./generations";

/**
 * Returns the scope in which a session is looked up: the current scope. On admin endpoints, a
 * session of the platform may be an operator's, so it is found even if the request names a tenant.
 */
export function scopeOfTokenLookup(token: unknown): Scope {
  const scope = currentScope();
  if (scope.tenantId === null && scope.access === "own") return scope;
  const isOperators = adminTarget(currentEndpoint()) && tenantInPrefix(String(token)) === null;
  return isOperators ? scopeOf(null) : scope;
}

/**
 * Returns whether a session's tenant and the extensions accept it (R10, R14). Does not compare its
 * tenant with the scope.
 */
export async function passesTenantAndExtensions(
  isolation: Isolation,
  session: SessionRow,
  source: SessionSource,
): Promise<boolean> {
  const { adapter } = source;
  if (
    (session.tenantId ?? null) !== null &&
    !(await acceptsSession(isolation.ctx, session, adapter))
  ) {
    return false;
  }
  for (const extension of extensionsWith(isolation, "acceptsSession")) {
    if (!(await extension.acceptsSession(session, source))) return false;
  }
  return true;
}

/**
 * Returns whether the running request may use a session that it has found (R5, R10, R14). On an
 * admin endpoint, the session of an operator begins a visit.
 */
export async function openSession(
  isolation: Isolation,
  session: SessionRow,
  source: SessionSource = {},
): Promise<boolean> {
  const { adapter } = source;
  const isAdmin = adminTarget(currentEndpoint()) !== undefined;
  const owner = session.tenantId ?? null;
  // On admin endpoints, compared below, after a visit may have begun.
  if (!isAdmin && owner !== getTenantId()) return false;
  if (!(await isOfGeneration(isolation, session, adapter))) return false;
  if (!(await passesTenantAndExtensions(isolation, session, source))) return false;
  if (!isAdmin) return true;
  const visit = await findVisit(isolation, session, adapter);
  if (visit) beginVisit(visit);
  const scope = currentScope();
  const isVisitor = scope.access === "visits" && currentRequest().visitor?.token === session.token;
  const endsImpersonation = owner === null && isImpersonator(session.userId);
  return owner === scope.tenantId || isVisitor || endsImpersonation;
}

/**
 * Returns whether a user is the operator who ends an impersonation. This request runs in a tenant,
 * and may read the operator's user and session.
 */
export function isImpersonator(userId: unknown): boolean {
  const endpoint = currentEndpoint();
  if (endpoint?.path !== "/admin/stop-impersonating" || !adminTarget(endpoint)) return false;
  const session: SessionRow | undefined = endpoint.context.session?.session;
  return Boolean(session?.impersonatedBy) && session?.impersonatedBy === userId;
}

/**
 * Isolates sessions in better-auth's cookie cache, a signed cookie that is read without the
 * adapter. better-auth compares the version of a cached session. The version of a tenant's session
 * contains the tenant (R10), and an invalid session gets a version that never matches.
 */
export function isolateCachedSessions(options: BetterAuthOptions, isolation: Isolation): void {
  const { cookieCache } = options.session ?? {};
  if (!cookieCache) return;
  const { version = "1" } = cookieCache;
  const versionIn = async (session: Row, user: Row) => {
    const isValid = await openSession(isolation, session as SessionRow, {
      isFromCookie: true,
    });
    if (!isValid) return crypto.randomUUID();
    const given =
      typeof version === "function" ? await version(session as never, user as never) : version;
    return session.tenantId ? `${given}@${session.tenantId}` : given;
  };
  options.session = {
    ...options.session,
    cookieCache: { ...cookieCache, version: versionIn as NonNullable<typeof version> },
  };
}
