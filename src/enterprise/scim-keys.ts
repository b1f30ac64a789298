import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../isolation/isolation";
import { ALL } from "../tenants/cache";
import { deleteByIds, forgetSomeKeys } from "../tenants/delete";
import { findUser, isDeactivated } from "./scim-rows";

/*
 * API keys of people whom the directory of their tenant has deactivated or deleted.
 */

/** One that is looked up to be verified is none while its owner is barred. */
export async function asKey(
  { where = [] }: { where?: { field: string }[] },
  found: unknown,
  raw: DBTransactionAdapter,
): Promise<unknown> {
  const { referenceId, tenantId: own } = (found ?? {}) as Row;
  if (referenceId === undefined || where[0]?.field !== "key") return found;
  // A key that tenants share has no tenant, but its user has one. An organization is no user.
  const tenantId = own === undefined ? (await findUser(raw, referenceId))?.tenantId : own;
  return tenantId && (await isDeactivated(raw, tenantId, referenceId)) ? null : found;
}

type ListKeys = (input: object) => Promise<{ apiKeys: { id: string }[] }>;

/**
 * Deletes those of a user. Their plugin alone knows which keys are of users, and which are of
 * organizations. It lists as many at a time as the database returns at once.
 *
 * Guarded by "deletes the keys of whom it deletes, and of nobody else: %s".
 */
export async function deleteKeysOf(context: AuthContext, userId: string): Promise<void> {
  const plugin = context.options.plugins?.find(({ id }) => id === "api-key");
  const list = plugin?.endpoints?.listApiKeys as ListKeys | undefined;
  if (!list) return;
  const asUser = { ...context, session: { session: {}, user: { id: userId } } };
  let before: string | undefined;
  for (;;) {
    const ids = (await list({ context: asUser })).apiKeys.map(({ id }) => id);
    // A storage that forgets late shows the same ones again. One that has lost some shows none, until
    // its list is gone.
    if (ids.join() === before) return;
    await forgetSomeKeys(context, userId, ids);
    await deleteRows(context, userId, ids);
    before = ids.join();
  }
}

/** A key that is in a storage only has an id that the column may refuse: we ask for no such row. */
async function deleteRows(context: AuthContext, referenceId: string, ids: string[]) {
  const adapter = await getCurrentAdapter(context.adapter);
  const where = [{ field: "referenceId", value: referenceId }];
  const rows = await adapter.findMany<{ id: string }>({ model: "apikey", where, limit: ALL });
  const stored = rows.map(({ id }) => id).filter((id) => ids.includes(id));
  await deleteByIds(adapter, { model: "apikey", field: "id" }, stored);
}
