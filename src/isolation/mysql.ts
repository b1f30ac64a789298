import { BetterAuthError } from "better-auth";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import type { Row } from "./isolation";

/**
 * MySQL does not return the updated row. Adapters read it again, by its id or by the first condition
 * alone, and an email would find another tenant's row. Returns conditions that find the row by its
 * id; null if there is none.
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
const KEYS = "tenantId userId token email identifier accountId slug providerId".split(" ");

/**
 * MySQL does not return the inserted row. With numeric ids, better-auth asks for the last one on any
 * free connection of the pool, and under load that is another caller's row, perhaps a session of
 * another tenant. In a transaction both use one connection, and the returned row is compared.
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
