import { getCurrentAdapter } from "@better-auth/core/context";
import type { GenericEndpointContext, HookEndpointContext } from "better-auth";
import { getAuthoritativeSessionFromCtx, getSession } from "better-auth/api";
import { tenantError } from "../errors";
import { isOperator, rolesOf } from "../isolation/operators";
import type { ResolvedOptions, TenantManagementAction, TenantSession } from "../options";
import {
  claimedBySlug,
  claimedNames,
  firstTenantId,
  requireTenant,
  resolvedTenantId,
} from "../request/resolve";
import { getTenantId, notes, runInScope, scopeOf } from "../request/scope";
import { couldBeId } from "./cache";
import type { TenantActor } from "./events";

/**
 * Authorizes a management call, or answers 401 or 403. The target grants nothing, and the caller
 * stays in its own scope (R7).
 */
export async function requireManager(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  action: TenantManagementAction,
  tenantId?: string,
): Promise<TenantActor> {
  if (isServerCall(ctx)) return "server";
  const session = await callerOf(ctx, options, tenantId);
  // An impersonator acts in the name of another user, and manages nothing.
  if (session?.session.impersonatedBy) throw notAllowed();
  if (options.canManageTenants) {
    const isAllowed = await options.canManageTenants(ctx, { action, tenantId, session });
    if (isAllowed !== true) throw notAllowed();
  } else if (session) {
    await assertMayManage(ctx, options, session, action, tenantId);
  } else {
    throw tenantError("UNAUTHORIZED");
  }
  const { id: userId = null, tenantId: home = null } = session?.user ?? {};
  const actor = { userId, tenantId: home };
  const isAboutAll = action === "tenant:create" || action === "tenant:list";
  if (isAboutAll && !ownTenantOf(actor, options)) await assertTarget(ctx, options, ALL_TENANTS);
  return actor;
}

/** The target of calls about all tenants: the id of none. */
const ALL_TENANTS = "";

async function assertMayManage(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  { session, user }: TenantSession,
  action: TenantManagementAction,
  tenantId: string | undefined,
): Promise<void> {
  const caller = { session, user: await asStored(ctx, user) };
  if (!session.tenantId && isOperator(caller.user, options)) return;
  // A target in the host, a header or the query has to be the caller's own tenant, too.
  const target = tenantId ?? (await targetTenantId(ctx, options));
  if (!isOwnAdmin(caller, options, action, target)) throw notAllowed();
}

type StoredUser = TenantSession["user"] & { banned?: boolean | null };

/** A session in a cookie or a cache has the role from when it was created. */
async function asStored(ctx: GenericEndpointContext, user: TenantSession["user"]) {
  const where = [{ field: "id", value: user.id }];
  const adapter = await getCurrentAdapter(ctx.context.adapter);
  const stored = await runInScope(scopeOf(user.tenantId ?? null), () =>
    adapter.findOne<StoredUser>({ model: "user", where }),
  );
  if (!stored || stored.banned) throw notAllowed();
  return { ...user, role: stored.role };
}

/** Whether the caller is a user of the target, or names none, and has a role that allows the action. */
function isOwnAdmin(
  { session, user }: TenantSession,
  { tenantRoles }: ResolvedOptions,
  action: TenantManagementAction,
  tenantId: string | undefined,
): boolean {
  if (!user.tenantId || session.tenantId !== user.tenantId) return false;
  if (tenantId !== undefined && tenantId !== user.tenantId) return false;
  const every = action.replace(/:.*/, ":*");
  return rolesOf(user).some((role) => {
    const allowed: string[] = (Object.hasOwn(tenantRoles, role) && tenantRoles[role]) || [];
    return allowed.includes(action) || allowed.includes(every);
  });
}

/** The tenant of a caller who may manage only that one. `canManageTenants` decides about the target. */
export function ownTenantOf(actor: TenantActor, options: ResolvedOptions): string | undefined {
  if (actor === "server" || options.canManageTenants) return undefined;
  return actor.tenantId ?? undefined;
}

