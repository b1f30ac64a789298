import type { BetterAuthOptions } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { after } from "../framework";
import { countsUnder, isSetup } from "../policy/second-factor";
import { adminTarget, currentEndpoint, effectiveScope, visitor } from "../request/endpoint";
import { tenantInPrefix } from "../request/prefix";
import { type Scope, type SessionRow, scopeOf } from "../request/scope";
import { acceptsSession, policyOf } from "../tenants/cache";
import { invitingOf } from "../tenants/plugins";
import { hasChangedHands } from "./changed-hands";
import { scopeOfAdmin } from "./cross-tenant";
import { type Isolation, type Row, unscopedAdapter } from "./isolation";

/**
 * Where a session is looked up: in the scope. On admin endpoints, an operator's session of the
 * platform counts in every tenant that the request names.
 */
export function scopeOfSession(token: unknown): Scope {
  const scope = effectiveScope();
  if (scope.tenantId === null && scope.access === "own") return scope;
  const isOperators = adminTarget(currentEndpoint()) && tenantInPrefix(String(token)) === null;
  return isOperators ? scopeOf(null) : scope;
}

/** Whether its tenant, and the tenant's directory, accept a session (R10). */
export function isAccepted(
  { ctx, directory }: Isolation,
  session: SessionRow,
  adapter?: DBTransactionAdapter,
): boolean | Promise<boolean> {
  if (!directory) return acceptsSession(ctx, session, adapter);
  return directory
    .acceptsSession(session, adapter)
    .then((isActive) => isActive && acceptsSession(ctx, session, adapter));
}

/** Whether a session that was found where it belongs is valid in the running request (R5, R10, R14). */
export function isSessionValidHere(
  isolation: Isolation,
  session: SessionRow,
  adapter?: DBTransactionAdapter,
): boolean | Promise<boolean> {
  const isAdmin = adminTarget(currentEndpoint()) !== undefined;
  const tenantId = session.tenantId ?? null;
  if (!isAdmin && tenantId !== effectiveScope().tenantId) return false;
  const checkCounting = (counts: boolean) => {
    if (!counts) return false;
    if (isAdmin) return isValidForAdmin(isolation, session, adapter);
    return tenantId === null || isAccepted(isolation, session, adapter);
  };
  return after(policyOf(isolation.ctx, tenantId, adapter), (policy) =>
    after(countsUnder(policy, session), checkCounting),
  );
}

async function isValidForAdmin(
  isolation: Isolation,
  session: SessionRow,
  given?: DBTransactionAdapter,
): Promise<boolean> {
  const tenantId = session.tenantId ?? null;
  if (tenantId !== null && !(await isAccepted(isolation, session, given))) return false;
  const adapter = given ?? (await unscopedAdapter(isolation));
  const scope = await scopeOfAdmin(isolation, session, adapter);
  if (tenantId === scope.tenantId) return true;
  if (scope.access === "visits" && visitor.get()?.token === session.token) return true;
  return tenantId === null && isImpersonator(session.userId);
}

/** The way back for an operator who has impersonated a tenant's user. */
export function isImpersonator(userId: unknown): boolean {
  const endpoint = currentEndpoint();
  if (endpoint?.path !== "/admin/stop-impersonating" || !adminTarget(endpoint)) return false;
  const session: SessionRow | undefined = endpoint.context.session?.session;
  return Boolean(session?.impersonatedBy) && session?.impersonatedBy === userId;
}

/**
 * A cached session is read from a signed cookie and never reaches the adapter, but better-auth
 * compares its version first. The version of a tenant's session names the tenant (R10), and a
 * session that is not valid here gets a version that matches none.
 */
export function isolateCachedSessions(options: BetterAuthOptions, isolation: Isolation): void {
  const { cookieCache } = options.session ?? {};
  if (!cookieCache) return;
  const { version = "1" } = cookieCache;
  const versionIn = async (session: Row, user: Row) => {
    // A setup session ends when another one begins, which a cookie would not know.
    const own = session as SessionRow;
    const isValid = !isSetup(own) && (await isSessionValidHere(isolation, own));
    if (!isValid) return crypto.randomUUID();
    const canChangeHands = isolation.directory || invitingOf(isolation.ctx);
    if (session.tenantId && canChangeHands && (await hasChangedHands(isolation, user))) {
      return crypto.randomUUID();
    }
    const given =
      typeof version === "function" ? await version(session as never, user as never) : version;
    return session.tenantId ? `${given}@${session.tenantId}` : given;
  };
  options.session = {
    ...options.session,
    cookieCache: { ...cookieCache, version: versionIn as NonNullable<typeof version> },
  };
}
