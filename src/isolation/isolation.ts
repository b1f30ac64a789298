import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { tenantError } from "../errors";
import { parseJSON } from "../framework";
import type { ResolvedOptions } from "../options";
import type { Endpoint } from "../request/endpoint";
import type { SessionRow } from "../request/scope";
import { currentTransaction, notes, type Scope } from "../request/scope";
import { PLATFORM } from "../schema";
import { nullIfInvalidId } from "./database-errors";

/** A row as the isolation sees it. */
export type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

/** What the isolation of an instance is made of, and what it asks of the rest of the plugin. */
export interface Isolation {
  ctx: AuthContext;
  /** The options of `tenantAuth()`. */
  options: ResolvedOptions;
  /** The database adapter as it was, past every transaction: ask `belowBorder` for the right one. */
  raw: DBTransactionAdapter;
  /** The confined model behind a model or table name; undefined for every other table. */
  isolatedModel(name: string): string | undefined;
  /** Whether the tenant exists. Remembered for ten seconds. */
  tenantExists(tenantId: string, adapter?: DBTransactionAdapter): Promise<boolean>;
  /** Whether the tenant of a session accepts it (R10): see `tenants/find.ts`. */
  acceptsSession(session: SessionRow, adapter?: DBTransactionAdapter): Promise<boolean>;
  /** Called with the e-mail that a user of the scope is about to get. */
  beforeEmail(adapter: DBTransactionAdapter, scope: Scope, email: string): Promise<void>;
  /** What to say of a row that the database refuses. */
  onRefused(error: unknown): Promise<unknown>;
  /** Whether somebody may have this id: some columns answer anything else with an error. */
  isPossibleId(id: string): boolean;
  /** What the policy of a tenant decides, and who keeps its last administrator. */
  policy: PolicyEnforcement;
  /** What there is to ask where tenants have identity providers of their own. */
  identityProviders?: IdentityProviders;
  /** Whether the tenant's directory lets somebody sign in no more. Asks the database each time. */
  isBarred?: (tenantId: string, userId: string, adapter?: DBTransactionAdapter) => Promise<boolean>;
}

interface IdentityProviders {
  /** Those that people can sign in with at a tenant. */
  offered(tenantId: string): Promise<{ id: string }[]>;
  /** The ids of these, and of those that the application has for everybody. */
  usable(tenantId: string): Promise<Set<string>>;
  /** Whether what is marked as good once, with this value, is of such a provider, and no tenant's. */
  isSharedMark(value: unknown): boolean;
  /** Encrypts their secrets anew with the newest of the framework's secrets. */
  rotateSecrets(): Promise<Rotated>;
}

/** How many rows there were of each kind when secrets were encrypted anew. */
export interface Rotated {
  rotated: number;
  upToDate: number;
  unreadable: number;
}

/** The policies of an instance's tenants, as the isolation asks for them. */
export interface PolicyEnforcement {
  /** Refuses what is not allowed before anything is done, where that can be told. */
  refuseEarly(endpoint: Endpoint): Promise<void>;
  /** R13, R14: asked before a row is made in a tenant. May change the row. */
  admitRow(
    model: string,
    scope: Scope,
    row: Row,
    adapter: DBTransactionAdapter,
  ): Promise<Admission | undefined>;
  /** By when a session of the scope has to end, if that is before the end that it is given. */
  capExpiry(
    scope: Scope,
    session: object,
    adapter?: DBTransactionAdapter,
  ): Promise<{ expiresAt?: Date } | undefined>;
  /**
   * Runs a call of the adapter that has to be looked at first; undefined for every other. `raw` is
   * the adapter below the isolation. Inside of a transaction, that is the transaction's, and everything
   * has to go through either of both.
   */
  guard(
    method: string,
    call: never,
    run: AdapterMethod,
    raw: DBTransactionAdapter,
    transaction: DBTransactionAdapter | undefined,
  ): Promise<unknown> | undefined;
}

export type AdapterMethod = (call: never) => Promise<unknown>;

/** On the session that an API key stands for: a key is no session that could be continued. */
export const OF_KEY = Symbol.for("better-auth-tenant:session-of-key");

/** What lets somebody in where the policy says `"invited"`. */
export interface Admission {
  /** What the user gets besides: a role, or that the address is verified. */
  data?: Row;
  /**
   * Called before the user is created: makes the address free, if a user has it who never verified
   * it. Returns the id of one that has to be kept, and becomes the new user.
   */
  makeRoom?(raw: DBTransactionAdapter): Promise<string | undefined>;
  /** Called with the new user, in the same transaction, with the adapter below the isolation. */
  accept?(user: Row, raw: DBTransactionAdapter): Promise<void>;
}

/** On the adapter and on the context, whose copies carry it along; one name for all our copies. */
const BORDER = Symbol.for("better-auth-tenant:isolation");

type Bordered = { [BORDER]?: Isolation };

/** By an adapter, a storage, or a context: there somebody may have put an adapter around ours. */
export const isolationOf = (holder: object): Isolation | undefined =>
  (holder as { adapter?: Bordered }).adapter?.[BORDER] ?? (holder as Bordered)[BORDER];

/** What is remembered for an instance is kept by this. */
export const instanceKey = (context: AuthContext): object =>
  isolationOf(context)?.raw ?? context.adapter;

