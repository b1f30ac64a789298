import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { APIError } from "better-auth/api";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { PLATFORM } from "../schema";
import {
  createScope,
  currentScope,
  isAdmitted,
  isInside,
  type Scope,
  settleByState,
} from "./scope";

type TableCall = { model: string; where?: Where[] | undefined; join?: object | undefined };
type Narrowed<Call> = { call: Call; scope?: Scope; model?: string | undefined };
type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

/** What the border asks of the rest of the plugin. */
export interface BorderRules {
  /** The confined model behind a model or table name; undefined for every other table. */
  confinedModel(name: string): string | undefined;
  /** R4: decides the scope of a request that names no tenant, before it touches its first row. */
  settleScope(adapter?: DBTransactionAdapter): Promise<Scope>;
  /** R4: a session that was just found by its token; if it is valid, the request runs in its tenant. */
  settleScopeBy(session: Row): Promise<unknown> | undefined;
  /** Whether the tenant was deleted while the request was on its way. */
  wasDeleted(tenantId: string): boolean;
  /** Called with the e-mail that a user of the scope is about to get. */
  beforeEmail(adapter: DBTransactionAdapter, scope: Scope, email: string): Promise<void>;
  /** What to say of a row that the database refuses. */
  onRefused(error: unknown): Promise<unknown>;
}

/**
 * The border: from here on the adapter reads, changes, creates and deletes rows of the confined
 * models in the scope of the running request only (R3, R4). The adapter is changed in place, not
 * wrapped, for two reasons: plugins whose `init` ran before ours may hold on to it, and
 * better-auth's check of the database schema is registered for this very object.
 */
export function confineAdapter(adapter: DBAdapter, rules: BorderRules): void {
  const raw = { ...adapter };
  Object.assign(adapter, confined(raw, rules), {
    transaction: <R>(run: (inner: DBTransactionAdapter) => Promise<R>) =>
      raw.transaction((inner) => {
        // Adapters without transactions hand themselves in, and that is the confined one already.
        return run(inner === adapter ? adapter : confined(inner, rules));
      }),
  });
}

