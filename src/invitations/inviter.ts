import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, GenericEndpointContext, User } from "better-auth";
import { isolationOf, unscopedAdapter } from "../isolation/isolation";
import { isOperator } from "../isolation/operators";
import { adminOptions, canGiveRole, type Giver, namesIn } from "../isolation/roles";
import type { ResolvedOptions, TenantSession } from "../options";
import { adminPlugin, currentEndpoint } from "../request/endpoint";
import { runInScope, scopeOf } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import { invitationError } from "./errors";
import { tenantOptions } from "./options";
import type { StoredInvitation } from "./schema";

type Person = User & { tenantId?: string | null; role?: string | null; banned?: boolean | null };

/**
 * Whether the inviter could give the role today. Somebody who loses a role must not get it back by
 * an invitation from before. Of an inviter who is gone, or cannot sign in, the default role is left.
 */
export async function mayStillGiveRole(
  ctx: AuthContext,
  invitation: StoredInvitation,
): Promise<boolean> {
  const { tenantId, role } = invitation;
  const options = tenantOptions(ctx);
  const canGive = (giver: Giver) => canGiveRole(ctx, options, namesIn(role ?? ""), giver);
  if (canGive({ tenantId, role: null })) return true;
  const inviter = await whoInvited(ctx, options, invitation);
  if (!inviter || inviter.banned || (await isBarred(ctx, inviter))) return false;
  const home = inviter.tenantId ?? null;
  if (!canGive({ ...inviter, tenantId: home })) return false;
  if (options.canManageTenants) return isStillAllowed(ctx, options, invitation, inviter);
  return home !== null || isOperator(inviter, options);
}

/** In the tenant, on the platform, or wherever the application lets somebody invite from. */
async function whoInvited(
  ctx: AuthContext,
  { canManageTenants }: ResolvedOptions,
  { tenantId, inviterId }: StoredInvitation,
): Promise<Person | null> {
  const id = inviterId ?? "";
  for (const place of [tenantId, null]) {
    const found: Person | null = await runInScope(scopeOf(place), () =>
      ctx.internalAdapter.findUserById(id),
    );
    if (found) return { ...found, tenantId: place };
  }
  if (!canManageTenants) return null;
  const isolation = isolationOf(ctx);
  const adapter = isolation && (await unscopedAdapter(isolation));
  const where = [{ field: "id", value: id }];
  return (await adapter?.findOne<Person>({ model: "user", where })) ?? null;
}

/** Whoever may not sign in must not come back by the invitation of a second address. */
async function isBarred(ctx: AuthContext, { id, tenantId }: Person): Promise<boolean> {
  if (!tenantId) return false;
  const tenant = await lookUpTenant(ctx, tenantId);
  if (tenant && tenant.status !== "active") return true;
  return (await isolationOf(ctx)?.isBarred?.(tenantId, id)) ?? false;
}

/**
 * Asks the application again, as if the inviter invited now. The request under way is that of
 * whoever accepts, and nothing in it may speak for the inviter: no cookie, header or session.
 */
async function isStillAllowed(
  ctx: AuthContext,
  { canManageTenants }: ResolvedOptions,
  { id, tenantId, email, role, expiresAt }: StoredInvitation,
  user: Person,
): Promise<boolean> {
  const home = user.tenantId ?? null;
  const now = new Date();
  const dates = { createdAt: now, updatedAt: now, expiresAt };
  const session: TenantSession = {
    session: { id: "", token: "", userId: user.id, tenantId: home, ...dates },
    user,
  };
  // The transaction that makes the user may have the only connection to the database.
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
      scopeOf(home),
      async () => (await isAllowed("invitation:create")) || (await isAllowed("invitation:resend")),
    );
  } catch (error) {
    const { name, message } = error as Error;
    ctx.logger.error(
      `canManageTenants failed for the inviter of invitation ${id}, whose role is not given therefore: ${name}: ${message}`,
    );
    return false;
  }
}

/**
 * Refuses a role that nobody knows, and one that can do more than the inviter's own, where a
 * tenant's user invites: whoever may invite must not be able to invite an administrator. Returns
 * the role as the admin plugin reads it.
 */
export function requireRole(
  ctx: AuthContext,
  tenantOptions: ResolvedOptions,
  role: string | null,
  inviter: Giver,
): string | null {
  if (role === null) return null;
  const plugin = adminPlugin(ctx);
  const { roles } = adminOptions(ctx);
  const names = namesIn(role);
  const isKnown = (name: string) =>
    !roles || Object.hasOwn(roles, name) || Object.hasOwn(tenantOptions.tenantRoles, name);
  if (!plugin || !names.length || !names.every(isKnown)) throw notAllowed();
  requireGiver(ctx, tenantOptions, role, inviter);
  return names.join(",");
}

/** Refuses whoever cannot give a role. */
export function requireGiver(
  ctx: AuthContext,
  tenantOptions: ResolvedOptions,
  role: string,
  inviter: Giver,
): void {
  if (!canGiveRole(ctx, tenantOptions, namesIn(role), inviter)) throw notAllowed();
}

const notAllowed = () => invitationError("ROLE_NOT_ALLOWED");
