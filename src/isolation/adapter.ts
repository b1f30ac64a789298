import { isAPIError } from "better-auth/api";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { isHiddenUser } from "../policy/inviting";
import { effectiveScope } from "../request/endpoint";
import { getTenantId, notes, type Scope, scopeOf } from "../request/scope";
import { PLATFORM } from "../schema";
import {
  type AdapterMethod,
  type Isolation,
  isInside,
  isIsolated,
  isMySQL,
  isolateTransaction,
  isolationOf,
  isState,
  markOurs,
  needsListHint,
  type Row,
  rememberUser,
  requireUserInScope,
  setIsolation,
  shareIsolation,
  tenantClause,
} from "./isolation";
import { pinpoint } from "./mysql";
import { isImpersonator, isSessionValidHere, scopeOfSession } from "./sessions";

type TableCall = { model: string; where?: Where[] | undefined; join?: object | undefined };
type Narrowed<Call> = { call: Call; scope?: Scope; model?: string | undefined };
type FindOne = Parameters<DBAdapter["findOne"]>[0];

/**
 * The isolation: from here on the adapter reads, changes, creates and deletes rows of the confined
 * models in the scope of the running request only (R3, R4). The adapter is changed in place, not
 * wrapped, for two reasons: plugins whose `init` ran before ours may hold on to it, and
 * better-auth's check of the database schema is registered for this very object. Answers whether
 * that was possible.
 */
export function isolateAdapter(
  adapter: DBAdapter,
  isolation: Isolation & { raw: DBAdapter },
): boolean {
  if (isIsolated(adapter)) {
    shareIsolation(adapter, isolation);
    return true;
  }
  const { raw } = isolation;
  const current = () => isolationOf(adapter) ?? isolation;
  const methods = {
    ...guarded(raw, current),
    transaction: <R>(run: (inner: DBTransactionAdapter) => Promise<R>) =>
      raw.transaction((inner) => {
        // Adapters without transactions hand themselves in, and that is the isolated one already.
        if (inner === adapter || inner === raw) return run(adapter);
        const isolated = isolateTransaction(inner, current());
        // One inside another is a part of it: better-auth's own would bypass isolation.
        const transaction = (nested: typeof run) => nested(isolated);
        Object.assign(isolated, guarded(inner, current, isolated), { transaction });
        return run(isolated);
      }),
  };
  try {
    Object.assign(setIsolation(adapter, isolation), markOurs(methods));
  } catch {
    // The answer says it.
  }
  return isIsolated(adapter);
}

type Methods = Omit<DBTransactionAdapter, "id" | "options">;

/** The methods, with somebody who may look at a call first: see `tenants/enforce.ts`. */
function guarded(
  raw: DBTransactionAdapter,
  current: () => Isolation,
  transaction?: DBTransactionAdapter,
): Methods {
  const methods = Object.entries(isolatedMethods(raw, current));
  const entries = methods.map(([name, run]: [string, AdapterMethod]) => [
    name,
    (call: object) =>
      current().policy.guard(name, call as never, run, raw, transaction) ?? run(call as never),
  ]);
  return Object.fromEntries(entries);
}

