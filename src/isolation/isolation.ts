import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import type { Hooks } from "../framework";
import type { ResolvedOptions } from "../options";
import { currentTransaction, type Scope, type SessionRow } from "../request/scope";
import { PLATFORM } from "../schema";
import type { UniqueFields } from "./unique-values";

/** Of a database adapter, besides `transaction`. */
export const METHODS = [
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

/** A row of an isolated model. */
export type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

/** What isolates the data of one instance. */
export interface Isolation {
  ctx: AuthContext;
  /** The options of `tenantAuth()`. */
  options: ResolvedOptions;
  /** The database adapter without isolation, outside of every transaction: see `unscopedAdapter`. */
  raw: DBAdapter;
  /** Below that: the values as they are in the database. */
  stored: DBAdapter;
  /** Fields whose values are unique per tenant (R15), by model. */
  uniqueFields: UniqueFields;
  /** The isolated model behind a model or table name; undefined for every other table. */
  isolatedModel(name: string): string | undefined;
  /** Every adapter call passes these, first to last, before it is run. */
  guards: Guard[];
  identityProviders?: IdentityProviders | undefined;
  directory?: Directory | undefined;
}

/** What a part that few applications have (enterprise, integrations) adds to the core. */
export interface Part extends Pick<Isolation, "identityProviders" | "directory"> {
  hooks: Partial<Hooks>;
  guards: Guard[];
  /** Called at the end of startup. */
  finish?: (() => void) | undefined;
}

export interface AdapterCall {
  model: string;
  where?: Where[];
  join?: Row;
  data?: Row;
  update?: Row;
  set?: Row;
}

/** An adapter call on its way to the database. */
export interface GuardedCall {
  method: string;
  call: AdapterCall;
  /** The isolated model that the call is about, if it is about one. */
  model: string | undefined;
  /** The adapter without isolation; inside a transaction, the transaction's. */
  raw: DBTransactionAdapter;
  /** The isolated adapter of the transaction that the call is made in, if any. */
  transaction: DBTransactionAdapter | undefined;
}

/** Checks or changes an adapter call, and runs it with `next`. Undefined lets it pass unchanged. */
export type Guard = (
  guarded: GuardedCall,
  next: (call: AdapterCall) => Promise<unknown>,
) => Promise<unknown> | undefined;

/** The identity providers of `sso()`. */
interface IdentityProviders {
  /** Providers that users can sign in with at a tenant. */
  offered(tenantId: string): Promise<{ id: string }[]>;
  /** The ids of these, and of the providers that the application configures for all tenants. */
  usable(tenantId: string): Promise<Set<string>>;
  /** Whether the application configures providers for all tenants. */
  areShared(): boolean;
  /** Whether a single-use mark with this value is about a provider of the application. */
  isSharedMark(value: unknown): boolean;
  /** Encrypts their secrets with the newest of the framework's secrets. */
  rotateSecrets(): Promise<Rotated>;
}

/** How many rows there were of each kind when secrets were encrypted again. */
export interface Rotated {
  rotated: number;
  upToDate: number;
  unreadable: number;
}

/** A tenant's directory, by `scim()`. */
export interface Directory {
  /** Whether it has deactivated a user. Queries the database each time. */
  isBarred(tenantId: string, userId: string, adapter?: DBTransactionAdapter): Promise<boolean>;
  /** Refuses a new session of a deactivated user. */
  admitSession(tenantId: string, session: Row, adapter: DBTransactionAdapter): Promise<void>;
  /** Whether a session's users are still active. Cached for ten seconds. */
  acceptsSession(session: SessionRow, adapter?: DBTransactionAdapter): Promise<boolean>;
}

/** On the session that an API key stands for: it cannot be continued as a session. */
export const OF_KEY = Symbol.for("better-auth-tenant:session-of-key");

/** On the adapter and the context, whose copies keep it. All copies of this package share the name. */
const ISOLATION = Symbol.for("better-auth-tenant:isolation");

type Isolated = { [ISOLATION]?: Isolation };

/** By an adapter, or by a context. */
export const isolationOf = (holder: object): Isolation | undefined =>
  (holder as { adapter?: Isolated }).adapter?.[ISOLATION] ?? (holder as Isolated)[ISOLATION];

/** The options of `tenantAuth()`. */
export const tenantAuthOptions = (ctx: AuthContext): ResolvedOptions =>
  (isolationOf(ctx) as Isolation).options;

export const setIsolation = <A extends object>(holder: A, isolation: Isolation) =>
  Object.assign(holder, { [ISOLATION]: isolation });

/** The key of caches that belong to an instance. */
export const instanceKey = (context: AuthContext): object =>
  isolationOf(context) ?? context.adapter;

/** On the isolated adapter of a transaction: the one without isolation. */
const UNSCOPED = Symbol.for("better-auth-tenant:unscoped");

export function isolateTransaction(inner: DBTransactionAdapter, isolation: Isolation) {
  const isolated = setIsolation<DBTransactionAdapter>(Object.create(inner), isolation);
  return Object.assign(isolated, { [UNSCOPED]: inner });
}

/**
 * The adapter without isolation. Inside a transaction that is the transaction's: the database may
 * have no second connection.
 */
export async function unscopedAdapter({ ctx, raw }: Isolation): Promise<DBTransactionAdapter> {
  const current = await getCurrentAdapter(ctx.adapter);
  return (current as { [UNSCOPED]?: DBTransactionAdapter })[UNSCOPED] ?? raw;
}

/**
 * Whether a query that is made now, through the given adapter if there is one, sees what only a
 * transaction sees: it may be outdated or rolled back, so it is not cached for others.
 */
export const isOfTransaction = (isolation: Isolation | undefined, given?: DBTransactionAdapter) =>
  currentTransaction()?.isTransactionActive === true ||
  (given !== undefined && given !== isolation?.raw);

type HasOptions = Pick<DBTransactionAdapter, "options">;

/** Adapters call this `type` or `provider`. */
export function databaseOf({ options }: HasOptions): string | undefined {
  const { type, provider } = (options ?? {}) as { type?: string; provider?: string };
  return type ?? provider;
}

export const isMySQL = (adapter: HasOptions) => databaseOf(adapter) === "mysql";

/**
 * Without statistics, SQLite may pick the index of the tenant for the rows of one user, and go
 * through all rows of the tenant. Written as `IN (x, x)`, the tenant is the worse choice.
 */
export function needsListHint(adapter: HasOptions, where: Where[]): boolean {
  return databaseOf(adapter) === "sqlite" && where.some(({ field }) => SELECTIVE.includes(field));
}

/** Columns with an index of their own in tables that have one for the tenant. */
const SELECTIVE = ["userId", "accountId", "identifier"];

/** The condition that keeps a query inside the scope. */
export function tenantClause({ tenantId, access }: Scope, asList = false): Where[] {
  if (access === "all") return [];
  const value = tenantId ?? PLATFORM;
  const condition = asList
    ? { operator: "in" as const, value: [value, value] }
    : { operator: "eq" as const, value };
  return [{ field: "tenantId", connector: "AND", ...condition }];
}

/** Whether a row is inside the scope. A row without its tenant column is not. */
export const isInside = ({ tenantId, access }: Scope, row: Row): boolean =>
  access === "all" || row.tenantId === tenantId;
