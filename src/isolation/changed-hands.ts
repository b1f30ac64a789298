import {
  getCurrentAdapter,
  queueAfterTransactionHook,
  runWithTransaction,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { expiringMap, oncePerObject } from "../framework";
import { effectiveScope } from "../request/endpoint";
import { ALL } from "../tenants/cache";
import { deleteByIds, forgetSomeKeys } from "../tenants/delete";
import { type Isolation, instanceKey, isolationOf, type Row, unscopedAdapter } from "./isolation";
import { requireRank } from "./roles";
import { readUser, requireUserInScope } from "./users";

/*
 * Users that change hands: an invitation or an identity provider proves that the address of a user
 * is another person's. What the previous holder has must not be a way in.
 */

/** An address that no mail can reach. */
export const REPLACED = "@replaced.invalid";

/** Columns of better-auth's plugins with the id of a user who can sign in by what is in the row. */
const CREDENTIALS = [
  ["passkey", "userId"],
  ["twoFactor", "userId"],
  ["walletAddress", "userId"],
  ["deviceCode", "userId"],
  // Links that reset a password or delete an account.
  ["verification", "value"],
] as const;

/**
 * Removes what a user of the scope could show as a second factor, and ends the user's sessions. A
 * trusted device is a verification with the user's id; one in a secondary storage cannot be found,
 * and expires.
 */
export async function resetSecondFactor(
  ctx: AuthContext,
  userId: string,
  callerId: string | undefined,
): Promise<void> {
  const { internalAdapter, tables } = ctx;
  const isolation = isolationOf(ctx) as Isolation;
  await runWithTransaction(ctx.adapter, async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    await requireUserInScope(isolation, effectiveScope(), userId, adapter);
    if (callerId) await requireRank(isolation, callerId, userId);
    for (const [model, field] of CREDENTIALS) {
      if (!["passkey", "twoFactor", "verification"].includes(model) || !tables[model]) continue;
      await adapter.deleteMany({ model, where: [{ field, value: userId }] });
    }
    if (tables.user?.fields.twoFactorEnabled) {
      await internalAdapter.updateUser(userId, { twoFactorEnabled: false });
    }
    await internalAdapter.deleteUserSessions(userId);
  });
}

/** Removes every way to sign in as a user. `raw` is the adapter below the isolation. */
export async function removeCredentials(
  ctx: AuthContext,
  raw: DBTransactionAdapter,
  userId: string,
): Promise<void> {
  const { internalAdapter, tables } = ctx;
  await internalAdapter.deleteAccounts(userId);
  await internalAdapter.deleteUserSessions(userId);
  const adapter = await getCurrentAdapter(ctx.adapter);
  for (const [model, field] of CREDENTIALS) {
    if (!tables[model]?.fields[field]) continue;
    await adapter.deleteMany({ model, where: [{ field, value: userId }] });
  }
  const update = {
    // One can sign in with it.
    ...(tables.user?.fields.phoneNumber && { phoneNumber: null, phoneNumberVerified: false }),
    // It belongs to what was deleted above, and would ask for it.
    ...(tables.user?.fields.twoFactorEnabled && { twoFactorEnabled: false }),
  };
  const where = [{ field: "id", value: userId }];
  if (Object.keys(update).length) await raw.updateMany({ model: "user", where, update });
  await queueAfterTransactionHook(async () => {
    knownUsersOf(instanceKey(ctx)).delete(userId);
    // Their plugin reads them outside the transaction, for which a database may have no connection.
    await deleteKeysOf(ctx, userId);
  });
}

type ListKeys = (input: object) => Promise<{ apiKeys: { id: string }[] }>;

/**
 * Deletes a user's API keys, a page at a time. Only their plugin knows which keys belong to users,
 * and which to organizations.
 *
 * Guarded by "deletes the keys of whom it deletes, and of nobody else: %s".
 */
export async function deleteKeysOf(context: AuthContext, userId: string): Promise<void> {
  const plugin = context.options.plugins?.find(({ id }) => id === "api-key");
  const list = plugin?.endpoints?.listApiKeys as ListKeys | undefined;
  if (!list) return;
  const asUser = { ...context, session: { session: {}, user: { id: userId } } };
  const adapter = await getCurrentAdapter(context.adapter);
  const where = [{ field: "referenceId", value: userId }];
  let before: string | undefined;
  for (;;) {
    const ids = (await list({ context: asUser })).apiKeys.map(({ id }) => id);
    // A storage that forgets late lists the same keys again. A storage that lost some lists none
    // until its list is deleted.
    if (ids.join() === before) return;
    before = ids.join();
    await forgetSomeKeys(context, userId, ids);
    // A key in secondary storage only may have an id that the column refuses in a query.
    const rows = await adapter.findMany<{ id: string }>({ model: "apikey", where, limit: ALL });
    const stored = rows.map(({ id }) => id).filter((id) => ids.includes(id));
    await deleteByIds(adapter, { model: "apikey", field: "id" }, stored);
  }
}

/** Users that exist and have not been replaced. */
const knownUsersOf = oncePerObject((_instance: object) => expiringMap<Row>(10_000, 10_000));

/**
 * Whether the user of a session in a cookie has changed hands since, or is gone. The cookie is read
 * without asking the database, which is asked here at most every ten seconds about a user.
 */
export async function hasChangedHands(isolation: Isolation, cached: Row): Promise<boolean> {
  const hasDirectories = isolation.directory !== undefined;
  if (!hasDirectories && cached.emailVerified !== false) return false;
  const users = knownUsersOf(instanceKey(isolation.ctx));
  const id = String(cached.id);
  const known = users.get(id);
  // Another browser may have asked: what it was told is about its own cookie.
  const mayBeOld = (user: Row) => hasDirectories && isFromBefore(cached, user);
  if (known && !mayBeOld(known)) return false;
  const keep = users.startRead();
  const below = await unscopedAdapter(isolation);
  const user = await readUser(below, id);
  if (!user || String(user.email).endsWith(REPLACED)) return true;
  if (mayBeOld(user)) {
    const ofUser = [{ field: "userId", value: id }];
    if (await below.count({ model: "scimUser", where: ofUser })) return true;
  }
  const { email, emailVerified } = user;
  keep(id, { email, emailVerified });
  return false;
}

/** Whether a cookie is older than the proof of the address. A user of a directory keeps its id. */
const isFromBefore = (cached: Row, { email, emailVerified }: Row) =>
  Boolean(emailVerified) && (!cached.emailVerified || cached.email !== email);
