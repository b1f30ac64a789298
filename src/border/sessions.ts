import type { DBTransactionAdapter } from "better-auth/types";
import { lazy } from "../framework";
import { adminTarget, currentEndpoint, settledScope } from "../scope/endpoint";
import { tenantInPrefix } from "../scope/prefix";
import type { SessionRow } from "../scope/scope";
import { notes, type Scope, settled } from "../scope/scope";
import { type Border, belowBorder } from "./border";

/**
 * Where a session is looked up: in the scope. On admin endpoints an operator comes with a session of
 * the platform, whichever tenant the request names.
 */
export function homeOf(token: unknown): Scope {
  const scope = settledScope();
  if (scope.tenantId === null && scope.reach === "own") return scope;
  const isOperators = adminTarget(currentEndpoint()) && tenantInPrefix(String(token)) === null;
  return isOperators ? settled(null) : scope;
}

/** Whether a session that was found where it belongs is valid in the running request (R5, R10). */
export async function mayUse(
  border: Border,
  session: SessionRow,
  given?: DBTransactionAdapter,
): Promise<boolean> {
  const tenantId = session.tenantId ?? null;
  const adapter = given ?? (await belowBorder(border));
  if (tenantId !== null && !(await border.acceptsSession(session, adapter))) return false;
  if (!adminTarget(currentEndpoint())) return tenantId === settledScope().tenantId;
  const scope = await (await reach()).scopeOfAdmin(border, settledScope(), session, adapter);
  if (tenantId === scope.tenantId) return true;
  if (scope.reach === "visits" && notes().visitor?.token === session.token) return true;
  return tenantId === null && isImpersonator(session.userId);
}

const reach = lazy(() => import("./reach"));

/** The way back of an operator who has impersonated a tenant's user, and no other way. */
export function isImpersonator(userId: unknown): boolean {
  const endpoint = currentEndpoint();
  if (endpoint?.path !== "/admin/stop-impersonating" || !adminTarget(endpoint)) return false;
  const session: SessionRow | undefined = endpoint.context.session?.session;
  return Boolean(session?.impersonatedBy) && session?.impersonatedBy === userId;
}