function confined(raw: DBTransactionAdapter, rules: BorderRules): DBTransactionAdapter {
  /**
   * Runs a call as it may go out: about rows of the scope only. Everything comes through here, and
   * the scope is mostly known already: then nobody waits for it.
   */
  function narrow<Call extends TableCall, T>(
    call: Call,
    run: (narrowed: Narrowed<Call>) => Promise<T>,
  ): Promise<T> {
    const model = rules.confinedModel(call.model);
    const joinsConfined = Object.keys(call.join ?? {}).some(rules.confinedModel);
    if (!model && !joinsConfined) return run({ call });
    const runIn = (scope: Scope) => {
      if (!model) return run({ call, scope });
      // Last, and joined by AND: adapters that go through conditions from left to right apply it
      // to the outcome of every OR before it, the others to the whole group of them.
      const where = [...(call.where ?? []), ...tenantClause(scope)];
      return run({ call: { ...call, where }, scope, model });
    };
    const scope = currentScope();
    if (!scope) return rules.settleScope(raw).then(runIn);
    if (!scope.awaitsState) return runIn(scope);
    return Promise.reject(APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND));
  }

  /** What may come in: joined rows are fetched by their key alone, so they are looked at here. */
  function admit<T>(model: string | undefined, scope: Scope | undefined, row: T): T {
    if (!scope || !row) return row;
    const admitted = row as Row;
    if (model === "user") remember(scope, admitted);
    for (const [key, value] of Object.entries(admitted)) {
      const joined = typeof value === "object" && value !== null && rules.confinedModel(key);
      if (!joined) continue;
      const inside = (candidate: Row) => isInside(scope, candidate.tenantId);
      if (Array.isArray(value)) admitted[key] = value.filter(inside);
      else if (!inside(value as Row)) admitted[key] = null;
      else if (joined === "user") remember(scope, value as Row);
    }
    return row;
  }

  /**
   * R8: a session or an account is only ever given to a user of the scope. Answers whose tenant
   * the row belongs to: the user's, which an admin who sees all may not be in.
   */
  async function vouchForUser(scope: Scope, data: Row): Promise<string | null> {
    if (scope.tenantId && rules.wasDeleted(scope.tenantId)) {
      throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
    }
    const { userId } = data;
    if (userId === undefined || userId === null) return scope.tenantId;
    const known = scope.knownUsers.get(String(userId));
    if (known !== undefined) return known;
    const user = await raw.findOne<Row>({
      model: "user",
      where: [{ field: "id", value: String(userId) }, ...tenantClause(scope)],
    });
    if (!user) throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.USER_NOT_IN_TENANT);
    remember(scope, user);
    return user.tenantId ?? null;
  }

  /**
   * A session by its token, which nobody can guess. In a request that names no tenant it says
   * which one it is (R4); in one that names another it is no session (R5).
   */
  async function findSession<T>(input: Parameters<DBAdapter["findOne"]>[0]): Promise<T | null> {
    const session = await raw.findOne<T & Row>(input);
    if (!session) return null;
    // Known at once, but for calls from inside the request.
    const settling = currentScope() ? undefined : rules.settleScopeBy(session);
    if (settling) await settling;
    const scope = currentScope();
    if (scope && !isAdmitted(scope, session.tenantId)) {
      scope.elsewhere.add(String(session.token));
      return null;
    }
    // A visitor's session comes with a user of its own side.
    const home = scope && isInside(scope, session.tenantId) ? scope : undefined;
    return admit("session", home ?? createScope(session.tenantId ?? null), session);
  }

  /**
   * MySQL does not answer an update with the row. The adapters read it again, by its id or by the
   * first condition alone, and an e-mail address finds somebody else's row then.
   */
  async function pinpoint(model: string, where: Where[], scope: Scope): Promise<Where[] | null> {
    const unique = where.some(({ field }) => field === "id" || field === "token");
    if (!isMySQL(raw) || unique) return where;
    const row = await raw.findOne<Row>({ model, where });
    return row ? [{ field: "id", value: String(row.id) }, ...tenantClause(scope)] : null;
  }

  /**
   * R6: the state that comes back from the provider says which tenant it was made for. It is
   * taken, not read: better-auth deletes it a moment later, and who comes in between came twice.
   */
  async function takeState<T>(scope: Scope, input: Parameters<DBAdapter["findMany"]>[0]) {
    const [row] = await raw.findMany<T & Row>(input);
    const where = [{ field: "id", value: String(row?.id) }];
    const taken = row && (await raw.consumeOne<T & Row>({ model: input.model, where }));
    settleByState(scope, taken?.tenantId ?? null);
    return taken ? [row] : [];
  }

  /** Some columns are unique at large, and what is taken there cannot be seen from here. */
  async function write<T>(model: string, scope: Scope, data: Row, run: () => Promise<T>) {
    if (model === "user" && typeof data.email === "string") {
      await rules.beforeEmail(raw, scope, data.email);
    }
    return run().catch(async (error) => {
      throw await rules.onRefused(error);
    });
  }

  /** A row never changes its tenant. */
  async function withoutTenant<Data extends Row | undefined>(scope: Scope | undefined, data: Data) {
    if (!scope || !data) return data;
    await vouchForUser(scope, data);
    const { tenantId: _, ...rest } = data;
    return rest as Data;
  }

  return {
    ...raw,

    create: <T extends Row, R>(input: Parameters<typeof raw.create<T, R>>[0]) =>
      narrow(input, async ({ scope, model }) => {
        if (!model || !scope) return raw.create<T, R>(input);
        const tenantId = await vouchForUser(scope, input.data);
        const data = { ...input.data, tenantId: tenantId ?? PLATFORM };
        const row = await write(model, scope, data, () => raw.create<T, R>({ ...input, data }));
        return admit(model, scope, row);
      }),

    findOne: <T>(input: Parameters<DBAdapter["findOne"]>[0]) => {
      if (rules.confinedModel(input.model) === "session" && isTokenLookup(input)) {
        return findSession<T>(input);
      }
      if (isImpersonator(input)) return raw.findOne<T>(input);
      return narrow(input, async ({ call, scope, model }) =>
        admit(model, scope, await raw.findOne<T>(call)),
      );
    },

    findMany: <T>(input: Parameters<DBAdapter["findMany"]>[0]) => {
      const reading = currentScope();
      if (reading?.awaitsState && rules.confinedModel(input.model) === "verification") {
        return takeState<T>(reading, input);
      }
      return narrow(input, async ({ call, scope, model }) => {
        const rows = await raw.findMany<T>(call);
        if (model === "session" && scope) noteMissing(scope, input.where, rows as Row[]);
        return scope ? rows.map((row) => admit(model, scope, row)) : rows;
      });
    },

    count: (input) => narrow(input, ({ call }) => raw.count(call)),

    update: <T>(input: Parameters<DBAdapter["update"]>[0]) =>
      narrow(input, async ({ call, scope, model }) => {
        const data = await withoutTenant(scope, input.update);
        if (!model || !scope) return raw.update<T>({ ...call, update: data });
        // Who asks for no row in particular gets none: the tenant alone does not ask for one.
        if (input.where.length === 0) return null;
        const where = await pinpoint(input.model, call.where, scope);
        if (!where) return null;
        const row = await write(model, scope, data, () =>
          raw.update<T & Row>({ ...call, where, update: data }),
        );
        return row && isInside(scope, row.tenantId) ? admit(model, scope, row) : null;
      }),

    updateMany: (input) =>
      narrow(input, async ({ call, scope }) =>
        raw.updateMany({ ...call, update: await withoutTenant(scope, input.update) }),
      ),

    delete: (input) =>
      narrow(input, async ({ call, model }) => {
        if (!model || input.where.length > 0) await raw.delete(call);
      }),

    deleteMany: (input) => narrow(input, ({ call }) => raw.deleteMany(call)),

    consumeOne: <T>(input: Parameters<DBAdapter["consumeOne"]>[0]) =>
      narrow(input, async ({ call, scope, model }) =>
        admit(model, scope, await raw.consumeOne<T>(call)),
      ),

    incrementOne: <T>(input: Parameters<DBAdapter["incrementOne"]>[0]) =>
      narrow(input, async ({ call, scope, model }) => {
        const set = await withoutTenant(scope, input.set);
        return admit(model, scope, await raw.incrementOne<T>({ ...call, set }));
      }),
  };
}

