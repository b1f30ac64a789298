import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, User } from "better-auth";
import {
  type Isolation,
  isolationOf,
  tenantAuthOptions,
  unscopedAdapter,
} from "../isolation/isolation";
import { askAbout, isOperator, logFailure, rolesIn } from "../isolation/operators";
import { adminOptions, canGiveRole, type Giver } from "../isolation/roles";
import { readUser } from "../isolation/users";
import { adminPlugin, currentEndpoint, type Endpoint } from "../request/endpoint";
import { runInScope, scopeOf } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import { invitationError } from "./errors";
import type { StoredInvitation } from "./options";

type Person = User & { tenantId: string | null; role?: string | null; banned?: boolean | null };

/**
 * Whether the inviter could give the role today. Otherwise, users who lose a role could give it back
 * to themselves with an earlier invitation. If the inviter was deleted or cannot sign in, only the
 * default role is left.
 */
export async function mayStillGiveRole(ctx: AuthContext, invitation: StoredInvitation) {
  const { tenantId, role, inviterId } = invitation;
  if (!role || !inviterId) return true;
  const isolation = isolationOf(ctx) as Isolation;
  const { options } = isolation;
  const canGive = (giver: Giver) => canGiveRole(ctx, role, giver);
  if (canGive({ tenantId, role: null })) return true;
  const inviter = await findInviter(isolation, tenantId, inviterId);
  if (!inviter || inviter.banned || !canGive(inviter)) return false;
  if (await isBarred(isolation, inviter)) return false;
  if (options.canManageTenants) return isStillAllowed(isolation, ctx, invitation, inviter);
  return inviter.tenantId !== null || isOperator(inviter, options);
}

/** In the tenant, on the platform, or in any tenant that `canManageTenants` allows to invite. */
async function findInviter(isolation: Isolation, tenantId: string, id: string) {
  const find = () => isolation.ctx.internalAdapter.findUserById(id);
  for (const home of [tenantId, null]) {
    const found = await runInScope(scopeOf(home), find);
    if (found) return { ...found, tenantId: home } as Person;
  }
  if (!isolation.options.canManageTenants) return null;
  return readUser<Person>(await unscopedAdapter(isolation), id);
}

/** An inviter who may not sign in must not come back by inviting a second address. */
async function isBarred({ ctx, directory }: Isolation, { id, tenantId }: Person): Promise<boolean> {
  if (!tenantId) return false;
  const tenant = await lookUpTenant(ctx, tenantId);
  if (tenant && tenant.status !== "active") return true;
  return (await directory?.isBarred(tenantId, id)) ?? false;
}

/** Asks the application again, as if the inviter invited now. */
async function isStillAllowed(
  isolation: Isolation,
  ctx: AuthContext,
  { id, tenantId, email, role, expiresAt }: StoredInvitation,
  inviter: Person,
): Promise<boolean> {
  // The transaction that creates the user may have the only connection to the database.
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
 * Refuses unknown roles, and roles with more rights than those of the tenant's user who invites:
 * otherwise anyone who may invite could invite an administrator. Returns the role as the admin plugin
 * stores it.
 */
export function requireRole(ctx: AuthContext, role: string | null, inviter: Giver): string | null {
  if (role === null) return null;
  const { roles } = adminOptions(ctx);
  const { tenantRoles } = tenantAuthOptions(ctx);
  const names = rolesIn(role);
  const isKnown = (name: string) =>
    !roles || Object.hasOwn(roles, name) || Object.hasOwn(tenantRoles, name);
  if (!adminPlugin(ctx) || !names.length || !names.every(isKnown)) throw notAllowed();
  requireGiver(ctx, role, inviter);
  return names.join(",");
}

export function requireGiver(ctx: AuthContext, role: string, inviter: Giver): void {
  if (!canGiveRole(ctx, role, inviter)) throw notAllowed();
}

const notAllowed = () => invitationError("ROLE_NOT_ALLOWED");
