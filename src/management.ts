import type { GenericEndpointContext } from "better-auth";
import { APIError, getAuthoritativeSessionFromCtx, getSession } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import type { ResolvedOptions, TenantManagementAction, TenantSession } from "./options";
import { requireTenant, targetTenantId } from "./tenants/naming";

/**
 * Lets a management call through, or answers 401 or 403. The target is what the call is about
 * and no more: it grants nothing, and the caller stays in its own scope (R7).
 */
export async function requireManager(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  action: TenantManagementAction,
  tenantId?: string,
): Promise<void> {
  if (isServerCall(ctx)) return;
  // better-auth takes a database that is away for nobody; asked directly, it says what is wrong.
  const session: TenantSession | null =
    (await getAuthoritativeSessionFromCtx(ctx)) ?? (await askForSession(ctx));
  if (options.canManageTenants) {
    const allowed = await options.canManageTenants(ctx, { action, tenantId, session });
    if (allowed !== true) throw notAllowed();
    return;
  }
  if (!session) throw APIError.from("UNAUTHORIZED", TENANT_AUTH_ERROR_CODES.UNAUTHORIZED);
  if (!isOperator(session, options)) throw notAllowed();
}

async function askForSession({ headers, ...ctx }: GenericEndpointContext) {
  if (!headers) return null;
  const query = { disableCookieCache: true };
  const answer = { asResponse: false, returnHeaders: false, returnStatus: false } as const;
  return getSession()({ ...ctx, ...answer, headers, query, method: "GET" });
}

/** The tenant that a management call is about, if the caller may manage it and it exists. */
export async function requireTarget(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  action: TenantManagementAction,
): Promise<string> {
  const target = await targetTenantId(ctx, options);
  await requireManager(ctx, options, action, target);
  return (await requireTenant(ctx, target)).id;
}

/** A call of `auth.api.*` from the server's own code: it could do all this without us. */
function isServerCall(ctx: GenericEndpointContext): boolean {
  return !ctx.request && !ctx.headers;
}

/** A user of the platform with the right id or role. A tenant's user is none, whatever its role. */
function isOperator({ session, user }: TenantSession, options: ResolvedOptions): boolean {
  if (session.tenantId || user.tenantId) return false;
  if (options.adminUserIds.includes(user.id)) return true;
  const roles = (user.role ?? "").split(",").map((role) => role.trim());
  return roles.some((role) => options.adminRoles.includes(role));
}

function notAllowed() {
  return APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.TENANT_MANAGEMENT_NOT_ALLOWED);
}
