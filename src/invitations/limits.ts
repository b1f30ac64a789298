import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { currentTransaction } from "../request/scope";
import type { Tenant } from "../tenants/cache";
import { invitationError } from "./errors";
import type { ResolvedInvitationOptions } from "./options";
import {
  countMailedSince,
  countPending,
  findPending,
  isExpired,
  type Sending,
  wasMailedSince,
} from "./store";

/*
 * How much a manager can send: a mail goes to an address of the caller's choice, in the name of the
 * application.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Runs with the tenant's row locked, so that calls at the same time cannot all pass the limits
 * before the first of them is stored. Inside a transaction of the application, that one is used.
 */
export async function oneAtATime<T>(
  ctx: AuthContext,
  { id, status }: Tenant,
  run: () => Promise<T>,
): Promise<T> {
  if (currentTransaction()?.isTransactionActive) return run();
  const runLocked = async () => {
    const where = [
      { field: "id", value: id },
      { field: "status", value: status },
    ];
    // Changes nothing, and locks the row until the commit.
    const adapter = await getCurrentAdapter(ctx.adapter);
    await adapter.updateMany({ model: "tenant", where, update: { status } });
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

/**
 * Refuses a second mail to an address within a minute, also after the invitation was revoked, a mail
 * when as many invitations were mailed within an hour as may be pending, and a pending invitation too
 * many. One mailbox has any number of addresses (`a+1@`, `a+2@`), and revoking makes room for the
 * next one. Call it inside `oneAtATime`.
 */
export async function assertWithinLimits(
  ctx: AuthContext,
  { maxPendingInvitations }: ResolvedInvitationOptions,
  { email, mailed }: Pick<Sending, "email" | "mailed">,
): Promise<void> {
  if (mailed && (await wasMailedSince(ctx, email, new Date(Date.now() - MINUTE_MS)))) {
    throw invitationError("INVITATION_RECENTLY_SENT");
  }
  const anHourAgo = new Date(Date.now() - HOUR_MS);
  if (mailed && (await countMailedSince(ctx, anHourAgo)) >= maxPendingInvitations) {
    throw invitationError("INVITATION_LIMIT_REACHED");
  }
  const pending = await findPending(ctx, email);
  if (pending && !isExpired(pending)) return;
  if ((await countPending(ctx)) >= maxPendingInvitations) {
    throw invitationError("INVITATION_LIMIT_REACHED");
  }
}

/** How many characters of a name are in a mail. */
const NAME_LENGTH = 100;

/** Line breaks and characters that change the direction of the text around them. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu;

/**
 * A name as mails have it, in their headers too. People write their names themselves: one that is a
 * whole message, or a header of its own, must not reach an address of their choice.
 */
export function nameInMail(name: string): string {
  // Cut first, so that nothing else looks at a long text.
  const characters = [...name.slice(0, 4 * NAME_LENGTH)];
  const isLong = name.length > 4 * NAME_LENGTH || characters.length > NAME_LENGTH;
  const kept = isLong ? `${characters.slice(0, NAME_LENGTH - 1).join("")}…` : name;
  return kept.replace(UNPRINTABLE, " ");
}
