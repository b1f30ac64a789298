import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, GenericEndpointContext, User } from "better-auth";
import { isolationOf, unscopedAdapter } from "../isolation/isolation";
import { isOperator, rolesIn } from "../isolation/operators";
import { adminOptions, canGiveRole, type Giver } from "../isolation/roles";
import type { TenantSession } from "../options";
import { adminPlugin, currentEndpoint } from "../request/endpoint";
import { runInScope, scopeOf } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import { invitationError } from "./errors";
import { type StoredInvitation, tenantOptions } from "./options";

type Person = User & { tenantId: string | null; role?: string | null; banned?: boolean | null };

/**
 * Whether the inviter could give the role today. Otherwise, users who lose a role could give it back
 * to themselves with an earlier invitation. If the inviter was deleted or cannot sign in, only the
 * default role is left.
 */
export async function mayStillGiveRole(
  ctx: AuthContext,
  invitation: StoredInvitation,
): Promise<boolean> {
  const { tenantId, role, inviterId } = invitation;
  if (!role || !inviterId) return true;
  const options = tenantOptions(ctx);
  const canGive = (giver: Giver) => canGiveRole(ctx, options, rolesIn(role), giver);
  if (canGive({ tenantId, role: null })) return true;
  const inviter = await findInviter(ctx, tenantId, inviterId);
  if (!inviter || inviter.banned || (await isBarred(ctx, inviter)) || !canGive(inviter)) {
    return false;
  }
  if (options.canManageTenants) return isStillAllowed(ctx, invitation, inviter);
  return inviter.tenantId !== null || isOperator(inviter, options);
}

/** In the tenant, on the platform, or in any tenant that `canManageTenants` allows to invite. */
async function findInviter(ctx: AuthContext, tenantId: string, id: string): Promise<Person | null> {
  for (const home of [tenantId, null]) {
    const find = () => ctx.internalAdapter.findUserById(id);
    const found = await runInScope(scopeOf(home), find);
    if (found) return { ...found, tenantId: home };
  }
  const isolation = isolationOf(ctx);
  if (!isolation?.options.canManageTenants) return null;
  const adapter = await unscopedAdapter(isolation);
  return adapter.findOne<Person>({ model: "user", where: [{ field: "id", value: id }] });
}

/** An inviter who may not sign in must not come back by inviting a second address. */
async function isBarred(ctx: AuthContext, { id, tenantId }: Person): Promise<boolean> {
  if (!tenantId) return false;
  const tenant = await lookUpTenant(ctx, tenantId);
  if (tenant && tenant.status !== "active") return true;
  return (await isolationOf(ctx)?.directory?.isBarred(tenantId, id)) ?? false;
}

/**
 * Asks the application again, as if the inviter invited now. The current request is that of the user
 * who accepts, so nothing in it may speak for the inviter: no cookie, header or session.
 */
async function isStillAllowed(
  ctx: AuthContext,
  { id, tenantId, email, role, expiresAt }: StoredInvitation,
  user: Person,
): Promise<boolean> {
  const { canManageTenants } = tenantOptions(ctx);
  const now = new Date();
  const dates = { createdAt: now, updatedAt: now, expiresAt };
  const session: TenantSession = {
    session: { id: "", token: "", userId: user.id, tenantId: user.tenantId, ...dates },
    user,
  };
  // The transaction that creates the user may have the only connection to the database.
  const adapter = await getCurrentAdapter(ctx.adapter);
  const call = {
    ...currentEndpoint(),
    path: "/tenant/invitation/create",
    method: "POST",
    context: { ...ctx, adapter, session: null },
    headers: new Headers(),
    request: undefined,
    query: {},
    body: { tenantId, email, role },
  } as unknown as GenericEndpointContext;
  const isAllowed = async (action: "invitation:create" | "invitation:resend") =>
    (await canManageTenants?.(call, { action, tenantId, session })) === true;
  try {
    return await runInScope(
      scopeOf(user.tenantId),
      async () => (await isAllowed("invitation:create")) || (await isAllowed("invitation:resend")),
    );
  } catch (error) {
    const { name, message } = error as Error;
    ctx.logger.error(
      `canManageTenants failed for the inviter of invitation ${id}, so its role is not given: ${name}: ${message}`,
    );
    return false;
  }
}

/**
 * Refuses unknown roles, and roles with more rights than those of the tenant's user who invites:
 * otherwise anyone who may invite could invite an administrator. Returns the role as the admin plugin
 * stores it.
 */
export function requireRole(ctx: AuthContext, role: string | null, inviter: Giver): string | null {
  if (role === null) return null;
  const { roles } = adminOptions(ctx);
  const { tenantRoles } = tenantOptions(ctx);
  const names = rolesIn(role);
  const isKnown = (name: string) =>
    !roles || Object.hasOwn(roles, name) || Object.hasOwn(tenantRoles, name);
  if (!adminPlugin(ctx) || !names.length || !names.every(isKnown)) throw notAllowed();
  requireGiver(ctx, role, inviter);
  return names.join(",");
}

/** Refuses an inviter who cannot give the role. */
export function requireGiver(ctx: AuthContext, role: string, inviter: Giver): void {
  if (!canGiveRole(ctx, tenantOptions(ctx), rolesIn(role), inviter)) throw notAllowed();
}

const notAllowed = () => invitationError("ROLE_NOT_ALLOWED");
