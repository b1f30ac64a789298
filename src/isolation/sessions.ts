import type { BetterAuthOptions } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { invitingOf } from "../policy/inviting";
import { adminTarget, currentEndpoint, effectiveScope } from "../request/endpoint";
import { tenantInPrefix } from "../request/prefix";
import { notes, type Scope, type SessionRow, scopeOf } from "../request/scope";
import { hasChangedHands } from "./changed-hands";
import { scopeOfAdmin } from "./cross-tenant";
import { type Isolation, type Row, unscopedAdapter } from "./isolation";

/**
 * Where a session is looked up: in the scope. On admin endpoints an operator comes with a session of
 * the platform, whichever tenant the request names.
 */
export function scopeOfSession(token: unknown): Scope {
  const scope = effectiveScope();
  if (scope.tenantId === null && scope.access === "own") return scope;
  const isOperators = adminTarget(currentEndpoint()) && tenantInPrefix(String(token)) === null;
  return isOperators ? scopeOf(null) : scope;
}

/** Whether a session that was found where it belongs is valid in the running request (R5, R10). */
export async function isSessionValidHere(
  isolation: Isolation,
  session: SessionRow,
  given?: DBTransactionAdapter,
): Promise<boolean> {
  const tenantId = session.tenantId ?? null;
  const adapter = given ?? (await unscopedAdapter(isolation));
  if (tenantId !== null && !(await isolation.acceptsSession(session, adapter))) return false;
  if (!adminTarget(currentEndpoint())) return tenantId === effectiveScope().tenantId;
  const scope = await scopeOfAdmin(isolation, effectiveScope(), session, adapter);
  if (tenantId === scope.tenantId) return true;
  if (scope.access === "visits" && notes().visitor?.token === session.token) return true;
  return tenantId === null && isImpersonator(session.userId);
}

/** The way back of an operator who has impersonated a tenant's user, and no other way. */
export function isImpersonator(userId: unknown): boolean {
  const endpoint = currentEndpoint();
  if (endpoint?.path !== "/admin/stop-impersonating" || !adminTarget(endpoint)) return false;
  const session: SessionRow | undefined = endpoint.context.session?.session;
  return Boolean(session?.impersonatedBy) && session?.impersonatedBy === userId;
}

/**
 * A cached session is read from a signed cookie and never reaches the adapter, but better-auth asks
 * for its version first. The version of a tenant's session names the tenant (R10), and a session
 * that is not valid here has a version that matches none.
 */
export function isolateCachedSessions(options: BetterAuthOptions, isolation: Isolation): void {
  const { cookieCache } = options.session ?? {};
  if (!cookieCache) return;
  const { version = "1" } = cookieCache;
  const versionIn = async (session: Row, user: Row) => {
    if (!(await isSessionValidHere(isolation, session as SessionRow))) return crypto.randomUUID();
    const canChangeHands = session.tenantId && (isolation.isBarred || invitingOf(isolation.ctx));
    if (canChangeHands && (await hasChangedHands(isolation, user))) {
      return crypto.randomUUID();
    }
    const own =
      typeof version === "function" ? await version(session as never, user as never) : version;
    return session.tenantId ? `${own}@${session.tenantId}` : own;
  };
  options.session = {
    ...options.session,
    cookieCache: { ...cookieCache, version: versionIn as NonNullable<typeof version> },
  };
}
