import { queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { SecondaryStorage } from "better-auth/db";
import { type Isolation, unscopedAdapter } from "../isolation";
import { tenantInPrefix } from "../prefix";
import { runInScope, scopeOf } from "../request";
import { findTenantRow } from "../tenants/tenants";
import { readUser } from "./users";

/*
 * Notes which sessions of a tenant are in secondary storage, so that deleting the tenant finds all
 * of them. better-auth keeps a list for each user there, but loses entries if a user signs in
 * several times at once. A storage may not be able to list its keys. So each session of a tenant
 * gets a number when it is created or prolonged, and a note under that number.
 */

/** How many notes are read at a time. */
const LANES = 50;

/** Returns how long sessions last, in seconds. */
const lengthOf = ({ options }: AuthContext) => options.session?.expiresIn || 7 * 24 * 60 * 60;

/**
 * Returns the number of a period, which is as long as a session. Every valid session was noted in
 * the current period or the one before. The numbers of sessions start again in each period.
 */
const periodAt = (time: number, length: number) => Math.floor(time / 1000 / length);

/**
 * Notes a session of a tenant before it is created or prolonged. Call this in the tenant's scope.
 * Returns the key of the note, or undefined if there is none.
 */
export async function noteStoredSession(
  { ctx }: Isolation,
  token: string,
): Promise<string | undefined> {
  const { secondaryStorage: storage } = ctx.options;
  if (!storage?.increment || tenantInPrefix(token) === null) return undefined;
  const length = lengthOf(ctx);
  const period = periodAt(Date.now(), length);
  const number = await storage.increment(`stored-sessions-${period}`, 2 * length);
  const note = `stored-session-${period}-${number}`;
  await storage.set(note, token, 2 * length);
  return note;
}

/** Deletes all sessions that were noted for the tenant of the scope. */
export async function forgetStoredSessions(ctx: AuthContext): Promise<void> {
  const { secondaryStorage: storage } = ctx.options;
  if (!storage?.increment) return;
  const now = periodAt(Date.now(), lengthOf(ctx));
  for (const period of [now - 1, now]) {
    const counter = `stored-sessions-${period}`;
    const count = Number(await storage.get(counter));
    for (let start = 1; start <= count; start += LANES) {
      const size = Math.min(LANES, count - start + 1);
      const notes = Array.from(
        { length: size },
        (_, index) => `stored-session-${period}-${start + index}`,
      );
      await Promise.all(notes.map((note) => forgetNoted(storage, note)));
    }
    if (count) await storage.delete(counter);
  }
}

async function forgetNoted(storage: SecondaryStorage, note: string): Promise<void> {
  const token = await storage.get(note);
  if (token) await storage.delete(String(token));
  await storage.delete(note);
}

/** A session that was just written. */
interface Written {
  tenantId: string | null;
  userId: string;
  token: string;
  note: string | undefined;
}

/**
 * Removes a new session from secondary storage if its user was deleted while it was written.
 * Deleting a tenant removes its sessions before and after the commit. If the user is still there,
 * the deletion has not committed, and removes this session itself after its commit.
 */
export async function removeIfLate(
  isolation: Isolation,
  { tenantId, userId, token, note }: Written,
): Promise<void> {
  const { secondaryStorage: storage } = isolation.ctx.options;
  if (!storage || tenantId === null) return;
  // better-auth may write to the storage after the commit.
  await queueAfterTransactionHook(() =>
    runInScope(scopeOf(tenantId), async () => {
      const adapter = await unscopedAdapter(isolation);
      if (await readUser(adapter, userId)) return;
      await storage.delete(token);
      // The deletion may have read the counter before this note was written.
      if (note) await storage.delete(note);
      await storage.delete(`active-sessions-${userId}`);
      const isTenantGone = !(await findTenantRow(isolation.ctx, "id", tenantId, adapter));
      if (isTenantGone) await forgetStoredSessions(isolation.ctx);
    }),
  );
}
