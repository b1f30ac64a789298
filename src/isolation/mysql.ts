import { BetterAuthError } from "better-auth";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import type { Row } from "./isolation";

/**
 * MySQL does not answer an update with the row. The adapters read it again, by its id or by the
 * first condition alone, and an e-mail address would find somebody else's row then. Returns
 * conditions that find the row by its id; null when there is none.
 */
export async function pinpoint(
  raw: DBTransactionAdapter,
  model: string,
  where: Where[],
  inside: Where[],
): Promise<Where[] | null> {
  const unique = where.some(({ field }) => field === "id" || field === "token");
  if (unique) return where;
  const row = await raw.findOne<Row>({ model, where });
  return row ? [{ field: "id", value: String(row.id) }, ...inside] : null;
}

/** Columns that are compared to tell whether the returned row is the inserted one. */
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
 * and the question share a connection; and the row that comes back is compared.
 */
export function verifyInsertedRow(adapter: DBAdapter): void {
  const create = adapter.create.bind(adapter) as (
    call: Parameters<DBAdapter["create"]>[0],
  ) => Promise<unknown>;
  const transaction = adapter.transaction.bind(adapter);
  adapter.create = (async (call) => {
    const row = (await transaction((inner) =>
      // Adapters without transactions hand themselves in.
      inner === adapter ? create(call) : inner.create(call),
    )) as Record<string, unknown> | null;
    const data: Record<string, unknown> = call.data;
    const isOther = KEYS.some((key) => data[key] && row?.[key] && data[key] !== row[key]);
    if (isOther)
      throw new BetterAuthError(
        `The database returned a different row of ${call.model} than the one just inserted`,
      );
    return row;
  }) as DBAdapter["create"];
}