export const setIsolation = <A extends object>(holder: A, isolation: Isolation) =>
  Object.assign(holder, { [BORDER]: isolation });

/** On each method of ours, itself: what is put around it may carry its marks. */
const OURS = Symbol.for("better-auth-tenant:ours");

export function markOurs<M extends object>(methods: M): M {
  for (const method of Object.values(methods)) method[OURS] = method;
  return methods;
}

/** Whether a method is one of ours. One that is not there lets nobody past. */
export const isOurs = (method: object | undefined) =>
  !method || (method as { [OURS]?: unknown })[OURS] === method;

const METHODS =
  "create findOne findMany count update updateMany delete deleteMany consumeOne incrementOne transaction".split(
    " ",
  ) as (keyof DBAdapter & string)[];

/** The adapter as it is now, whatever is put in the place of its methods later. */
export function rawAdapter(adapter: DBAdapter): DBAdapter {
  const methods = METHODS.map((name) => [name, (adapter[name] as AdapterMethod)?.bind(adapter)]);
  return { __proto__: adapter, ...Object.fromEntries(methods) };
}

/** Others may have copied it, or put something over a method of ours. */
export const isIsolated = (adapter: DBAdapter) =>
  isolationOf(adapter) !== undefined &&
  METHODS.every((name) => isOurs(adapter[name] as AdapterMethod | undefined));

/**
 * Instances that are made from one adapter object share its isolation: the newest is in charge, and
 * what was confined or looked at before it stays so.
 */
export function shareIsolation(adapter: object, isolation: Isolation): void {
  const before = isolationOf(adapter) as Isolation;
  const { isolatedModel, policy } = isolation;
  isolation.isolatedModel = (name) => isolatedModel(name) ?? before.isolatedModel(name);
  isolation.policy = {
    ...policy,
    guard: (...call) => policy.guard(...call) ?? before.policy.guard(...call),
  };
  setIsolation(adapter, isolation);
}

/** On the adapter of a transaction: the one below the isolation. */
const BELOW = Symbol.for("better-auth-tenant:below");

/** Puts the isolation around the adapter of a transaction. */
export function isolateTransaction(inner: DBTransactionAdapter, isolation: Isolation) {
  const above = setIsolation<DBTransactionAdapter>(Object.create(inner), isolation);
  return Object.assign(above, { [BELOW]: inner });
}

/**
 * The adapter below the isolation: inside of a transaction that is the transaction's, because the
 * database may have no second connection to ask.
 */
export async function unscopedAdapter({ ctx, raw }: Isolation): Promise<DBTransactionAdapter> {
  const current = await getCurrentAdapter(ctx.adapter);
  return (current as { [BELOW]?: DBTransactionAdapter })[BELOW] ?? raw;
}

/** Whether a stored verification is the OAuth state that the callback came back with. */
export const isState = (value: unknown, state: string | undefined): boolean =>
  state !== undefined && Object(parseJSON(value)).oauthState === state;

type HasOptions = Pick<DBTransactionAdapter, "options">;

/** Adapters have two words for it. */
export function databaseOf({ options }: HasOptions): string | undefined {
  const { type, provider } = (options ?? {}) as { type?: string; provider?: string };
  return type ?? provider;
}

export const isMySQL = (adapter: HasOptions) => databaseOf(adapter) === "mysql";

/**
 * To SQLite without statistics one index is as good as another, so for the rows of one user it may
 * go through all rows of the tenant. Written as `IN (x, x)`, the tenant is the worse choice.
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

/** Whether a row is inside the scope. One that does not show its tenant is not. */
export function isInside({ tenantId, access }: Scope, row: Row): boolean {
  return access === "all" || row.tenantId === tenantId;
}

export function rememberUser(user: Row): void {
  if (user.id === undefined || user.tenantId === undefined) return;
  const { id, tenantId, email, emailVerified } = user;
  // Behind the others: the one that was read last is the one that the request is about.
  notes().knownUsers.delete(String(id));
  notes().knownUsers.set(String(id), { tenantId, email, emailVerified });
}

/**
 * R8: a session or an account is only ever given to a user of the scope, whichever plugin asks for
 * it. Returns the tenant that the row belongs to: the user's.
 */
export async function requireUserInScope(
  isolation: Isolation,
  adapter: DBTransactionAdapter,
  scope: Scope,
  userId: unknown,
): Promise<string | null> {
  if (userId === undefined || userId === null) return scope.tenantId;
  const known = notes().knownUsers.get(String(userId))?.tenantId;
  if (known !== undefined && (scope.access === "all" || known === scope.tenantId)) return known;
  const where = [{ field: "id", value: String(userId) }, ...tenantClause(scope)];
  const isId = isolation.isPossibleId(String(userId));
  const user = isId
    ? await adapter.findOne<Row>({ model: "user", where }).catch(nullIfInvalidId)
    : null;
  if (!user) throw tenantError("USER_NOT_IN_TENANT");
  rememberUser(user);
  return user.tenantId ?? null;
}

/**
 * Whether what is read now, through the given adapter if there is one, is what a transaction sees:
 * nobody else may be told. It may be from before somebody's change, or be taken back.
 */
export const isOfTransaction = (isolation: Isolation | undefined, given?: DBTransactionAdapter) =>
  currentTransaction()?.isTransactionActive === true ||
  (given !== undefined && given !== isolation?.raw);
