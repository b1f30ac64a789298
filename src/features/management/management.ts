import { getCurrentAdapter } from "@better-auth/core/context";
import type { GenericEndpointContext, HookEndpointContext } from "better-auth";
import { getAuthoritativeSessionFromCtx, getSession } from "better-auth/api";
import { hasNoRequest } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import { readUser } from "../../core/isolate/users";
import { currentRequest, getTenantId, runInScope, scopeOf } from "../../core/request";
import { namedBySlug, namesInRequest, resolvedTenantId } from "../../core/resolve/resolve";
import { couldBeId } from "../../core/tenants/tenants";
import { managementError } from "./errors";
import type { TenantActor } from "./events";
import { isOperator, rolesIn } from "./operators";
import {
  managementOptions,
  type ResolvedManagementOptions,
  type TenantManagementAction,
  type TenantSession,
} from "./options";
import { requireTenant } from "./tenant";

/**
 * Returns the caller of a management call, or throws a 401 or 403. Naming a tenant as the target
 * neither grants rights nor enters that tenant (R7).
 */
export const requireManager = async (
  ctx: GenericEndpointContext,
  action: TenantManagementAction,
  tenantId?: string,
): Promise<TenantActor> => (await requireManagerSession(ctx, action, tenantId)).actor;

/** Does the same as `requireManager`, and also returns the caller's session, if there is one. */
export async function requireManagerSession(
  ctx: GenericEndpointContext,
  action: TenantManagementAction,
  tenantId?: string,
): Promise<{ actor: TenantActor; session?: TenantSession["session"] | undefined }> {
  // Trusted: server code can write to the database anyway.
  if (hasNoRequest(ctx)) return { actor: "server" };
  const options = managementOptions(ctx.context);
  const session = await callerOf(ctx, tenantId);
  // A caller who impersonates manages nothing, neither as an operator nor as the user.
  if (session?.session.impersonatedBy) throw notAllowed();
  if (options.canManageTenants) {
    const allowed = await options.canManageTenants(ctx, { action, tenantId, session });
    if (allowed !== true) throw notAllowed();
  } else {
    if (!session) throw tenantError("UNAUTHORIZED");
    const caller = { ...session, user: await asStored(ctx, session) };
    if (caller.session.tenantId || !isOperator(caller.user, options)) {
      // A tenant that the host, a header or the query names must be the caller's own.
      const target = tenantId ?? (await targetTenantId(ctx));
      if (!isOwnAdmin(caller, options, action, target)) throw notAllowed();
    }
  }
  const { id: userId = null, tenantId: own = null } = session?.user ?? {};
  const actor = { userId, tenantId: own };
  const isAboutAll = ["tenant:create", "tenant:list"].includes(action);
  // A call about all tenants is refused at the host of any tenant. No tenant has the empty id, so
  // it stands for a target that no host matches.
  if (isAboutAll && !ownTenantOf(ctx, actor)) await assertTarget(ctx, "");
  return { actor, session: session?.session };
}

/**
 * Returns the user with the stored role, because a cached session may hold an outdated role.
 * Refuses users who were deleted or banned.
 */
async function asStored(ctx: GenericEndpointContext, { user }: TenantSession) {
  const adapter = await getCurrentAdapter(ctx.context.adapter);
  const stored = await runInScope(scopeOf(user.tenantId ?? null), () =>
    readUser<{ role?: string; banned?: boolean }>(adapter, user.id),
  );
  if (!stored || stored.banned) throw notAllowed();
  return { ...user, role: stored.role };
}

/**
 * Returns whether a role of the tenant's user allows the action. The call must be about the user's
 * own tenant, or name no tenant.
 */
function isOwnAdmin(
  { session, user }: TenantSession,
  { tenantRoles }: ResolvedManagementOptions,
  action: TenantManagementAction,
  tenantId: string | undefined,
): boolean {
  if (!user.tenantId || session.tenantId !== user.tenantId) return false;
  if (tenantId !== undefined && tenantId !== user.tenantId) return false;
  const every = action.replace(/:.*/, ":*");
  return rolesIn(user.role).some((role) => {
    const allowed: string[] = (Object.hasOwn(tenantRoles, role) && tenantRoles[role]) || [];
    return allowed.includes(action) || allowed.includes(every);
  });
}

