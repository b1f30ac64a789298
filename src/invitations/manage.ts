import { BASE_ERROR_CODES, type GenericEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { tenantError } from "../errors";
import type { ResolvedOptions, TenantManagementAction } from "../options";
import { whyNotAdmitted } from "../policy/email-domains";
import { leadsElsewhere } from "../request/addresses";
import { requireTenant } from "../request/resolve";
import { runInScope, scopeOf } from "../request/scope";
import type { Tenant } from "../tenants/cache";
import type { InvitationStatus, TenantInvitation } from "../tenants/events";
import { emit, type TenantActor } from "../tenants/events";
import { assertTarget, requireManager, requireTarget } from "../tenants/management";
import { invitationError } from "./errors";
import { requireGiver, requireRole } from "./inviter";
import { assertWithinLimits, nameInMail, oneAtATime } from "./limits";
import { linkOf } from "./link";
import { type Inviter, type ResolvedInvitationOptions, tenantOptions } from "./options";
import { isReplaceable } from "./replace";
import type { StoredInvitation } from "./schema";
import * as store from "./store";

/** An invitation that was sent, or that the caller sends: then its link is the caller's. */
export type SentInvitation = TenantInvitation & {
  /** Only with `send: false`. Whoever has it can accept the invitation. */
  url?: string;
};

interface CreateInput {
  email: string;
  role?: string | null | undefined;
  expiresIn?: number | undefined;
  redirectTo?: string | undefined;
  send?: boolean | undefined;
}

/** Invites an address, or sends the invitation again that it has. */
export async function createInvitation(
  ctx: GenericEndpointContext,
  settings: ResolvedInvitationOptions,
  input: CreateInput,
): Promise<SentInvitation> {
  const options = tenantOptions(ctx.context);
  const { tenantId, actor } = await requireTarget(ctx, options, "invitation:create");
  const tenant = await requireTenant(ctx, tenantId);
  const email = input.email.toLowerCase();
  assertAdmissible(tenant, email);
  const inviter = await callerAsInviter(ctx, actor);
  return runInScope(scopeOf(tenantId), async () => {
    const pending = await store.findPending(ctx.context, email);
    const given = input.role === undefined ? (pending?.role ?? null) : input.role;
    const role = requireRole(ctx.context, options, given, inviter);
    const isMailed = input.send !== false;
    // The one that is pending, which ends, may be for a role that this caller cannot give.
    if (pending?.role) requireGiver(ctx.context, options, pending.role, inviter);
    await assertNoUser(ctx, email, isMailed);
    const redirectTo = input.redirectTo ?? pending?.redirectTo ?? null;
    await assertOwnPage(ctx, options, redirectTo);
    const sending = {
      email,
      role,
      mailed: isMailed,
      redirectTo,
      expiresAt: new Date(Date.now() + (input.expiresIn ?? settings.expiresIn) * 1000),
      ...namesOf(inviter),
    };
    const issued = await oneAtATime(ctx.context, tenant, async () => {
      if (actor !== "server") await assertWithinLimits(ctx.context, settings, sending);
      return store.issue(ctx.context, sending);
    });
    return deliver(ctx, settings, { options, actor, tenant, inviter }, issued, isMailed);
  });
}

/** Sends an invitation again, with a new token. */
export async function resendInvitation(
  ctx: GenericEndpointContext,
  settings: ResolvedInvitationOptions,
  id: string,
): Promise<SentInvitation> {
  const { row, options, actor } = await requireInvitation(ctx, "invitation:resend", id);
  const tenant = await requireTenant(ctx, row.tenantId);
  assertAdmissible(tenant, row.email);
  const inviter = await callerAsInviter(ctx, actor);
  requireRole(ctx.context, options, row.role ?? null, inviter);
  return runInScope(scopeOf(row.tenantId), async () => {
    await assertNoUser(ctx, row.email, true);
    await assertOwnPage(ctx, options, row.redirectTo);
    const expiresAt = new Date(Date.now() + settings.expiresIn * 1000);
    const sending = { email: row.email, mailed: true, expiresAt, ...namesOf(inviter) };
    const issued = await oneAtATime(ctx.context, tenant, async () => {
      if (actor !== "server") await assertWithinLimits(ctx.context, settings, sending);
      return store.renew(ctx.context, row, sending);
    });
    if (!issued) throw store.notFound();
    return deliver(ctx, settings, { options, actor, tenant, inviter }, issued, true);
  });
}

/** Takes an invitation back: its link is dead. */
export async function revokeInvitation(
  ctx: GenericEndpointContext,
  id: string,
): Promise<TenantInvitation> {
  const { row, options, actor } = await requireInvitation(ctx, "invitation:revoke", id);
  const { tenantId } = row;
  const revoked = await runInScope(scopeOf(tenantId), () => store.revoke(ctx.context, row));
  if (!revoked) throw store.notFound();
  const invitation = store.toInvitation(revoked);
  await emit(ctx.context, options, actor, tenantId, { type: "invitation:revoked", invitation });
  return invitation;
}

export async function listInvitations(
  ctx: GenericEndpointContext,
  {
    status,
    limit = 100,
    offset = 0,
  }: { status?: InvitationStatus; limit?: number; offset?: number },
): Promise<TenantInvitation[]> {
  const options = tenantOptions(ctx.context);
  const { tenantId } = await requireTarget(ctx, options, "invitation:list");
  return runInScope(scopeOf(tenantId), () =>
    store.list(ctx.context, { limit, offset, ...(status && { status }) }),
  );
}

/** An invitation by its id, if the caller may do this with it. */
async function requireInvitation(
  ctx: GenericEndpointContext,
  action: TenantManagementAction,
  id: string,
) {
  const options = tenantOptions(ctx.context);
  const row = await store.findAnywhere(ctx.context, id);
  // To a tenant's administrator, one that does not exist is like one of another tenant.
  const nobodys = options.canManageTenants ? undefined : NOBODYS;
  const actor = await requireManager(ctx, options, action, row?.tenantId ?? nobodys);
  if (!row) throw store.notFound();
  await assertTarget(ctx, options, row.tenantId);
  store.assertPending(row);
  return { row, options, actor };
}

/** No tenant has this id. */
const NOBODYS = "-";

/** Nobody is sent a link that the tenant's policy does not honour. */
function assertAdmissible({ policy }: Tenant, email: string): void {
  const refusal = whyNotAdmitted(policy, email);
  if (refusal) throw tenantError(refusal);
}

/** A mailed link takes the place of a user who has never verified the address. Others do not. */
async function assertNoUser(
  { context }: GenericEndpointContext,
  email: string,
  isMailed: boolean,
): Promise<void> {
  const found = await context.internalAdapter.findUserByEmail(email);
  if (!found || (isMailed && (await isReplaceable(context, found.user)))) return;
  throw invitationError("USER_ALREADY_IN_TENANT");
}

/** R9: the host of a stored page may be another tenant's by now, which must not get the token. */
async function assertOwnPage(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  redirectTo: string | null,
): Promise<void> {
  if (!(await leadsElsewhere(ctx, options, redirectTo))) return;
  ctx.context.logger.error(
    `The invitation leads to ${redirectTo}, which is another tenant's: invite the address again with another redirectTo`,
  );
  throw APIError.from("FORBIDDEN", BASE_ERROR_CODES.INVALID_REDIRECT_URL);
}

type KnownInviter = Inviter & { role?: string | null };

async function callerAsInviter(
  { context }: GenericEndpointContext,
  actor: TenantActor,
): Promise<KnownInviter | null> {
  if (actor === "server" || actor.userId === null) return null;
  const { userId, tenantId } = actor;
  const user = await runInScope(scopeOf(tenantId), () =>
    context.internalAdapter.findUserById(userId),
  );
  if (!user) throw tenantError("UNAUTHORIZED");
  const { name, email, role } = user as typeof user & { role?: string | null };
  return { id: userId, name: nameInMail(name), email, tenantId, role: role ?? null };
}

const namesOf = (inviter: Inviter | null) => ({
  inviterId: inviter?.id ?? null,
  inviterName: inviter?.name ?? null,
});

interface Call {
  options: ResolvedOptions;
  actor: TenantActor;
  tenant: Tenant;
  inviter: KnownInviter | null;
}

/** Mails the link, or hands it to the caller. Runs inside the tenant. */
async function deliver(
  ctx: GenericEndpointContext,
  { sendInvitationEmail }: ResolvedInvitationOptions,
  { options, actor, tenant, inviter }: Call,
  { row, secret, isNew }: store.Issued,
  isMailed: boolean,
): Promise<SentInvitation> {
  const invitation = store.toInvitation(row);
  const url = await linkOf(ctx.context, row as StoredInvitation, secret);
  const type = isNew ? "invitation:created" : "invitation:resent";
  await emit(ctx.context, options, actor, tenant.id, { type, invitation });
  if (!isMailed) return { ...invitation, url };
  const { id, name, slug } = tenant;
  const mail = {
    invitation,
    url,
    tenant: { id, name: nameInMail(name), slug },
    inviter: inviter && withoutRole(inviter),
  };
  const send = async () => sendInvitationEmail(mail, ctx.request);
  await ctx.context.runInBackgroundOrAwait(send());
  return invitation;
}

const withoutRole = ({ role: _, ...inviter }: KnownInviter): Inviter => inviter;
