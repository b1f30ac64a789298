import type { AuthContext } from "better-auth";
import type { DBFieldAttribute } from "better-auth/db";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import type { Guard } from "./database";
import type { Extension } from "./extension";
import type { ResolvedCoreOptions } from "./options";
import { currentTransaction } from "./request";

/** Finds the database transaction of an instance that the running code is in. */
export interface Transactions {
  /** The isolated adapter of the open transaction, if there is one. */
  find(): DBTransactionAdapter | undefined;

  /**
   * Runs the callback of a transaction. `inside` is the adapter of the transaction, `outside` the
   * adapter that works without one. Code that outlives the callback may still call the isolated
   * adapter. By then the connection may belong to another request, so these calls go to `outside`.
   */
  run<R>(
    inside: DBTransactionAdapter,
    outside: DBTransactionAdapter,
    isolate: (whileOpen: DBTransactionAdapter) => DBTransactionAdapter,
    callback: (isolated: DBTransactionAdapter) => Promise<R>,
  ): Promise<R>;
}

/** The fields of a model that are unique per tenant, by field name and by column name. */
export type UniqueFieldsOfModel = Map<string, { name: string; attributes: DBFieldAttribute }>;

/** `UniqueFieldsOfModel` by model. Only models with unique fields are in it. */
export type UniqueFields = Map<string, UniqueFieldsOfModel>;

/** What isolation needs to know about one instance. */
export interface Isolation {
  ctx: AuthContext;
  /** The options of `tenantAuth()`. */
  options: ResolvedCoreOptions;
  /** The database adapter without isolation and outside of transactions: see `unscopedAdapter`. */
  unscoped: DBAdapter;
  /** The adapter below `unscoped`, which also sees the tenant prefix of unique values. */
  database: DBAdapter;
  transactions: Transactions;
  /** Fields whose values are unique per tenant (R15), by model. */
  uniqueFields: UniqueFields;
  /** The isolated models: each of their rows belongs to a tenant or to the platform. */
  models: readonly string[];
  /** The isolated model behind a model or table name; undefined for every other table. */
  isolatedModel(name: string): string | undefined;
  /** The paths of management endpoints: see `management-calls.ts`. */
  managementPaths: ReadonlySet<string>;
  /** Calls of the isolated adapter pass those that check them, first to last. */
  guards: Guard[];
  /** The features, in the order in which they are asked. */
  extensions: readonly Extension[];
}

/**
 * The property that holds the isolation of an adapter or context, and of their copies. All copies
 * of this package share this symbol.
 */
const ISOLATION = Symbol.for("better-auth-tenant:isolation");

type Isolated = { [ISOLATION]?: Isolation };

/** Returns the isolation of an adapter or a context. */
export const isolationOf = (holder: object): Isolation | undefined =>
  (holder as { adapter?: Isolated }).adapter?.[ISOLATION] ?? (holder as Isolated)[ISOLATION];

/** The options of `tenantAuth()`. */
export const coreOptions = (ctx: AuthContext): ResolvedCoreOptions =>
  (isolationOf(ctx) as Isolation).options;

export const setIsolation = <A extends object>(holder: A, isolation: Isolation) =>
  Object.assign(holder, { [ISOLATION]: isolation });

/** Returns the object under which caches of an instance are kept. */
export const instanceKey = (context: AuthContext): object =>
  isolationOf(context) ?? context.adapter;

/** The property of a transaction's isolated adapter that holds the adapter without isolation. */
const UNSCOPED = Symbol.for("better-auth-tenant:unscoped");

export function isolateTransaction(inner: DBTransactionAdapter, isolation: Isolation) {
  const isolated = setIsolation<DBTransactionAdapter>(Object.create(inner), isolation);
  return Object.assign(isolated, { [UNSCOPED]: inner });
}

/**
 * Returns the adapter without isolation. Inside a transaction, returns the transaction's, because
 * the database may have no second connection.
 */
export async function unscopedAdapter({
  transactions,
  unscoped,
}: Isolation): Promise<DBTransactionAdapter> {
  const current = transactions.find() as { [UNSCOPED]?: DBTransactionAdapter } | undefined;
  return current?.[UNSCOPED] ?? unscoped;
}

/**
 * Returns whether a query may see uncommitted rows. `given` is the adapter of the query, if it is
 * not `unscopedAdapter`. These rows may be outdated or rolled back, so they are not cached for
 * other requests.
 */
export const seesUncommittedRows = (
  isolation: Isolation | undefined,
  given?: DBTransactionAdapter,
) =>
  currentTransaction()?.isTransactionActive === true ||
  isolation?.transactions.find() !== undefined ||
  (given !== undefined && given !== isolation?.unscoped);

/** Returns the given adapter if it is a transaction's, else `unscopedAdapter`. */
export const unscopedAdapterFor = async (isolation: Isolation, given?: DBTransactionAdapter) =>
  given !== undefined && given !== isolation.unscoped ? given : unscopedAdapter(isolation);
