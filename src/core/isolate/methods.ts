import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { currentScope } from "../current-scope";
import { type ADAPTER_METHODS, isMySQL, type Row } from "../database";
import type { Isolation } from "../isolation";
import { currentRequest, type Scope, scopeOf } from "../request";
import { PLATFORM } from "../schema";
import { askAboutUser, capExpiry } from "./admission";
import { explainDatabaseError, refuseEmailTakenElsewhere } from "./explain-errors";
import { isInside, needsListHint, tenantClause } from "./in-scope";
import { pinpoint } from "./mysql";
import { isImpersonator, openSession, scopeOfTokenLookup } from "./sessions";
import { isState } from "./single-use";
import { isHiddenUser, rememberUser, requireUserInScope } from "./users";

/*
 * The methods of an isolated adapter (R3). Each reads, changes, creates or deletes rows of isolated
 * models in the scope of the running request only, except that the sessions and users of operators
 * are found from a tenant (`sessions.ts`). Calls about other models pass; only rows of isolated
 * models that they join are limited to the scope.
 */

export type Methods = Pick<DBTransactionAdapter, (typeof ADAPTER_METHODS)[number]>;

/**
 * What each method works on. `unscoped` is the adapter without isolation: the instance's, or that
 * of a transaction.
 */
interface Database {
  isolation: Isolation;
  unscoped: DBTransactionAdapter;
}

type Input<Name extends keyof Methods> = Parameters<DBAdapter[Name]>[0];

type TableCall = { model: string; where?: Where[] | undefined; join?: object | undefined };

/**
 * A call with the condition of the scope. `scope` is undefined if the call is about no isolated
 * model.
 */
type Narrowed<Call> = { call: Call; scope?: Scope; model?: string | undefined };

export function isolatedMethods(unscoped: DBTransactionAdapter, isolation: Isolation): Methods {
  const database: Database = { isolation, unscoped };
  return {
    create: (input) => create(database, input),
    findOne: (input) => findOne(database, input),
    findMany: (input) => findMany(database, input),
    count: (input) => narrow(database, input, ({ call }) => unscoped.count(call)),
    update: (input) => update(database, input),
    updateMany: (input) => updateMany(database, input),
    delete: (input) => deleteOne(database, input),
    deleteMany: (input) => narrow(database, input, ({ call }) => unscoped.deleteMany(call)),
    consumeOne: (input) => consumeOne(database, input),
    incrementOne: (input) => incrementOne(database, input),
  };
}

function create<T extends Row, R>(
  database: Database,
  input: Parameters<typeof database.unscoped.create<T, R>>[0],
): Promise<R> {
  const { isolation, unscoped } = database;
  return narrow(database, input, async ({ scope, model }) => {
    if (!model || !scope) return unscoped.create<T, R>(input);
    const tenantId = await requireUserInScope(isolation, scope, input.data.userId, unscoped);
    const data: Row = { ...input.data, tenantId: tenantId ?? PLATFORM };
    const insert = () => unscoped.create<T, R>({ ...input, data: data as T });
    const row =
      model === "user"
        ? await createUser(database, input.model, scope, tenantId, data, insert)
        : await write(database, model, scope, data, insert);
    rememberUsers(database, row, model);
    return row;
  });
}

/** R13: creates a user whom the extensions admit, and runs the steps of their admission. */
async function createUser<R>(
  database: Database,
  model: string,
  scope: Scope,
  tenantId: string | null,
  data: Row,
  insert: () => Promise<R>,
): Promise<R> {
  const { isolation, unscoped } = database;
  const admission = await askAboutUser(isolation, tenantId, data, unscoped);
  const keptUserId = await admission?.replaceUnverifiedUser?.(unscoped);
  const insertOrKeep = async () =>
    (keptUserId && (await unscoped.update<R>(asChange(model, keptUserId, data)))) || insert();
  const isInvited = admission?.accept !== undefined;
  const row = await write(database, "user", scope, data, insertOrKeep, isInvited);
  await admission?.accept?.(row as Row, unscoped);
  return row;
}

/**
 * Returns an update that turns an existing user into the new one, with the old id and `createdAt`.
 */
function asChange(model: string, id: string, { id: _, createdAt: __, ...update }: Row) {
  return { model, where: [{ field: "id", value: id }], update };
}

function findOne<T>(database: Database, input: Input<"findOne">): Promise<T | null> {
  const { isolation, unscoped } = database;
  if (isTokenLookup(isolation, input)) return findSession<T>(database, input);
  if (input.model === "user" && isImpersonator(idIn(input.where)))
    return unscoped.findOne<T>(input);
  return narrow(database, input, async ({ call, scope, model }) => {
    const row = await unscoped.findOne<T>(call);
    if (model === "user" && isHiddenUser(input.where, row as Row)) return null;
    const found = dropForeignJoins(database, row, scope, input.join);
    rememberUsers(database, found, model, input.join);
    return found;
  });
}