function isolatedMethods(raw: DBTransactionAdapter, getBorder: () => Isolation): Methods {
  /**
   * Runs a call as it may go out: about rows of the scope only. Everything comes through here, and
   * the scope is mostly known already: then nobody waits for it.
   */
  function narrow<Call extends TableCall, T>(
    call: Call,
    run: (narrowed: Narrowed<Call>) => Promise<T>,
  ): Promise<T> {
    const isolation = getBorder();
    const model = isolation.isolatedModel(call.model);
    const joinsConfined = Object.keys(call.join ?? {}).some(isolation.isolatedModel);
    if (!model && !joinsConfined) return run({ call });
    const runIn = (scope: Scope) => {
      if (!model) return run({ call, scope });
      // Last, and joined by AND: adapters that go through conditions from left to right apply it
      // to the outcome of every OR before it, the others to the whole group of them.
      const given = call.where ?? [];
      const where = [...given, ...tenantClause(scope, needsListHint(raw, given))];
      return run({ call: { ...call, where }, scope, model });
    };
    return runIn(effectiveScope());
  }

  /** What may come in: joined rows are fetched by their key alone, so they are looked at here. */
  function admit<T>(
    { join, model }: { join?: object | undefined; model?: string | undefined },
    scope: Scope | undefined,
    row: T,
  ): T {
    if (!scope || !row) return row;
    const admitted = row as Row;
    if (model === "user") rememberUser(admitted);
    for (const name of Object.keys(join ?? {})) {
      const joined = getBorder().isolatedModel(name);
      if (!joined) continue;
      for (const key of [name, `${name}s`, joined, `${joined}s`]) admitJoined(admitted, key, scope);
      const user = joined === "user" ? (admitted[name] ?? admitted[joined]) : undefined;
      if (user) rememberUser(user as Row);
    }
    return row;
  }

  /** A session by its token: inside the scope, and only while its tenant exists and is active. */
  async function findSession<T>(input: FindOne): Promise<T | null> {
    const home = scopeOfSession(input.where[0]?.value);
    const where = [...input.where, ...tenantClause(home)];
    const session = await raw.findOne<T & Row>({ ...input, where });
    if (!session || !(await isSessionValidHere(getBorder(), session, raw))) return null;
    const own = scopeOf(session.tenantId ?? null);
    return admit({ join: input.join, model: "session" }, own, session);
  }

  /**
   * R6: a state is consumed when it is read, so that a replayed callback finds nothing: better-auth
   * reads it first and deletes it later. Only a state of this request is, and only after the
   * browser has shown the cookie that belongs to it.
   */
  async function consumeState<T>(model: string, rows: T[]): Promise<T[]> {
    const [row] = rows as Row[];
    if (!row || !isState(row.value, await notes().heldState)) return rows;
    const where = [{ field: "id", value: String(row.id) }];
    return (await raw.consumeOne({ model, where })) ? rows : [];
  }

  /** Values that are unique in the whole table may be taken where nobody here can see it. */
  async function write<T>(model: string, scope: Scope, data: Row, run: () => Promise<T>) {
    const isolation = getBorder();
    if (model === "user" && typeof data.email === "string") {
      await isolation.beforeEmail(raw, scope, data.email);
    }
    return run().catch(async (error) => {
      throw await isolation.onRefused(error);
    });
  }

  /** A row of another table that refers to a user who was deleted meanwhile, with its tenant. */
  async function blameDeletion(error: unknown): Promise<never> {
    const explained = getTenantId() === null ? error : await getBorder().onRefused(error);
    throw isAPIError(explained) && explained.statusCode === 403 ? explained : error;
  }

  /** A row never changes its id or tenant, and no session lasts longer than the policy says. */
  async function allowedChange<T extends Row | undefined>(data: T, scope?: Scope, model = "") {
    if (!scope || !data) return data;
    await requireUserInScope(getBorder(), raw, scope, data.userId);
    const { tenantId: _, id: __, ...rest } = data;
    if (model !== "session") return rest as T;
    return { ...rest, ...(await getBorder().policy.capExpiry(scope, data, raw)) } as T;
  }

  return {
    create: <T extends Row, R>(input: Parameters<typeof raw.create<T, R>>[0]) =>
      narrow(input, async ({ scope, model }) => {
        if (!model || !scope) return raw.create<T, R>(input).catch(blameDeletion);
        const tenantId = await requireUserInScope(getBorder(), raw, scope, input.data.userId);
        const data: Row = { ...input.data, tenantId: tenantId ?? PLATFORM };
        const opening =
          tenantId && model === "user"
            ? await getBorder().policy.admitRow(model, { ...scope, tenantId }, data, raw)
            : undefined;
        const kept = await opening?.makeRoom?.(raw);
        const row = await write(
          model,
          scope,
          data,
          async () =>
            (kept && (await raw.update<R>(asChange(input.model, kept, data)))) ||
            raw.create<T, R>({ ...input, data: data as T }),
        );
        if (opening?.accept) await opening.accept(row as Row, raw);
        return admit({ model }, scope, row);
      }),

    findOne: <T>(input: FindOne) => {
      if (isTokenLookup(input, getBorder())) return findSession<T>(input);
      if (input.model === "user" && isImpersonator(idIn(input.where))) return raw.findOne<T>(input);
      return narrow(input, async ({ call, scope, model }) => {
        const row = await raw.findOne<T>(call);
        const isUser = model === "user";
        if (isUser && (await isHiddenUser(getBorder().ctx, input.where, row as Row | null)))
          return null;
        return admit({ join: input.join, model }, scope, row);
      });
    },

    findMany: <T>(input: Parameters<DBAdapter["findMany"]>[0]) =>
      narrow(input, async ({ call, scope, model }) => {
        const rows = await raw.findMany<T>(call);
        if (!scope) return rows;
        if (model === "verification" && notes().heldState) return consumeState(input.model, rows);
        return rows.map((row) => admit({ join: input.join, model }, scope, row));
      }),

    count: (input) => narrow(input, ({ call }) => raw.count(call)),

    update: <T>(input: Parameters<DBAdapter["update"]>[0]) =>
      narrow(input, async ({ call, scope: narrowed, model }) => {
        const scope = narrowed && visitorScope(narrowed, input);
        const data = await allowedChange(input.update, scope, model);
        if (!model || !scope) return raw.update<T>({ ...call, update: data });
        // Who asks for no row in particular gets none: the tenant alone does not ask for one.
        if (input.where.length === 0) return null;
        const narrow = [...input.where, ...tenantClause(scope)];
        const where = isMySQL(raw)
          ? await pinpoint(raw, input.model, narrow, tenantClause(scope))
          : narrow;
        if (!where) return null;
        const row = await write(model, scope, data, () =>
          raw.update<T & Row>({ ...call, where, update: data }),
        );
        const isOurs = row && (row.tenantId === undefined || isInside(scope, row));
        return isOurs ? admit({ model }, scope, row) : null;
      }),

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
        admit({ model }, scope, await raw.consumeOne<T>(call)),
      ),

    incrementOne: <T>(input: Parameters<DBAdapter["incrementOne"]>[0]) =>
      narrow(input, async ({ call, scope, model }) => {
        const set = await allowedChange(input.set, scope, model);
        return admit({ model }, scope, await raw.incrementOne<T>({ ...call, set }));
      }),
  };
}

/** What a new user would have, for one that is kept. It is as old as it was. */
function asChange(model: string, id: string, { id: _, createdAt: __, ...update }: Row) {
  return { model, where: [{ field: "id", value: id }], update };
}

function admitJoined(row: Row, key: string, scope: Scope) {
  const value = row[key];
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) row[key] = value.filter((item: Row) => isInside(scope, item));
  else if (!isInside(scope, value as Row)) row[key] = null;
}

/** A visitor's own session lives on the platform, where better-auth prolongs it. */
function visitorScope(scope: Scope, { where }: { where: Where[] }): Scope {
  const isOwn = where.some(
    ({ field, value }) => field === "token" && value === notes().visitor?.token,
  );
  return scope.access === "visits" && isOwn ? scopeOf(null) : scope;
}

const idIn = ([clause, ...rest]: Where[]): unknown =>
  clause?.field === "id" && !rest.length ? clause.value : undefined;

function isTokenLookup({ model, where, select }: FindOne, isolation: Isolation): boolean {
  const [clause, ...rest] = where;
  if (clause?.field !== "token" || (clause.operator ?? "eq") !== "eq") return false;
  return !rest.length && !select && isolation.isolatedModel(model) === "session";
}
