import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { constantTimeEqual } from "better-auth/crypto";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { clauses } from "../../core/database";
import { nullIfInvalidId } from "../../core/database-errors";
import { type Isolation, isolationOf, unscopedAdapter } from "../../core/isolation";
import { couldBeId } from "../../core/tenants/tenants";
import type { InvitationStatus, TenantInvitation } from "../management/events";
import { invitationError } from "./errors";
import { mayStillGiveRole } from "./inviter";
import { createSecret } from "./link";
import type { ResolvedInvitationOptions, StoredInvitation } from "./options";

/*
 * The table of invitations. Except for `findAnywhere`, everything runs inside the scope of a
 * tenant, where the isolation shows the rows of that tenant only.
 */

const model = "tenantInvitation";
const adapterOf = ({ adapter }: AuthContext) => getCurrentAdapter(adapter);

export const notFound = () => invitationError("INVITATION_NOT_FOUND");

const isExpired = ({ expiresAt }: StoredInvitation) => new Date(expiresAt) <= new Date();

/** Copies the fields that managers see, one by one, so that a new column cannot leak. */
export function toInvitation(row: StoredInvitation): TenantInvitation {
  const { id, tenantId, email, expiresAt, createdAt, updatedAt } = row;
  const { role = null, inviterId = null, inviterName = null } = row;
  const { userId = null, redirectTo = null, acceptedAt = null } = row;
  const status = row.status === "pending" && isExpired(row) ? "expired" : row.status;
  const inviter = { inviterId, inviterName };
  const dates = { expiresAt, acceptedAt, createdAt, updatedAt };
  return { id, tenantId, email, role, status, ...inviter, userId, redirectTo, ...dates };
}

/** Finds an invitation in any tenant, for callers who send only its id. */
export async function findAnywhere(ctx: AuthContext, id: string): Promise<StoredInvitation | null> {
  if (!couldBeId(ctx, id)) return null;
  const adapter = await unscopedAdapter(isolationOf(ctx) as Isolation);
  const where = clauses({ id });
  const row = await adapter.findOne<StoredInvitation>({ model, where }).catch(nullIfInvalidId);
  return row?.id === id ? row : null;
}

/** Finds the pending invitation of an address, expired or not. */
export async function findPending(ctx: AuthContext, email: string) {
  const where = clauses({ pendingFor: email });
  const row = await (await adapterOf(ctx)).findOne<StoredInvitation>({ model, where });
  // MySQL ignores accents when it compares. So the row that it finds may be of another address.
  return row?.email === email ? row : undefined;
}

/** Finds the invitation that the owner of an address can still accept. */
export async function findOpen(ctx: AuthContext, email: string) {
  const row = await findPending(ctx, email);
  return row && !isExpired(row) && (await mayStillGiveRole(ctx, row)) ? row : undefined;
}

/** Returns the invitation of a link, or throws the reason why it cannot be accepted. */
export async function findByLink(
  ctx: AuthContext,
  { id, tokenHash }: Pick<StoredInvitation, "id" | "tokenHash">,
) {
  const row = await (await adapterOf(ctx)).findOne<StoredInvitation>({
    model,
    where: clauses({ id }),
  });
  if (!row || !constantTimeEqual(row.tokenHash, tokenHash)) throw notFound();
  assertPending(row);
  if (isExpired(row)) throw invitationError("INVITATION_EXPIRED");
  if (!(await mayStillGiveRole(ctx, row))) throw notFound();
  return row;
}

export function assertPending({ status }: StoredInvitation): void {
  if (status === "revoked") throw notFound();
  if (status === "accepted") throw invitationError("INVITATION_ALREADY_ACCEPTED");
}

/** The fields that the inviter sets each time an invitation is sent. */
export type Sending = Pick<
  StoredInvitation,
  "email" | "role" | "mailed" | "inviterId" | "inviterName" | "redirectTo" | "expiresAt"
>;

/** Creates the invitation of an address, or gives a pending invitation a new token. */
export async function issue(ctx: AuthContext, sending: Sending) {
  const pending = await findPending(ctx, sending.email);
  const renewed = pending && (await renew(ctx, pending, sending));
  return renewed ?? insert(ctx, sending);
}

