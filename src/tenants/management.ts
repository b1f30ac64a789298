import { getCurrentAdapter } from "@better-auth/core/context";
import type { GenericEndpointContext, HookEndpointContext } from "better-auth";
import { getAuthoritativeSessionFromCtx, getSession } from "better-auth/api";
import { tenantError } from "../errors";
import { tenantAuthOptions } from "../isolation/isolation";
import { isOperator, rolesIn } from "../isolation/operators";
import { readUser } from "../isolation/users";
import type { ResolvedOptions, TenantManagementAction, TenantSession } from "../options";
import { hasNoRequest } from "../request/endpoint";
import { sentPrefixes } from "../request/prefix";
import { claimedBySlug, claimedNames, requireTenant, resolvedTenantId } from "../request/resolve";
import { getTenantId, requestSlot, runInScope, scopeOf } from "../request/scope";
import { couldBeId } from "./cache";
import type { TenantActor } from "./events";

/** The session of the manager who makes the request. */
export const managerSession = requestSlot<TenantSession["session"]>();

/**
 * Lets a management call through, or answers 401 or 403. The target grants nothing, and the caller
 * stays in its own scope (R7). Returns the caller.
 */
export async function requireManager(
  ctx: GenericEndpointContext,
  action: TenantManagementAction,
  tenantId?: string,
): Promise<TenantActor> {
  // Server code could do all this without us.
  if (hasNoRequest(ctx)) return "server";
  const options = tenantAuthOptions(ctx.context);
  const session = await callerOf(ctx, tenantId);
  managerSession.set(session?.session);
  // An operator who impersonates a user manages nothing.
  if (session?.session.impersonatedBy) throw notAllowed();
  if (options.canManageTenants) {
    const allowed = await options.canManageTenants(ctx, { action, tenantId, session });
    if (allowed !== true) throw notAllowed();
  } else {
    if (!session) throw tenantError("UNAUTHORIZED");
    const caller = { ...session, user: await asStored(ctx, session) };
    if (caller.session.tenantId || !isOperator(caller.user, options)) {
      // Whatever the request names, by its host, a header or the query, has to be theirs.
      const target = tenantId ?? (await targetTenantId(ctx));
      if (!isOwnAdmin(caller, options, action, target)) throw notAllowed();
    }
  }
  const { id: userId = null, tenantId: own = null } = session?.user ?? {};
  const actor = { userId, tenantId: own };
  const isAboutAll = ["tenant:create", "tenant:list"].includes(action);
  // The empty target is the id of no tenant.
  if (isAboutAll && !ownTenantOf(ctx, actor)) await assertTarget(ctx, "");
  return actor;
}

/** A session that is kept in a cookie or a cache has the role of when it was made. */
async function asStored(ctx: GenericEndpointContext, { user }: TenantSession) {
  const adapter = await getCurrentAdapter(ctx.context.adapter);
  const stored = await runInScope(scopeOf(user.tenantId ?? null), () =>
    readUser<{ role?: string; banned?: boolean }>(adapter, user.id),
  );
  if (!stored || stored.banned) throw notAllowed();
  return { ...user, role: stored.role };
}

/** A tenant's own user with a role that allows it, about that tenant, which need not be named. */
function isOwnAdmin(
  { session, user }: TenantSession,
  { tenantRoles }: ResolvedOptions,
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

/** The tenant of a caller who may manage that one alone. `canManageTenants` has decided by itself. */
export function ownTenantOf({ context }: HookEndpointContext, actor: TenantActor) {
  if (actor === "server" || tenantAuthOptions(context).canManageTenants) return undefined;
  return actor.tenantId ?? undefined;
}

/** The caller's session, unless the request has credentials of several tenants. */
async function callerOf(
  ctx: GenericEndpointContext,
  target: string | undefined,
): Promise<TenantSession | null> {
  // For better-auth, a caller is signed out while the database is down; a direct call fails.
  const known: TenantSession | null =
    (await sessionOfNamedTenant(ctx)) ??
    (await getAuthoritativeSessionFromCtx(ctx)) ??
    (await askForSession(ctx));
  // Two credentials of different scopes never add up to the rights of both.
  if (known && (sentPrefixes.get()?.size ?? 0) > 1) return null;
  if (known || tenantAuthOptions(ctx.context).sessionCookies === "shared") return known;
  // A tenant's own people have a cookie of the tenant's name.
  return sessionAt(ctx, target ?? (await targetTenantId(ctx)));
}

/** The session at a tenant that may not exist. An impossible id has no scope. */
const sessionAt = async (ctx: GenericEndpointContext, tenantId: string | undefined) =>
  tenantId && couldBeId(ctx.context, tenantId)
    ? runInScope(scopeOf(tenantId), () => askForSession(ctx))
    : null;

/**
 * With a cookie for each tenant, a request that names one by host or header acts as the user who is
 * signed in there: a tenant's page must not act as an operator who uses the same browser. A bearer
 * token speaks for itself.
 */
async function sessionOfNamedTenant(ctx: GenericEndpointContext) {
  const { sessionCookies } = tenantAuthOptions(ctx.context);
  if (sessionCookies === "shared" || ctx.headers?.has("authorization")) return null;
  const resolved = (await resolvedTenantId(ctx)) || undefined;
  const { header } = claimedNames(ctx);
  return sessionAt(ctx, resolved ?? header ?? (await claimedBySlug(ctx)));
}

async function askForSession({ headers, ...ctx }: GenericEndpointContext) {
  if (!headers) return null;
  const query = { disableCookieCache: true, disableRefresh: ctx.query?.disableRefresh === true };
  const answer = { asResponse: false, returnHeaders: false, returnStatus: false } as const;
  return getSession()({ ...ctx, ...answer, headers, query, method: "GET" });
}

/** Who calls, and the tenant that the call is about, if they may manage it and it exists. */
export async function requireTarget(ctx: GenericEndpointContext, action: TenantManagementAction) {
  const target = await targetTenantId(ctx);
  const actor = await requireManager(ctx, action, target);
  await assertTarget(ctx, target);
  const tenantId = target ?? ownTenantOf(ctx, actor);
  return { tenantId: (await requireTenant(ctx, tenantId)).id, actor };
}

export const notAllowed = () => tenantError("TENANT_MANAGEMENT_NOT_ALLOWED");

/** The target of a management call, which may be managed from a host of no tenant. */
async function targetTenantId(ctx: HookEndpointContext): Promise<string | undefined> {
  const { body, query, header } = claimedNames(ctx);
  const resolved = (await resolvedTenantId(ctx)) || undefined;
  const target = body ?? query ?? resolved ?? header ?? (await claimedBySlug(ctx));
  return target ?? getTenantId() ?? undefined;
}

/**
 * At the host of a tenant, refuses a call about another tenant (R7), or about all of them: a page
 * of the tenant could make it in an operator's browser.
 */
export async function assertTarget(ctx: HookEndpointContext, target: string | undefined) {
  // The server's own code calls without a request: there is nothing that a resolver could go by.
  if (hasNoRequest(ctx)) return;
  const resolved = await resolvedTenantId(ctx);
  if (!resolved) return;
  const { body, query } = claimedNames(ctx);
  if ([target, body, query].every((named) => named === undefined || named === resolved)) return;
  throw tenantError("TENANT_SCOPE_CONFLICT");
}
