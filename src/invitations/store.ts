import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { constantTimeEqual } from "better-auth/crypto";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { nullIfInvalidId } from "../isolation/database-errors";
import { isolationOf, unscopedAdapter } from "../isolation/isolation";
import { couldBeId } from "../tenants/cache";
import type { InvitationStatus, TenantInvitation } from "../tenants/events";
import { invitationError } from "./errors";
import { mayStillGiveRole } from "./inviter";
import { createSecret, hashSecret, type OpenedLink } from "./link";
import type { StoredInvitation } from "./schema";

/*
 * The table of invitations. All of it runs inside the scope of a tenant, where the isolation shows the
 * rows of that tenant only.
 */

const model = "tenantInvitation";
const adapterOf = ({ adapter }: AuthContext) => getCurrentAdapter(adapter);

/** How often an invitation is tried that somebody else accepts, revokes or makes meanwhile. */
const TRIES = 3;

export const notFound = () => invitationError("INVITATION_NOT_FOUND");

export const isExpired = ({ expiresAt }: StoredInvitation) => new Date(expiresAt) <= new Date();

/** An invitation as managers see it: what is not named here stays here. */
export function toInvitation(row: StoredInvitation): TenantInvitation {
  const { id, tenantId, email, status, expiresAt, createdAt, updatedAt } = row;
  return {
    id,
    tenantId,
    email,
    role: row.role ?? null,
    status: status === "pending" && isExpired(row) ? "expired" : status,
    inviterId: row.inviterId ?? null,
    inviterName: row.inviterName ?? null,
    userId: row.userId ?? null,
    redirectTo: row.redirectTo ?? null,
    expiresAt,
    acceptedAt: row.acceptedAt ?? null,
    createdAt,
    updatedAt,
  };
}

/** Below the isolation, for those who have only its id: it says which tenant to be allowed in. */
export async function findAnywhere(ctx: AuthContext, id: string): Promise<StoredInvitation | null> {
  if (!couldBeId(ctx, id)) return null;
  const isolation = isolationOf(ctx);
  const below = isolation && (await unscopedAdapter(isolation));
  const where = [{ field: "id", value: id }];
  const row = await below?.findOne<StoredInvitation>({ model, where }).catch(nullIfInvalidId);
  return row?.id === id ? row : null;
}

/** The pending invitation of an address, expired or not. */
export async function findPending(
  ctx: AuthContext,
  email: string,
): Promise<StoredInvitation | undefined> {
  const where = [{ field: "pendingFor", value: email }];
  const row = await (await adapterOf(ctx)).findOne<StoredInvitation>({ model, where });
  // MySQL compares without regard to accents, and an address is not another one.
  return row?.email === email ? row : undefined;
}

/** The same, if it is still good. */
export async function findOpen(ctx: AuthContext, email: string) {
  const row = await findPending(ctx, email);
  return row && !isExpired(row) && (await isRoleStillGiven(ctx, row)) ? row : undefined;
}

/** Whether whoever has invited could still give the role: they may have been demoted or deleted. */
const isRoleStillGiven = async (ctx: AuthContext, row: StoredInvitation) =>
  !row.role || !row.inviterId || mayStillGiveRole(ctx, row);

/** The invitation of a link, or the reason why the link is none (any more). */
export async function findByLink(
  ctx: AuthContext,
  { id, secret }: Pick<OpenedLink, "id" | "secret">,
): Promise<StoredInvitation> {
  return findByHash(ctx, id, await hashSecret(secret));
}

export async function findByHash(
  ctx: AuthContext,
  id: string,
  tokenHash: string,
): Promise<StoredInvitation> {
  const where = [{ field: "id", value: id }];
  const row = await (await adapterOf(ctx)).findOne<StoredInvitation>({ model, where });
  if (!row || !constantTimeEqual(row.tokenHash, tokenHash)) throw notFound();
  assertPending(row);
  if (isExpired(row)) throw invitationError("INVITATION_EXPIRED");
  if (!(await isRoleStillGiven(ctx, row))) throw notFound();
  return row;
}

export function assertPending({ status }: StoredInvitation): void {
  if (status === "revoked") throw notFound();
  if (status === "accepted") throw invitationError("INVITATION_ALREADY_ACCEPTED");
}

/** What is said about an invitation whenever it is sent. */
export type Sending = Pick<
  StoredInvitation,
  "email" | "role" | "mailed" | "inviterId" | "inviterName" | "redirectTo" | "expiresAt"
>;

/** When the mail was sent, if there is one. A link for the caller leaves the time of the last mail. */
const mailedNow = ({ mailed }: Partial<Sending>) => (mailed ? { mailedAt: new Date() } : {});

/** An invitation that was just made or renewed, with the secret for its link. */
export interface Issued {
  row: StoredInvitation;
  secret: string;
  isNew: boolean;
}