/** The caller's session, unless the request has credentials of several scopes. */
async function callerOf(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  target: string | undefined,
): Promise<TenantSession | null> {
  // The middle one hides an unreachable database; the last one throws.
  const known: TenantSession | null =
    (await sessionOfNamedTenant(ctx, options)) ??
    (await getAuthoritativeSessionFromCtx(ctx)) ??
    (await askForSession(ctx));
  // Credentials of different scopes must not add up to the rights of both.
  if (known && (notes().prefixes?.size ?? 0) > 1) return null;
  if (known || options.sessionCookies === "shared") return known;
  // With a cookie per tenant, the target says which one to read.
  return sessionAt(ctx, target ?? (await targetTenantId(ctx, options)));
}

/** The tenant was not looked up: an impossible id must not become a scope. */
const sessionAt = async (ctx: GenericEndpointContext, tenantId: string | undefined) =>
  tenantId && couldBeId(ctx.context, tenantId)
    ? runInScope(scopeOf(tenantId), () => askForSession(ctx))
    : null;

/**
 * With a cookie per tenant, the host or header says which session makes the call: a tenant's page
 * must not act with the rights of an operator who is signed in in the same browser. A bearer token
 * has its tenant in its prefix.
 */
async function sessionOfNamedTenant(ctx: GenericEndpointContext, options: ResolvedOptions) {
  if (options.sessionCookies === "shared" || ctx.headers?.has("authorization")) return null;
  const resolved = (await resolvedTenantId(ctx, options)) || undefined;
  const { header } = claimedNames(ctx, options, true);
  return sessionAt(ctx, firstTenantId({ resolved, header }) ?? (await claimedBySlug(ctx, options)));
}

async function askForSession({ headers, ...ctx }: GenericEndpointContext) {
  if (!headers) return null;
  const query = { disableCookieCache: true, disableRefresh: ctx.query?.disableRefresh === true };
  const answer = { asResponse: false, returnHeaders: false, returnStatus: false } as const;
  return getSession()({ ...ctx, ...answer, headers, query, method: "GET" });
}

/** The existing tenant that a call is about, and the caller, who may manage it. */
export async function requireTarget(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  action: TenantManagementAction,
): Promise<{ tenantId: string; actor: TenantActor }> {
  const target = await targetTenantId(ctx, options);
  const actor = await requireManager(ctx, options, action, target);
  await assertTarget(ctx, options, target);
  const tenantId = target ?? ownTenantOf(actor, options);
  return { tenantId: (await requireTenant(ctx, tenantId)).id, actor };
}

/** A call of `auth.api.*` from the server's own code is trusted. */
const isServerCall = (ctx: HookEndpointContext) => !ctx.request && !ctx.headers;

export const notAllowed = () => tenantError("TENANT_MANAGEMENT_NOT_ALLOWED");

/** The target of a management call: body and query come first, on a host of the platform as well. */
async function targetTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
): Promise<string | undefined> {
  const { body, query, header } = claimedNames(ctx, options, true);
  const resolved = (await resolvedTenantId(ctx, options)) || undefined;
  const target = firstTenantId({ body, query }) ?? resolved ?? firstTenantId({ header });
  return target ?? (await claimedBySlug(ctx, options)) ?? getTenantId() ?? undefined;
}

/**
 * R7: on the host of a tenant, a call about another tenant is refused, and so is one about all of
 * them: a page of the tenant could make it in an operator's browser.
 */
export async function assertTarget(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  target: string | undefined,
): Promise<void> {
  const resolved = isServerCall(ctx) ? undefined : await resolvedTenantId(ctx, options);
  if (!resolved) return;
  const { body, query } = claimedNames(ctx, options, true);
  const targets = [target, firstTenantId({ body }), firstTenantId({ query })];
  const isOther = targets.some((named) => named !== undefined && named !== resolved);
  if (isOther) throw tenantError("TENANT_SCOPE_CONFLICT");
}