/**
 * Returns the tenant that the caller's rights are limited to. Undefined for the server and
 * operators, and with `canManageTenants`, which checks the target itself.
 */
export function ownTenantOf({ context }: HookEndpointContext, actor: TenantActor) {
  if (actor === "server" || managementOptions(context).canManageTenants) return undefined;
  return actor.tenantId ?? undefined;
}

/** Returns the caller's session, or null if the request has credentials of several scopes. */
async function callerOf(
  ctx: GenericEndpointContext,
  target: string | undefined,
): Promise<TenantSession | null> {
  // While the database is down, better-auth's function returns null, but `askForSession` throws. So
  // an outage is not taken for a signed-out caller.
  const known: TenantSession | null =
    (await sessionOfNamedTenant(ctx)) ??
    (await getAuthoritativeSessionFromCtx(ctx)) ??
    (await askForSession(ctx));
  // Two credentials of different scopes never add up to the rights of both.
  if (known && (currentRequest().sentPrefixes?.size ?? 0) > 1) return null;
  if (known || managementOptions(ctx.context).sessionCookies === "shared") return known;
  // If each tenant has its own cookie, only the tenant's scope finds the session of its user. So
  // the session is looked up there.
  return sessionAt(ctx, target ?? (await targetTenantId(ctx)));
}

/** Returns the request's session in a tenant, which may not exist. Null for an impossible id. */
const sessionAt = async (ctx: GenericEndpointContext, tenantId: string | undefined) =>
  tenantId && couldBeId(ctx.context, tenantId)
    ? runInScope(scopeOf(tenantId), () => askForSession(ctx))
    : null;

/**
 * Returns the session in the tenant that the request names by host or header, if each tenant has
 * its own cookie. Otherwise a tenant's page could act as an operator who uses the same browser.
 * Returns null for a bearer token, which contains its tenant.
 */
async function sessionOfNamedTenant(ctx: GenericEndpointContext) {
  const { sessionCookies } = managementOptions(ctx.context);
  if (sessionCookies === "shared" || ctx.headers?.has("authorization")) return null;
  const resolved = (await resolvedTenantId(ctx)) || undefined;
  const { header } = namesInRequest(ctx);
  return sessionAt(ctx, resolved ?? header ?? (await namedBySlug(ctx)));
}

async function askForSession({ headers, ...ctx }: GenericEndpointContext) {
  if (!headers) return null;
  const query = { disableCookieCache: true, disableRefresh: ctx.query?.disableRefresh === true };
  const answer = { asResponse: false, returnHeaders: false, returnStatus: false } as const;
  return getSession()({ ...ctx, ...answer, headers, query, method: "GET" });
}

/** Returns the caller and the call's tenant, which exists and which the caller may manage. */
export async function requireTarget(ctx: GenericEndpointContext, action: TenantManagementAction) {
  const target = await targetTenantId(ctx);
  const actor = await requireManager(ctx, action, target);
  await assertTarget(ctx, target);
  const tenantId = target ?? ownTenantOf(ctx, actor);
  return { tenantId: (await requireTenant(ctx, tenantId)).id, actor };
}

export const notAllowed = () => managementError("TENANT_MANAGEMENT_NOT_ALLOWED");

/** Returns the tenant that a management call is about: the named or the current tenant. */
async function targetTenantId(ctx: HookEndpointContext): Promise<string | undefined> {
  const { body, query, header } = namesInRequest(ctx);
  const resolved = (await resolvedTenantId(ctx)) || undefined;
  const target = body ?? query ?? resolved ?? header ?? (await namedBySlug(ctx));
  return target ?? getTenantId() ?? undefined;
}

/**
 * Refuses, at the host of a tenant, a call about another tenant (R7) or about all tenants.
 * Otherwise a page of the tenant could make this call in an operator's browser.
 */
export async function assertTarget(ctx: HookEndpointContext, target: string | undefined) {
  // Server code calls without a request, so the resolver has nothing to read.
  if (hasNoRequest(ctx)) return;
  const resolved = await resolvedTenantId(ctx);
  if (!resolved) return;
  const { body, query } = namesInRequest(ctx);
  if ([target, body, query].every((named) => named === undefined || named === resolved)) return;
  throw tenantError("TENANT_SCOPE_CONFLICT");
}