/** One pending invitation for an address: where there is one already, it gets a new token. */
export async function issue(ctx: AuthContext, sending: Sending): Promise<Issued> {
  for (let tries = 1; ; tries++) {
    const pending = await findPending(ctx, sending.email);
    const renewed = pending && (await renew(ctx, pending, sending));
    if (renewed) return renewed;
    try {
      return await insert(ctx, sending);
    } catch (error) {
      // Adapters have no common word for "not unique": somebody else may have been faster.
      if (tries === TRIES || !(await findPending(ctx, sending.email))) throw error;
    }
  }
}

async function insert(ctx: AuthContext, sending: Sending): Promise<Issued> {
  const { secret, tokenHash } = await createSecret();
  const now = new Date();
  const row = await (await adapterOf(ctx)).create<Record<string, unknown>, StoredInvitation>({
    model,
    data: {
      ...sending,
      ...mailedNow(sending),
      tokenHash,
      status: "pending",
      pendingFor: sending.email,
      createdAt: now,
      updatedAt: now,
    },
  });
  return { row, secret, isNew: true };
}

/** A new token, and with it the end of the old one. Undefined if the invitation is not pending. */
export async function renew(
  ctx: AuthContext,
  row: StoredInvitation,
  sending: Partial<Sending>,
): Promise<Issued | undefined> {
  const { secret, tokenHash } = await createSecret();
  const changes = { ...sending, ...mailedNow(sending), tokenHash, updatedAt: new Date() };
  const isDone = await change(await adapterOf(ctx), row, changes);
  return isDone ? { row: { ...row, ...changes }, secret, isNew: false } : undefined;
}

/** Undefined if the invitation is not pending. */
export async function revoke(ctx: AuthContext, row: StoredInvitation) {
  const changes = { status: "revoked", pendingFor: row.id, updatedAt: new Date() } as const;
  const isDone = await change(await adapterOf(ctx), row, changes);
  return isDone ? { ...row, ...changes } : undefined;
}

/** Whoever changes a pending invitation first has changed it; everybody else is told. */
async function change(
  adapter: DBTransactionAdapter,
  { id }: StoredInvitation,
  update: Record<string, unknown>,
  more: Where[] = [],
): Promise<boolean> {
  const where = [{ field: "id", value: id }, { field: "status", value: "pending" }, ...more];
  return (await adapter.updateMany({ model, where, update })) > 0;
}

/**
 * Accepts an invitation for a user that was just made, by the adapter that has made it. Undefined if
 * it was accepted, revoked or sent anew in the meantime: then it may be for another role.
 */
export async function markAccepted(
  raw: DBTransactionAdapter,
  row: StoredInvitation,
  userId: string,
) {
  const now = new Date();
  const changes = {
    status: "accepted",
    pendingFor: row.id,
    userId,
    acceptedAt: now,
    updatedAt: now,
  } as const;
  const sameToken = [{ field: "tokenHash", value: row.tokenHash }];
  return (await change(raw, row, changes, sameToken)) ? { ...row, ...changes } : undefined;
}

/** Whether it is this user who has accepted the invitation. */
export async function isAcceptedBy(
  raw: DBTransactionAdapter,
  { id }: StoredInvitation,
  userId: string,
): Promise<boolean> {
  const where = [
    { field: "id", value: id },
    { field: "userId", value: userId },
  ];
  return (await raw.count({ model, where })) > 0;
}

/** The part of a tenant's invitations that is asked for, newest first. */
export async function list(
  ctx: AuthContext,
  { status, limit, offset }: { status?: InvitationStatus; limit: number; offset: number },
): Promise<TenantInvitation[]> {
  const rows = await (await adapterOf(ctx)).findMany<StoredInvitation>({
    model,
    where: status ? conditionOf(status) : [],
    sortBy: { field: "createdAt", direction: "desc" },
    limit,
    offset,
  });
  return rows.map(toInvitation);
}

/** How many invitations of the tenant can still be accepted. */
export async function countPending(ctx: AuthContext): Promise<number> {
  return (await adapterOf(ctx)).count({ model, where: conditionOf("pending") });
}

/** Whether the address was sent a mail since then, also for an invitation that is no longer pending. */
export async function wasMailedSince(
  ctx: AuthContext,
  email: string,
  since: Date,
): Promise<boolean> {
  const where: Where[] = [
    { field: "email", value: email },
    { field: "mailedAt", operator: "gt", value: since },
  ];
  return (await (await adapterOf(ctx)).count({ model, where })) > 0;
}

/** How many invitations of the tenant were mailed since then, whatever has become of them. */
export async function countMailedSince(ctx: AuthContext, since: Date): Promise<number> {
  const where: Where[] = [{ field: "mailedAt", operator: "gt", value: since }];
  return (await adapterOf(ctx)).count({ model, where });
}

function conditionOf(status: InvitationStatus): Where[] {
  if (status !== "pending" && status !== "expired") return [{ field: "status", value: status }];
  const operator = status === "pending" ? "gt" : "lte";
  return [
    { field: "status", value: "pending" },
    { field: "expiresAt", operator, value: new Date() },
  ];
}