async function insert(ctx: AuthContext, sending: Sending) {
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

/** Replaces the token, which voids the old link. Undefined if the invitation is not pending. */
export async function renew(ctx: AuthContext, old: StoredInvitation, sending: Partial<Sending>) {
  const { secret, tokenHash } = await createSecret();
  const changes = { ...sending, ...mailedNow(sending), tokenHash };
  const row = await change(await adapterOf(ctx), old, changes);
  return row && { row, secret, isNew: false };
}

/** Sets the time of the mail. A link that the caller gets is no mail, and keeps the last time. */
const mailedNow = ({ mailed }: Partial<Sending>) => (mailed ? { mailedAt: new Date() } : {});

/** Revokes an invitation. Returns undefined if it is not pending. */
export const revoke = async (ctx: AuthContext, row: StoredInvitation) =>
  change(await adapterOf(ctx), row, { status: "revoked", pendingFor: row.id });

/**
 * Accepts an invitation, with the adapter that has just created the user. Returns undefined if
 * another request accepted, revoked or renewed the invitation meanwhile. A renewed invitation may
 * be for another role.
 */
export function markAccepted(
  unscoped: DBTransactionAdapter,
  row: StoredInvitation,
  userId: string,
) {
  const end = { status: "accepted", pendingFor: row.id, userId, acceptedAt: new Date() } as const;
  return change(unscoped, row, end, { tokenHash: row.tokenHash });
}

/** Changes an invitation that is still pending, so that only one request can end it. */
async function change(
  adapter: DBTransactionAdapter,
  row: StoredInvitation,
  changes: Partial<StoredInvitation>,
  more: Record<string, string> = {},
) {
  const update = { ...changes, updatedAt: new Date() };
  const where = clauses({ id: row.id, status: "pending", ...more });
  const count = await adapter.updateMany({ model, where, update });
  return count > 0 ? { ...row, ...update } : undefined;
}

type Page = { status?: InvitationStatus; limit?: number; offset?: number };

/** Lists one page of a tenant's invitations, newest first. */
export async function list(ctx: AuthContext, { status, limit = 100, offset = 0 }: Page) {
  const where = status ? conditionOf(status) : [];
  const sortBy = { field: "createdAt", direction: "desc" } as const;
  const call = { model, where, sortBy, limit, offset };
  return (await (await adapterOf(ctx)).findMany<StoredInvitation>(call)).map(toInvitation);
}

function conditionOf(status: InvitationStatus): Where[] {
  if (status !== "pending" && status !== "expired") return clauses({ status });
  const operator = status === "pending" ? "gt" : "lte";
  return [...clauses({ status: "pending" }), { field: "expiresAt", operator, value: new Date() }];
}

const MINUTE_MS = 60_000;

/**
 * Limits mails to an address (one per minute), and the pending invitations of a tenant
 * (`maxPendingInvitations`). A tenant may also send only that many mails per hour. Otherwise a
 * manager could revoke and invite again without end, or use many addresses of one mailbox (`a+1@`,
 * `a+2@`). Call this inside `oneAtATime`.
 */
export async function assertWithinLimits(
  ctx: AuthContext,
  { maxPendingInvitations }: ResolvedInvitationOptions,
  { email, mailed }: Pick<Sending, "email" | "mailed">,
): Promise<void> {
  const adapter = await adapterOf(ctx);
  const countMailed = (period: number, more: Where[] = []) => {
    const since = new Date(Date.now() - period);
    const recently: Where = { field: "mailedAt", operator: "gt", value: since };
    return adapter.count({ model, where: [...more, recently] });
  };
  if (mailed && (await countMailed(MINUTE_MS, clauses({ email }))) > 0) {
    throw invitationError("INVITATION_RECENTLY_SENT");
  }
  if (mailed && (await countMailed(60 * MINUTE_MS)) >= maxPendingInvitations) {
    throw invitationError("INVITATION_LIMIT_REACHED");
  }
  const pending = await findPending(ctx, email);
  if (pending && !isExpired(pending)) return;
  if ((await adapter.count({ model, where: conditionOf("pending") })) >= maxPendingInvitations) {
    throw invitationError("INVITATION_LIMIT_REACHED");
  }
}
