import { BetterAuthError } from "better-auth";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import type { Row } from "../database";

/**
 * Returns conditions that find a row by its id; null if there is no row. MySQL does not return the
 * updated row. Adapters read it again by its id or by the first condition alone, and an email alone
 * would find another tenant's row.
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

/** Columns that are compared to check that the returned row is the inserted one. */
const KEYS = "tenantId userId token email identifier accountId slug providerId".split(" ");

/**
 * Makes sure that `create` returns the row that it has inserted. MySQL does not return inserted
 * rows. With numeric ids, better-auth asks any free connection for the last row, and under load
 * that is another caller's row, perhaps a session of another tenant. In a transaction, both
 * statements use one connection. The returned row is compared as well.
 */
export function verifyInsertedRow(adapter: DBAdapter): void {
  const create = adapter.create.bind(adapter) as (call: {
    model: string;
    data: Row;
  }) => Promise<Row>;
  const transaction = adapter.transaction.bind(adapter);
  adapter.create = (async (call) => {
    const row: Row | null = await transaction((inner) =>
      // Adapters without transactions pass themselves.
      inner === adapter ? create(call) : inner.create(call),
    );
    const data: Row = call.data;
    // A value whose field has a transform is an object here: see `asTransformed`.
    const isOther = (key: string) =>
      data[key] && typeof data[key] !== "object" && row?.[key] && data[key] !== row[key];
    if (KEYS.some(isOther)) {
      throw new BetterAuthError(
        `The database returned a different row of ${call.model} than the one just inserted`,
      );
    }
    return row;
  }) as DBAdapter["create"];
}