/** Returns whether the user of a session was read with another generation than the session. */
function hasOtherGeneration({ userId, generation }: Row): boolean {
  const user = currentRequest().users.get(String(userId));
  return user?.generation !== undefined && user.generation !== (generation ?? null);
}

/** Finds a session of the scope by its token, while its tenant exists and is active. */
async function findSession<T>(database: Database, input: Input<"findOne">): Promise<T | null> {
  const { isolation, unscoped } = database;
  const where = [...input.where, ...tenantClause(scopeOfTokenLookup(input.where[0]?.value))];
  const read = () => unscoped.findOne<T & Row>({ ...input, where });
  let session = await read();
  rememberUsers(database, session, "session", input.join);
  // better-auth reads the session before its user. Another request of the same session may have
  // ended all others in between, which gives both a new generation.
  if (session && hasOtherGeneration(session)) session = await read();
  if (!session || !(await openSession(isolation, session, { adapter: unscoped }))) return null;
  // Not the scope of the request: an operator's session and user are on the platform.
  return dropForeignJoins(database, session, scopeOf(session.tenantId ?? null), input.join);
}

function findMany<T>(database: Database, input: Input<"findMany">): Promise<T[]> {
  const { unscoped } = database;
  return narrow(database, input, async ({ call, scope, model }) => {
    const rows = await unscoped.findMany<T>(call);
    if (!scope) return rows;
    const { heldState } = currentRequest();
    if (model === "verification" && heldState) {
      return consumeState(database, input.model, rows, heldState);
    }
    if (model === "session") return validSessions(database, rows, input);
    for (const row of rows) {
      dropForeignJoins(database, row, scope, input.join);
      rememberUsers(database, row, model, input.join);
    }
    return rows;
  });
}

/**
 * R6: deletes the row that better-auth reads, if it is the OAuth state of the running callback. A
 * replayed callback finds nothing. See `RequestRecord.heldState`.
 */
async function consumeState<T>(
  { unscoped }: Database,
  model: string,
  rows: T[],
  heldState: Promise<string | undefined>,
): Promise<T[]> {
  const [row] = rows as Row[];
  if (!row || !isState(row.value, await heldState)) return rows;
  const where = [{ field: "id", value: String(row.id) }];
  return (await unscoped.consumeOne({ model, where })) ? rows : [];
}

/**
 * Leaves out invalid sessions if better-auth looks up the sessions of a browser by their tokens.
 * better-auth reads sessions without their users only to delete or list them, and must find all of
 * these.
 *
 * Guarded by "better-auth reads sessions without their users only to delete or list them".
 */
async function validSessions<T>(
  database: Database,
  rows: T[],
  { where, select, join }: Input<"findMany">,
): Promise<T[]> {
  const { isolation, unscoped } = database;
  const scope = currentScope();
  const isByToken = !select && join && where?.some(({ field }) => field === "token");
  const valid: T[] = [];
  for (const row of rows) {
    rememberUsers(database, row, "session", join);
    const isValid = !isByToken || (await openSession(isolation, row as Row, { adapter: unscoped }));
    if (isValid) valid.push(dropForeignJoins(database, row, scope, join));
  }
  return valid;
}

function update<T>(database: Database, input: Input<"update">): Promise<T | null> {
  const { unscoped } = database;
  const run = async ({ call, scope, model }: Narrowed<typeof input>) => {
    const data = await checkChange(database, input.update, scope, model);
    if (!model || !scope) return unscoped.update<T>({ ...call, update: data });
    // With the tenant as the only condition, the database would pick any of its rows.
    if (input.where.length === 0) return null;
    const where = isMySQL(unscoped)
      ? await pinpoint(unscoped, input.model, call.where, tenantClause(scope))
      : call.where;
    if (!where) return null;
    const row = await write(database, model, scope, data, () =>
      unscoped.update<T & Row>({ ...call, where, update: data }),
    );
    // A row may lack the column, which the condition has already compared.
    const isInScope = row && (row.tenantId === undefined || isInside(scope, row));
    if (!isInScope) return null;
    rememberUsers(database, row, model);
    return row;
  };
  return narrow(database, input, run, scopeOfUpdate(input));
}

const updateMany = (database: Database, input: Input<"updateMany">) =>
  narrow(database, input, async ({ call, scope, model }) => {
    const data = await checkChange(database, input.update, scope, model);
    return database.unscoped.updateMany({ ...call, update: data });
  });

const deleteOne = (database: Database, input: Input<"delete">) =>
  narrow(database, input, async ({ call, model }) => {
    // With the tenant as the only condition, the database would pick any of its rows.
    if (!model || input.where.length > 0) await database.unscoped.delete(call);
  });

const consumeOne = <T>(database: Database, input: Input<"consumeOne">) =>
  narrow(database, input, async ({ call, model }) => {
    const row = await database.unscoped.consumeOne<T>(call);
    rememberUsers(database, row, model);
    return row;
  });

