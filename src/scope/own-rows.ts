import { BetterAuthError } from "better-auth";
import type { DBAdapter } from "better-auth/types";

/** What nobody else's row has: enough to know one's own by. */
const KEYS = [
  "tenantId",
  "userId",
  "token",
  "email",
  "identifier",
  "accountId",
  "slug",
  "providerId",
];

/**
 * MySQL does not answer an insert with the row. Where the database gives out numeric ids,
 * better-auth asks for the last one, on whichever connection of the pool is free, and under load
 * that is somebody else's: their session, perhaps in another tenant. In a transaction the insert
 * and the question share a connection; and what comes back is looked at.
 */
export function answerOwnRows(adapter: DBAdapter): void {
  const raw = { ...adapter };
  const create = raw.create as (call: Parameters<DBAdapter["create"]>[0]) => Promise<unknown>;
  adapter.create = (async (call) => {
    const row = (await raw.transaction((inner) =>
      // Adapters without transactions hand themselves in.
      inner === adapter ? create(call) : inner.create(call),
    )) as Record<string, unknown> | null;
    const data: Record<string, unknown> = call.data;
    const isOther = KEYS.some((key) => data[key] && row?.[key] && data[key] !== row[key]);
    if (isOther) throw new BetterAuthError(`The database answered another row of ${call.model}`);
    return row;
  }) as DBAdapter["create"];
}
