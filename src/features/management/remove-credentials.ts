import {
  getCurrentAdapter,
  queueAfterTransactionHook,
  runWithTransaction,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { currentScope } from "../../core/current-scope";
import { requireUserInScope } from "../../core/isolate/users";
import { type Isolation, isolationOf } from "../../core/isolation";
import { ALL } from "../../core/tenants/tenants";
import { deleteByIds, despiteDeadlocks, forgetSomeKeys } from "./delete";
import { requireRank } from "./roles";

/*
 * Removes credentials from users whose email turns out to belong to another person, as an
 * invitation or an identity provider proves. The previous holder must not keep a way in.
 */

/** The domain of the address that a replaced user gets. No mail can reach it. */
export const REPLACED = "@replaced.invalid";

/** Models of better-auth's plugins whose rows are credentials, with the column of the user's id. */
const CREDENTIALS = [
  ["passkey", "userId"],
  ["twoFactor", "userId"],
  ["walletAddress", "userId"],
  ["deviceCode", "userId"],
  // Verifications of links that reset a password or delete an account.
  ["verification", "value"],
] as const;

/**
 * Removes the second factors and passkeys of a user of the scope, and ends the user's sessions.
 * Also removes trusted devices, which are verifications with the user's id. Trusted devices in
 * secondary storage cannot be found, and expire.
 */
export async function resetSecondFactor(
  ctx: AuthContext,
  userId: string,
  callerId: string | undefined,
): Promise<void> {
  const { internalAdapter, tables } = ctx;
  const isolation = isolationOf(ctx) as Isolation;
  const reset = async () => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    await requireUserInScope(isolation, currentScope(), userId, adapter);
    if (callerId) await requireRank(isolation, callerId, userId);
    // Comes first: a session that has ended can no longer create credentials.
    await internalAdapter.deleteUserSessions(userId);
    for (const [model, field] of CREDENTIALS) {
      if (!["passkey", "twoFactor", "verification"].includes(model) || !tables[model]) continue;
      await adapter.deleteMany({ model, where: [{ field, value: userId }] });
    }
    if (tables.user?.fields.twoFactorEnabled) {
      await internalAdapter.updateUser(userId, { twoFactorEnabled: false });
    }
  };
  await despiteDeadlocks(ctx, () => runWithTransaction(ctx.adapter, reset));
}

/** Removes every way to sign in as a user. `unscoped` is the adapter without isolation. */
export async function removeCredentials(
  ctx: AuthContext,
  unscoped: DBTransactionAdapter,
  userId: string,
): Promise<void> {
  const { internalAdapter } = ctx;
  // Comes first: a session that has ended can no longer create credentials.
  await internalAdapter.deleteUserSessions(userId);
  await internalAdapter.deleteAccounts(userId);
  await removeOtherCredentials(ctx, unscoped, userId);
}

/** Removes the ways to sign in as a user that are neither sessions nor accounts. */
export async function removeOtherCredentials(
  ctx: AuthContext,
  unscoped: DBTransactionAdapter,
  userId: string,
): Promise<void> {
  const { tables } = ctx;
  const adapter = await getCurrentAdapter(ctx.adapter);
  for (const [model, field] of CREDENTIALS) {
    if (!tables[model]?.fields[field]) continue;
    await adapter.deleteMany({ model, where: [{ field, value: userId }] });
  }
  const update = {
    // A phone number is removed too, because users can sign in with it.
    ...(tables.user?.fields.phoneNumber && { phoneNumber: null, phoneNumberVerified: false }),
    // Otherwise, better-auth would ask for the second factor that was deleted above.
    ...(tables.user?.fields.twoFactorEnabled && { twoFactorEnabled: false }),
  };
  const where = [{ field: "id", value: userId }];
  if (Object.keys(update).length) await unscoped.updateMany({ model: "user", where, update });
  // After the commit: the api-key plugin reads keys outside the transaction, and the database may
  // have no second connection for that.
  await queueAfterTransactionHook(() => deleteKeysOf(ctx, userId));
}

type ListKeys = (input: object) => Promise<{ apiKeys: { id: string }[] }>;

/**
 * Deletes a user's API keys, one page at a time. Asks the api-key plugin for the keys, because only
 * that plugin knows which keys belong to users and which to organizations.
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
    // Stops when a page repeats: a slow storage may list deleted keys again. Does not stop at a
    // first empty page: a storage that lost keys may list none until its list is deleted.
    if (ids.join() === before) return;
    before = ids.join();
    await forgetSomeKeys(context, userId, ids);
    // Queries by owner: a key that is only in secondary storage may have an id that the id column
    // does not accept.
    const rows = await adapter.findMany<{ id: string }>({ model: "apikey", where, limit: ALL });
    const stored = rows.map(({ id }) => id).filter((id) => ids.includes(id));
    await deleteByIds(adapter, { model: "apikey", field: "id" }, stored);
  }
}
