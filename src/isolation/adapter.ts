import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { after, replaceMethods } from "../framework";
import { admitUser, capExpiry } from "../policy/admission";
import { effectiveScope, visitor } from "../request/endpoint";
import { type Scope, scopeOf } from "../request/scope";
import { PLATFORM, refuse } from "../schema";
import { explainDatabaseError, refuseEmailTakenElsewhere } from "./database-errors";
import {
  type AdapterCall,
  type Isolation,
  isInside,
  isMySQL,
  isolateTransaction,
  isolationOf,
  METHODS,
  needsListHint,
  type Row,
  setIsolation,
  tenantClause,
} from "./isolation";
import { pinpoint } from "./mysql";
import { isImpersonator, isSessionValidHere, scopeOfSession } from "./sessions";
import { heldState, isState } from "./single-use";
import { withUniqueValues } from "./unique-values";
import { isHiddenUser, rememberUser, requireUserInScope } from "./users";

type TableCall = { model: string; where?: Where[] | undefined; join?: object | undefined };
type Narrowed<Call> = { call: Call; scope?: Scope; model?: string | undefined };
type FindOne = Parameters<DBAdapter["findOne"]>[0];
type Methods = Omit<DBTransactionAdapter, "id" | "options">;

/** The adapter as it is now, whatever replaces its methods later. */
export function rawAdapter(adapter: DBAdapter): DBAdapter {
  type Method = ((...call: never[]) => unknown) | undefined;
  const names = [...METHODS, "transaction"] as const;
  const methods = names.map((name) => [name, (adapter[name] as Method)?.bind(adapter)]);
  return { __proto__: adapter, ...Object.fromEntries(methods) };
}

/**
 * Isolates the adapter: from here on it reads, changes, creates and deletes rows of isolated models
 * in the scope of the running request only (R3). It is changed in place, because plugins may keep it
 * from their `init`, and better-auth's check of the database schema is registered for this object.
 */
export function isolateAdapter(adapter: DBAdapter, isolation: Isolation): void {
  const { raw } = isolation;
  if (isolationOf(adapter)) {
    refuse(
      "two instances of better-auth share one database adapter object. Create one for each: database: (options) => adapter(options)",
    );
  }
  const transaction = <R>(run: (inner: DBTransactionAdapter) => Promise<R>) =>
    raw.transaction((given) => {
      // Adapters without transactions pass themselves.
      if (given === adapter || given === raw) return run(adapter);
      const inner = withUniqueValues(isolation, given);
      const isolated = isolateTransaction(inner, isolation);
      // A nested one is part of it: better-auth's own would bypass isolation.
      const nested = (runNested: typeof run) => runNested(isolated);
      Object.assign(isolated, guarded(inner, isolation, isolated), { transaction: nested });
      return run(isolated);
    });
  const methods = setIsolation({ ...guarded(raw, isolation), transaction }, isolation);
  if (!replaceMethods(adapter, methods)) {
    refuse(
      "the methods of this database adapter cannot be replaced, so it cannot be isolated. Write: database: (options) => ({ ...adapter(options) })",
    );
  }
}

/** The isolated methods, which every call reaches through the guards. */
function guarded(
  raw: DBTransactionAdapter,
  isolation: Isolation,
  transaction?: DBTransactionAdapter,
): Methods {
  const guardedMethod = (method: string, run: (call: AdapterCall) => Promise<unknown>) => {
    const runFrom = (start: number, call: AdapterCall): Promise<unknown> => {
      const { guards, isolatedModel } = isolation;
      const about = { method, call, model: isolatedModel(call.model), raw, transaction };
      for (let index = start; index < guards.length; index++) {
        const running = guards[index]?.(about, (changed) => runFrom(index + 1, changed));
        if (running) return running;
      }
      return run(call);
    };
    return (call: AdapterCall) => runFrom(0, call);
  };
  const methods = Object.entries(isolatedMethods(raw, isolation));
  const entries = methods.map(([name, run]) => [name, guardedMethod(name, run as never)]);
  return Object.fromEntries(entries);
}

