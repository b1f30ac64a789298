import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, User } from "better-auth";
import { adminPlugin } from "../../core/admin-endpoints";
import { currentEndpoint } from "../../core/endpoint";
import { serviceOf } from "../../core/extensions";
import { readUser } from "../../core/isolate/users";
import { type Isolation, isolationOf, unscopedAdapter } from "../../core/isolation";
import { type Endpoint, runInScope, scopeOf } from "../../core/request";
import { lookUpTenant } from "../../core/tenants/tenants";
import { askAbout, isOperator, logFailure, rolesIn } from "../management/operators";
import { managementOptions } from "../management/options";
import { adminOptions, canGiveRole, type RoleGranter } from "../management/roles";
import { invitationError } from "./errors";
import type { StoredInvitation } from "./options";

type Person = User & { tenantId: string | null; role?: string | null; banned?: boolean | null };

/**
 * Returns whether the inviter could give the role today. Otherwise users who lose a role could get
 * it back by an earlier invitation. If the inviter was deleted or cannot sign in, only invitations
 * for the default role remain valid.
 */
export async function mayStillGiveRole(ctx: AuthContext, invitation: StoredInvitation) {
  const { tenantId, role, inviterId } = invitation;
  if (!role || !inviterId) return true;
  const isolation = isolationOf(ctx) as Isolation;
  const options = managementOptions(isolation.ctx);
  const canGive = (granter: RoleGranter) => canGiveRole(ctx, role, granter);
  if (canGive({ tenantId, role: null })) return true;
  const inviter = await findInviter(isolation, tenantId, inviterId);
  if (!inviter || inviter.banned || !canGive(inviter)) return false;
  if (await isBarred(isolation, inviter)) return false;
  if (options.canManageTenants) return isStillAllowed(isolation, ctx, invitation, inviter);
  return inviter.tenantId !== null || isOperator(inviter, options);
}

/** Finds the inviter in the tenant, on the platform or, with `canManageTenants`, in any tenant. */
async function findInviter(isolation: Isolation, tenantId: string, id: string) {
  const find = () => isolation.ctx.internalAdapter.findUserById(id);
  for (const home of [tenantId, null]) {
    const found = await runInScope(scopeOf(home), find);
    if (found) return { ...found, tenantId: home } as Person;
  }
  if (!managementOptions(isolation.ctx).canManageTenants) return null;
  return readUser<Person>(await unscopedAdapter(isolation), id);
}

/**
 * Returns whether the inviter may not sign in. Such an inviter must not come back as another user,
 * by an invitation to a second address.
 */
async function isBarred(isolation: Isolation, { id, tenantId }: Person): Promise<boolean> {
  if (!tenantId) return false;
  const tenant = await lookUpTenant(isolation.ctx, tenantId);
  if (tenant && tenant.status !== "active") return true;
  return (await serviceOf(isolation, "directory")?.isBarred(tenantId, id)) ?? false;
}

/** Asks `canManageTenants` again, as if the inviter sent the invitation now. */
async function isStillAllowed(
  isolation: Isolation,
  ctx: AuthContext,
  { id, tenantId, email, role, expiresAt }: StoredInvitation,
  inviter: Person,
): Promise<boolean> {
  // Uses the transaction that creates the user, which may have the only database connection.
  const adapter = await getCurrentAdapter(ctx.adapter);
  const call = {
    ...currentEndpoint(),
    path: "/tenant/invitation/create",
    method: "POST",
    context: { ...ctx, adapter },
    body: { tenantId, email, role },
  } as unknown as Endpoint;
  const isAllowed = (action: "invitation:create" | "invitation:resend") =>
    askAbout(isolation, call, inviter, { action, tenantId }, expiresAt);
  try {
    return (await isAllowed("invitation:create")) || (await isAllowed("invitation:resend"));
  } catch (error) {
    logFailure(isolation, `the inviter of invitation ${id}`, "so its role is not given", error);
    return false;
  }
}

/**
 * Returns the role as the admin plugin stores it. Refuses unknown roles, and roles with more rights
 * than the inviter: otherwise every user who may invite could invite an administrator.
 */
export function requireRole(
  ctx: AuthContext,
  role: string | null,
  inviter: RoleGranter,
): string | null {
  if (role === null) return null;
  const { roles } = adminOptions(ctx);
  const { tenantRoles } = managementOptions(ctx);
  const names = rolesIn(role);
  const isKnown = (name: string) =>
    !roles || Object.hasOwn(roles, name) || Object.hasOwn(tenantRoles, name);
  if (!adminPlugin(ctx) || !names.length || !names.every(isKnown)) throw notAllowed();
  requireGiver(ctx, role, inviter);
  return names.join(",");
}

export function requireGiver(ctx: AuthContext, role: string, inviter: RoleGranter): void {
  if (!canGiveRole(ctx, role, inviter)) throw notAllowed();
}

const notAllowed = () => invitationError("ROLE_NOT_ALLOWED");