const incrementOne = <T>(database: Database, input: Input<"incrementOne">) =>
  narrow(database, input, async ({ call, scope, model }) => {
    const set = await checkChange(database, input.set, scope, model);
    const row = await database.unscoped.incrementOne<T>({ ...call, set });
    rememberUsers(database, row, model);
    return row;
  });

/**
 * Runs a call with the condition of the scope. `create` uses it for the scope and the model alone.
 * Not used by the two lookups of `findOne` that go by other rules, nor where a row that was just
 * found in the scope is written or consumed by its id.
 */
async function narrow<Call extends TableCall, T>(
  { isolation, unscoped }: Database,
  call: Call,
  run: (narrowed: Narrowed<Call>) => Promise<T>,
  scope = currentScope(),
): Promise<T> {
  const model = isolation.isolatedModel(call.model);
  if (!model) {
    const joined = Object.keys(call.join ?? {});
    const joinsIsolated = joined.some((name) => isolation.isolatedModel(name));
    return run(joinsIsolated ? { call, scope } : { call });
  }
  // The tenant's condition is last and joined by AND. Adapters that apply conditions from left to
  // right apply it to the outcome of every OR before it. Other adapters apply it to the whole group
  // of ORs.
  const conditions = call.where ?? [];
  const where = [...conditions, ...tenantClause(scope, needsListHint(unscoped, conditions))];
  return run({ call: { ...call, where }, scope, model });
}

/** Removes joined rows of other scopes: the database finds joined rows by their key alone. */
function dropForeignJoins<T>(
  { isolation }: Database,
  row: T,
  scope: Scope | undefined,
  join: object = {},
): T {
  if (!scope || !row) return row;
  for (const name of Object.keys(join)) {
    const joined = isolation.isolatedModel(name);
    if (!joined) continue;
    for (const key of [name, `${name}s`, joined, `${joined}s`]) dropForeign(row as Row, key, scope);
  }
  return row;
}

function dropForeign(row: Row, key: string, scope: Scope) {
  const value = row[key];
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) row[key] = value.filter((item: Row) => isInside(scope, item));
  else if (!isInside(scope, value as Row)) row[key] = null;
}

/** Remembers the users that a call has read, for later checks: the row itself, or a joined user. */
function rememberUsers(
  { isolation }: Database,
  found: unknown,
  model: string | undefined,
  join: object = {},
): void {
  if (!found) return;
  const row = found as Row;
  if (model === "user") rememberUser(row);
  const name = Object.keys(join).find((name) => isolation.isolatedModel(name) === "user");
  const user = name && (row[name] ?? row.user);
  if (user) rememberUser(user as Row);
}

/**
 * Runs a write, and explains its errors: a unique value may be taken by a row outside the scope.
 */
async function write<T>(
  { isolation, unscoped }: Database,
  model: string,
  scope: Scope,
  data: Row,
  run: () => Promise<T>,
  isInvited = false,
): Promise<T> {
  if (isolation.options.keepEmailGloballyUnique && model === "user" && data.email) {
    await refuseEmailTakenElsewhere(isolation, unscoped, scope, String(data.email));
  }
  try {
    return await run();
  } catch (error) {
    throw explainDatabaseError(isolation.ctx, error, model, isInvited);
  }
}

/**
 * R8: refuses a change that gives a row to a user outside the scope. Returns the part of the change
 * that is allowed: a row never changes its id or tenant, requests do not choose the generation of a
 * user, and no session lasts longer than the extensions allow.
 */
async function checkChange<T extends Row | undefined>(
  { isolation, unscoped }: Database,
  data: T,
  scope?: Scope,
  model = "",
): Promise<T> {
  if (!scope || !data) return data;
  await requireUserInScope(isolation, scope, data.userId, unscoped);
  const { tenantId: _, id: __, sessionGeneration: ___, ...rest } = data;
  if (model !== "session") return rest as T;
  return { ...rest, ...(await capExpiry(isolation, scope.tenantId, data, unscoped)) } as T;
}

/**
 * Returns the scope of an update. During a visit, the operator's own session is on the platform.
 */
function scopeOfUpdate({ where }: { where: Where[] }): Scope {
  const scope = currentScope();
  const { token } = (scope.access === "visits" && currentRequest().visitor) || {};
  const isVisitors =
    token && where.some(({ field, value }) => field === "token" && value === token);
  return isVisitors ? scopeOf(null) : scope;
}

const idIn = ([clause, ...rest]: Where[]): unknown =>
  clause?.field === "id" && !rest.length ? clause.value : undefined;

/**
 * Returns whether a call looks up a session by its token alone, as better-auth does for every
 * request.
 *
 * Guarded by "better-auth looks up the session of a request by its token alone, without a selection".
 */
function isTokenLookup(
  { isolatedModel }: Isolation,
  { model, where, select }: Input<"findOne">,
): boolean {
  const [clause, ...rest] = where;
  if (clause?.field !== "token" || (clause.operator ?? "eq") !== "eq") return false;
  return !rest.length && !select && isolatedModel(model) === "session";
}
