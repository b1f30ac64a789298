import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { constantTimeEqual } from "better-auth/crypto";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { clauses } from "../framework";
import { nullIfInvalidId } from "../isolation/database-errors";
import { type Isolation, isolationOf, unscopedAdapter } from "../isolation/isolation";
import { currentTransaction } from "../request/scope";
import { couldBeId, type Tenant } from "../tenants/cache";
import type { InvitationStatus, TenantInvitation } from "../tenants/events";
import { invitationError } from "./errors";
import { mayStillGiveRole } from "./inviter";
import { createSecret } from "./link";
import type { ResolvedInvitationOptions, StoredInvitation } from "./options";

/*
 * The table of invitations. Except for `findAnywhere`, everything runs inside the scope of a tenant,
 * where the isolation shows the rows of that tenant only.
 */

const model = "tenantInvitation";
const adapterOf = ({ adapter }: AuthContext) => getCurrentAdapter(adapter);

export const notFound = () => invitationError("INVITATION_NOT_FOUND");

const isExpired = ({ expiresAt }: StoredInvitation) => new Date(expiresAt) <= new Date();

/** An invitation as managers see it. By name, so that a column that is added later cannot leak. */
export function toInvitation(row: StoredInvitation): TenantInvitation {
  const { id, tenantId, email, expiresAt, createdAt, updatedAt } = row;
  const { role = null, inviterId = null, inviterName = null } = row;
  const { userId = null, redirectTo = null, acceptedAt = null } = row;
  const status = row.status === "pending" && isExpired(row) ? "expired" : row.status;
  const inviter = { inviterId, inviterName };
  const dates = { expiresAt, acceptedAt, createdAt, updatedAt };
  return { id, tenantId, email, role, status, ...inviter, userId, redirectTo, ...dates };
}

/** In any tenant, for callers who have only the id: the row says which tenant they must manage. */
export async function findAnywhere(ctx: AuthContext, id: string): Promise<StoredInvitation | null> {
  if (!couldBeId(ctx, id)) return null;
  const adapter = await unscopedAdapter(isolationOf(ctx) as Isolation);
  const where = clauses({ id });
  const row = await adapter.findOne<StoredInvitation>({ model, where }).catch(nullIfInvalidId);
  return row?.id === id ? row : null;
}

/** The pending invitation of an address, expired or not. */
export async function findPending(ctx: AuthContext, email: string) {
  const where = clauses({ pendingFor: email });
  const row = await (await adapterOf(ctx)).findOne<StoredInvitation>({ model, where });
  // MySQL ignores accents when it compares, and that address is not this one.
  return row?.email === email ? row : undefined;
}

/** The invitation that an address can still accept. */
export async function findOpen(ctx: AuthContext, email: string) {
  const row = await findPending(ctx, email);
  return row && !isExpired(row) && (await mayStillGiveRole(ctx, row)) ? row : undefined;
}

/** The invitation of a link, if it can still be accepted. Otherwise throws the reason. */
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

/** What the inviter decides each time an invitation is sent. */
export type Sending = Pick<
  StoredInvitation,
  "email" | "role" | "mailed" | "inviterId" | "inviterName" | "redirectTo" | "expiresAt"
>;

/** Creates the invitation of an address. If one is pending, that one gets a new token. */
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

/** Replaces the token; the old one is void. Undefined if the invitation is not pending. */
export async function renew(ctx: AuthContext, old: StoredInvitation, sending: Partial<Sending>) {
  const { secret, tokenHash } = await createSecret();
  const changes = { ...sending, ...mailedNow(sending), tokenHash };
  const row = await change(await adapterOf(ctx), old, changes);
  return row && { row, secret, isNew: false };
}

/** A link that the caller gets is not a mail, and leaves the time of the last one. */
const mailedNow = ({ mailed }: Partial<Sending>) => (mailed ? { mailedAt: new Date() } : {});

/** Undefined if the invitation is not pending. */
export const revoke = async (ctx: AuthContext, row: StoredInvitation) =>
  change(await adapterOf(ctx), row, { status: "revoked", pendingFor: row.id });

/**
 * Accepts an invitation, with the adapter that has just created the user. Undefined if another
 * request accepted, revoked or renewed it meanwhile: then it may be for another role.
 */
export function markAccepted(raw: DBTransactionAdapter, row: StoredInvitation, userId: string) {
  const end = { status: "accepted", pendingFor: row.id, userId, acceptedAt: new Date() } as const;
  return change(raw, row, end, { tokenHash: row.tokenHash });
}

/** Changes a pending invitation. Of several requests, one succeeds, and the others get undefined. */
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

/** One page of a tenant's invitations, newest first. */
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
 * Limits what a manager can mail to addresses of their choice, in the name of the application: one
 * mail to an address per minute, even if the invitation was revoked meanwhile; as many mails of a
 * tenant per hour as invitations may be pending; and that many pending invitations. One mailbox has
 * any number of addresses (`a+1@`, `a+2@`), and revoking makes room for the next one. Call it inside
 * `oneAtATime`.
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

/**
 * Runs with the tenant's row locked, so that concurrent calls cannot all pass the limits before the
 * first of them is stored. Inside a transaction of the application, runs in that one.
 */
export async function oneAtATime<T>(
  ctx: AuthContext,
  { id, status }: Tenant,
  run: () => Promise<T>,
): Promise<T> {
  if (currentTransaction()?.isTransactionActive) return run();
  const runLocked = async () => {
    // Changes nothing, and locks the row until the commit.
    const where = clauses({ id, status });
    await (await adapterOf(ctx)).updateMany({ model: "tenant", where, update: { status } });
    return run();
  };
  return inTurn(id, () => runWithTransaction(ctx.adapter, runLocked));
}

const turns = new Map<string, Promise<unknown>>();

/** One after the other in this process, for databases without transactions or row locks. */
async function inTurn<T>(tenantId: string, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(tenantId) ?? Promise.resolve()).then(run, run);
  turns.set(tenantId, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(tenantId) === turn) turns.delete(tenantId);
  }
}