function isolatedMethods(raw: DBTransactionAdapter, isolation: Isolation): Methods {
  const { options } = isolation;
  const isolatedModel = (name: string) => isolation.isolatedModel(name);

  /** Runs a call about rows of the scope only. Every call comes through here. */
  function narrow<Call extends TableCall, T>(
    call: Call,
    run: (narrowed: Narrowed<Call>) => Promise<T>,
    scope = effectiveScope(),
  ): Promise<T> {
    const model = isolatedModel(call.model);
    if (!model) {
      const joinsIsolated = Object.keys(call.join ?? {}).some(isolatedModel);
      return run(joinsIsolated ? { call, scope } : { call });
    }
    // Last, and joined by AND: adapters that apply conditions from left to right apply it to the
    // outcome of every OR before it, the others to the whole group of them.
    const given = call.where ?? [];
    const where = [...given, ...tenantClause(scope, needsListHint(raw, given))];
    return run({ call: { ...call, where }, scope, model });
  }

  /** Joined rows are fetched by their key alone, so they are checked here. */
  function checkJoined<T>(row: T, scope?: Scope, model?: string, join: object = {}): T {
    if (!scope || !row) return row;
    const checked = row as Row;
    if (model === "user") rememberUser(checked);
    for (const name of Object.keys(join)) {
      const joined = isolatedModel(name);
      if (!joined) continue;
      for (const key of [name, `${name}s`, joined, `${joined}s`]) dropForeign(checked, key, scope);
      const user = joined === "user" ? (checked[name] ?? checked[joined]) : undefined;
      if (user) rememberUser(user as Row);
    }
    return row;
  }

  /** A session by its token: inside the scope, and only while its tenant exists and is active. */
  async function findSession<T>(input: FindOne): Promise<T | null> {
    const where = [...input.where, ...tenantClause(scopeOfSession(input.where[0]?.value))];
    const session = await raw.findOne<T & Row>({ ...input, where });
    const isValid = session && isSessionValidHere(isolation, session, raw);
    if (!session || !(isValid instanceof Promise ? await isValid : isValid)) return null;
    return checkJoined(session, scopeOf(session.tenantId ?? null), "session", input.join);
  }

  /**
   * Sessions by their tokens, as a browser with several has them, count like one by its token. Without
   * their users, better-auth reads them to delete them: one that does not count has to be found.
   */
  async function validSessions<T>(
    rows: T[],
    { where, select, join }: Parameters<DBAdapter["findMany"]>[0],
  ) {
    const scope = effectiveScope();
    const isByToken = !select && join && where?.some(({ field }) => field === "token");
    const valid: T[] = [];
    for (const row of rows) {
      const isValid = !isByToken || (await isSessionValidHere(isolation, row as Row, raw));
      if (isValid) valid.push(checkJoined(row, scope, "session", join));
    }
    return valid;
  }

  /** R6: see `heldState`. */
  async function consumeState<T>(model: string, rows: T[]): Promise<T[]> {
    const [row] = rows as Row[];
    if (!row || !isState(row.value, await heldState.get())) return rows;
    const where = [{ field: "id", value: String(row.id) }];
    return (await raw.consumeOne({ model, where })) ? rows : [];
  }

  /** Values that are unique in the whole table may be taken where this scope cannot see it. */
  async function write<T>(model: string, scope: Scope, data: Row, run: () => Promise<T>) {
    if (options.keepEmailGloballyUnique && model === "user" && data.email) {
      await refuseEmailTakenElsewhere(isolation, raw, scope, String(data.email));
    }
    try {
      return await run();
    } catch (error) {
      throw explainDatabaseError(isolation.ctx, error, model);
    }
  }

  /** A row never changes its id or tenant, and no session lasts longer than the policy allows. */
  async function allowedChange<T extends Row | undefined>(data: T, scope?: Scope, model = "") {
    if (!scope || !data) return data;
    await requireUserInScope(isolation, scope, data.userId, raw);
    const { tenantId: _, id: __, ...rest } = data;
    if (model !== "session") return rest as T;
    return { ...rest, ...(await capExpiry(isolation.ctx, scope, data, raw)) } as T;
  }

  return {
    create: <T extends Row, R>(input: Parameters<typeof raw.create<T, R>>[0]) =>
      narrow(input, async ({ scope, model }) => {
        if (!model || !scope) return raw.create<T, R>(input);
        const owner = requireUserInScope(isolation, scope, input.data.userId, raw);
        const tenantId = owner instanceof Promise ? await owner : owner;
        const data: Row = { ...input.data, tenantId: tenantId ?? PLATFORM };
        const isAdmitted = model !== "user" || (tenantId === null && !options.platformPolicy);
        const admission = !isAdmitted && (await admitUser(isolation, tenantId, data, raw));
        const create = () => raw.create<T, R>({ ...input, data: data as T });
        if (!admission) return checkJoined(await write(model, scope, data, create), scope, model);
        const kept = await admission.makeRoom?.(raw);
        const createOrKeep = async () =>
          (kept && (await raw.update<R>(asChange(input.model, kept, data)))) || create();
        const row = await write(model, scope, data, createOrKeep);
        await admission.accept?.(row as Row, raw);
        return checkJoined(row, scope, model);
      }),

    findOne: <T>(input: FindOne) => {
      if (isTokenLookup(input, isolatedModel)) return findSession<T>(input);
      if (input.model === "user" && isImpersonator(idIn(input.where))) return raw.findOne<T>(input);
      return narrow(input, ({ call, scope, model }) =>
        raw.findOne<T>(call).then((row) => {
          const isHidden = model === "user" && isHiddenUser(isolation.ctx, input.where, row as Row);
          return after(isHidden, (isHidden) =>
            isHidden ? null : checkJoined(row, scope, model, input.join),
          );
        }),
      );
    },

    findMany: <T>(input: Parameters<DBAdapter["findMany"]>[0]) =>
      narrow(input, async ({ call, scope, model }) => {
        const rows = await raw.findMany<T>(call);
        if (!scope) return rows;
        if (model === "verification" && heldState.get()) return consumeState(input.model, rows);
        if (model === "session") return validSessions(rows, input);
        return rows.map((row) => checkJoined(row, scope, model, input.join));
      }),

    count: (input) => narrow(input, ({ call }) => raw.count(call)),

    update: <T>(input: Parameters<DBAdapter["update"]>[0]) => {
      const update = async ({ call, scope, model }: Narrowed<typeof input>) => {
        const data = await allowedChange(input.update, scope, model);
        if (!model || !scope) return raw.update<T>({ ...call, update: data });
        // Without a condition of the caller's, the tenant alone would pick any row.
        if (input.where.length === 0) return null;
        const where = isMySQL(raw)
          ? await pinpoint(raw, input.model, call.where, tenantClause(scope))
          : call.where;
        if (!where) return null;
        const row = await write(model, scope, data, () =>
          raw.update<T & Row>({ ...call, where, update: data }),
        );
        const isOurs = row && (row.tenantId === undefined || isInside(scope, row));
        return isOurs ? checkJoined(row, scope, model) : null;
      };
      return narrow(input, update, visitorScope(input));
    },

    updateMany: (input) =>
      narrow(input, async ({ call, scope, model }) =>
        raw.updateMany({ ...call, update: await allowedChange(input.update, scope, model) }),
      ),

    delete: (input) =>
      narrow(input, async ({ call, model }) => {
        if (!model || input.where.length > 0) await raw.delete(call);
      }),

    deleteMany: (input) => narrow(input, ({ call }) => raw.deleteMany(call)),

    consumeOne: <T>(input: Parameters<DBAdapter["consumeOne"]>[0]) =>
      narrow(input, async ({ call, scope, model }) =>
        checkJoined(await raw.consumeOne<T>(call), scope, model),
      ),

    incrementOne: <T>(input: Parameters<DBAdapter["incrementOne"]>[0]) =>
      narrow(input, async ({ call, scope, model }) => {
        const set = await allowedChange(input.set, scope, model);
        return checkJoined(await raw.incrementOne<T>({ ...call, set }), scope, model);
      }),
  };
}

/** The values of a new user, for one that is kept, with its id and age. */
function asChange(model: string, id: string, { id: _, createdAt: __, ...update }: Row) {
  return { model, where: [{ field: "id", value: id }], update };
}

function dropForeign(row: Row, key: string, scope: Scope) {
  const value = row[key];
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) row[key] = value.filter((item: Row) => isInside(scope, item));
  else if (!isInside(scope, value as Row)) row[key] = null;
}

/** An operator's own session stays on the platform, where better-auth refreshes it. */
function visitorScope({ where }: { where: Where[] }): Scope {
  const scope = effectiveScope();
  const { token } = (scope.access === "visits" && visitor.get()) || {};
  const isOwn = token && where.some(({ field, value }) => field === "token" && value === token);
  return isOwn ? scopeOf(null) : scope;
}

const idIn = ([clause, ...rest]: Where[]): unknown =>
  clause?.field === "id" && !rest.length ? clause.value : undefined;

function isTokenLookup(
  { model, where, select }: FindOne,
  isolatedModel: Isolation["isolatedModel"],
): boolean {
  const [clause, ...rest] = where;
  if (clause?.field !== "token" || (clause.operator ?? "eq") !== "eq") return false;
  return !rest.length && !select && isolatedModel(model) === "session";
}