/** Adapters have two words for it. */
export function isMySQL({ options }: DBTransactionAdapter): boolean {
  const { type, provider } = (options ?? {}) as { type?: string; provider?: string };
  return (type ?? provider) === "mysql";
}

/** The way back of an admin of the platform who has visited a tenant as one of its users. */
function isImpersonator({ model, where }: Parameters<DBAdapter["findOne"]>[0]): boolean {
  if (currentScope()?.admin !== "visits" || model !== "user") return false;
  const session = tryGetCurrentAuthEndpointContext()?.context.session?.session;
  const { impersonatedBy } = (session ?? {}) as { impersonatedBy?: string };
  const [clause, ...rest] = where;
  return Boolean(
    impersonatedBy && !rest.length && clause?.field === "id" && clause.value === impersonatedBy,
  );
}

function tenantClause(scope: Scope): Where[] {
  if (scope.admin === "sees all") return [];
  const value = scope.tenantId ?? PLATFORM;
  return [{ field: "tenantId", operator: "eq", value, connector: "AND" }];
}

function isTokenLookup({ where, select }: Parameters<DBAdapter["findOne"]>[0]) {
  const [clause, ...rest] = where;
  return clause?.field === "token" && (clause.operator ?? "eq") === "eq" && !rest.length && !select;
}

/** Of several tokens at once, those that are not found here may be good elsewhere. */
function noteMissing(scope: Scope, where: Where[] | undefined, found: Row[]) {
  const { value } =
    where?.find(({ field, operator }) => field === "token" && operator === "in") ?? {};
  if (!Array.isArray(value)) return;
  const here = new Set(found.map(({ token }) => token));
  for (const token of value) if (!here.has(token)) scope.elsewhere.add(String(token));
}

function remember(scope: Scope, user: Row) {
  if (user.id === undefined || user.tenantId === undefined) return;
  scope.knownUsers.set(String(user.id), user.tenantId);
}
