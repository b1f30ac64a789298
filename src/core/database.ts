import type { DBTransactionAdapter, Where } from "better-auth/types";

/**
 * The methods of a database adapter, except `transaction`.
 *
 * Guarded by "an adapter has no other methods that read or write rows: %s".
 */
export const ADAPTER_METHODS = [
  "create",
  "findOne",
  "findMany",
  "count",
  "update",
  "updateMany",
  "delete",
  "deleteMany",
  "consumeOne",
  "incrementOne",
] as const;

export type AdapterMethod = (typeof ADAPTER_METHODS)[number];

const READS: readonly string[] = ["findOne", "findMany", "count"];

/** The methods that create, change or delete rows. */
export const WRITES = ADAPTER_METHODS.filter((method) => !READS.includes(method));

/** The methods that change existing rows. */
export const CHANGES = ["update", "updateMany", "incrementOne"] as const;

/** A row of an isolated model, or some of its columns. */
export type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

export interface AdapterCall {
  model: string;
  where?: Where[];
  join?: Row;
  data?: Row;
  update?: Row;
  set?: Row;
  /** Reserves a single-use mark once for all tenants together: see `guardReservations`. */
  isSharedByTenants?: boolean;
}

/** Returns the new values that an adapter call writes into existing rows. */
export const changeOf = (method: AdapterMethod, { update, set }: AdapterCall): Row | undefined =>
  CHANGES.some((name) => name === method) ? (update ?? set) : undefined;

/** An adapter call on its way to the database. */
export interface GuardedCall {
  method: AdapterMethod;
  call: AdapterCall;
  /** The isolated model of the call. Undefined for a model that is not isolated. */
  model: string | undefined;
  /** The adapter without isolation; inside a transaction, the transaction's. */
  unscoped: DBTransactionAdapter;
  /** The isolated adapter of the transaction that the call is made in, if any. */
  transaction: DBTransactionAdapter | undefined;
}

/** Runs an adapter call that a guard lets pass, perhaps changed. */
export type NextGuard = (call: AdapterCall) => Promise<unknown>;

/** Checks or changes adapter calls before they are run. */
export interface Guard {
  /** The models, isolated or not, whose calls it checks. Undefined: all. */
  models?: readonly string[];
  /** The methods that it checks. Undefined: all. */
  methods?: readonly AdapterMethod[];
  /** Refuses the call by throwing, or runs it with `next` and returns the result. */
  run(guarded: GuardedCall, next: NextGuard): Promise<unknown>;
}

export type HasOptions = Pick<DBTransactionAdapter, "options">;

/** Returns the kind of database, which adapters call `type` or `provider`. */
export function databaseOf({ options }: HasOptions): string | undefined {
  const { type, provider } = (options ?? {}) as { type?: string; provider?: string };
  return type ?? provider;
}

export const isMySQL = (adapter: HasOptions) => databaseOf(adapter) === "mysql";

/**
 * Yields all rows of a table in pages. Each page starts after the last id, so concurrent inserts
 * and deletions skip no other row; a new row may be left out. By `tenantId`, yields at least one
 * row of each tenant, but not all.
 */
export async function* pagesOf<Stored extends { id?: string; tenantId?: string | null }>(
  adapter: Pick<DBTransactionAdapter, "findMany">,
  model: string,
  size: number,
  select?: string[],
  { by = "id", after }: { by?: "id" | "tenantId"; after?: string | undefined } = {},
): AsyncGenerator<Stored[]> {
  let last: string | null | undefined = after;
  for (;;) {
    const rows: Stored[] = await adapter.findMany<Stored>({
      model,
      where: last === undefined ? [] : [{ field: by, operator: "gt", value: last }],
      sortBy: { field: by, direction: "asc" },
      limit: size,
      ...(select && { select }),
    });
    if (rows.length) yield rows;
    if (rows.length < size) return;
    last = rows.at(-1)?.[by];
  }
}

/** Returns a condition for each column. A list matches any of its values. */
export const clauses = (columns: Record<string, string | boolean | string[]>): Where[] =>
  Object.entries(columns).map(([field, value]) => ({
    field,
    value,
    operator: Array.isArray(value) ? "in" : "eq",
  }));
