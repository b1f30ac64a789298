import { APIError } from "better-auth/api";
import type { DBAdapter, DBTransactionAdapter, Where } from "better-auth/types";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { PLATFORM } from "../schema";
import { createScope, currentScope, type Scope } from "./scope";

type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

/** What the border asks of the rest of the plugin. */
export interface BorderRules {
  /** The confined model behind a model or table name; undefined for every other table. */
  confinedModel(name: string): string | undefined;
  /** R4: decides the scope of a request that names no tenant, before it touches its first row. */
  settleScope(): Promise<Scope>;
  /** R4: a session that was just found by its token; if it is valid, the request runs in its tenant. */
  settleScopeBy(session: Row): void;
  /** Called with a user that a tenant is about to get, and with the error if that failed. */
  beforeCreateUser(adapter: DBTransactionAdapter, user: Row): Promise<void>;
  onCreateUserFailed(error: unknown): void;
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
  const scopeNow = async () => currentScope() ?? (await rules.settleScope());

  /** The call as it may go out: about rows of the scope only. */
  async function narrow<Call extends { model: string; where?: Where[] | undefined }>(call: Call) {
    const model = rules.confinedModel(call.model);
    if (!model) return { call, scope: undefined, model };
    const scope = await scopeNow();
    if (scope.awaitsState)
      throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
    // Last, and joined by AND: adapters that go through conditions from left to right apply it to
    // the outcome of every OR before it, the others to the whole group of them.
    return { call: { ...call, where: [...(call.where ?? []), tenantClause(scope)] }, scope, model };
  }

  /** What may come in: joined rows are fetched by their key alone, so they are looked at here. */
  function admit<T>(model: string | undefined, scope: Scope | undefined, row: T): T {
    if (!scope || !row) return row;
    const admitted = row as Row;
    if (model === "user") remember(scope, admitted);
    for (const [key, value] of Object.entries(admitted)) {
      const joined = typeof value === "object" && value !== null && rules.confinedModel(key);
      if (!joined) continue;
      const ofScope = (candidate: Row) => (candidate.tenantId ?? null) === scope.tenantId;
      if (Array.isArray(value)) admitted[key] = value.filter(ofScope);
      else if (!ofScope(value as Row)) admitted[key] = null;
      else if (joined === "user") remember(scope, value as Row);
    }
    return row;
  }

  /** R8: a session or an account is only ever given to a user of the scope. */
  async function vouchForUser(scope: Scope, data: Row) {
    const { userId } = data;
    if (userId === undefined || userId === null || scope.knownUsers.has(String(userId))) return;
    const user = await raw.findOne<Row>({
      model: "user",
      where: [{ field: "id", value: String(userId) }, tenantClause(scope)],
    });
    if (!user) throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.USER_NOT_IN_TENANT);
    remember(scope, user);
  }

  /** A row never changes its tenant. */
  async function narrowWrite<
    Call extends { model: string; where?: Where[] | undefined },
    Data extends Row | undefined,
  >(input: Call, data: Data) {
    const { call, scope, model } = await narrow(input);
    if (!scope || !data) return { call, data, scope, model };
    await vouchForUser(scope, data);
    const { tenantId: _, ...rest } = data;
    return { call, data: rest as Data, scope, model };
  }

  return {
    ...raw,

    create: async (call) => {
      const model = rules.confinedModel(call.model);
      if (!model) return raw.create(call);
      const scope = await scopeNow();
      const data = { ...call.data, tenantId: scope.tenantId ?? PLATFORM };
      await vouchForUser(scope, data);
      if (model !== "user" || scope.tenantId === null) {
        return admit(model, scope, await raw.create({ ...call, data }));
      }
      await rules.beforeCreateUser(raw, data);
      try {
        return admit(model, scope, await raw.create({ ...call, data }));
      } catch (error) {
        rules.onCreateUserFailed(error);
        throw error;
      }
    },

    findOne: async <T>(input: Parameters<DBAdapter["findOne"]>[0]) => {
      if (
        rules.confinedModel(input.model) === "session" &&
        !currentScope() &&
        isTokenLookup(input)
      ) {
        // R4: no tenant is named, so the session says which one it is.
        const row = await raw.findOne<T>(input);
        if (!row) return null;
        rules.settleScopeBy(row as Row);
        return admit("session", createScope((row as Row).tenantId ?? null), row);
      }
      const { call, scope, model } = await narrow(input);
      const row = await raw.findOne<T>(call);
      if (model === "session" && scope && !row) scope.missedSession = true;
      return admit(model, scope, row);
    },

    findMany: async <T>(input: Parameters<DBAdapter["findMany"]>[0]) => {
      const reading = currentScope();
      if (reading?.awaitsState && rules.confinedModel(input.model) === "verification") {
        // R6: the state that comes back from the provider says which tenant it was made for.
        const rows = await raw.findMany<T>(input);
        reading.tenantId = (rows[0] as Row | undefined)?.tenantId ?? null;
        reading.awaitsState = false;
        return rows;
      }
      const { call, scope, model } = await narrow(input);
      const rows = await raw.findMany<T>(call);
      return scope ? rows.map((row) => admit(model, scope, row)) : rows;
    },

    count: async (input) => raw.count((await narrow(input)).call),

    update: async <T>(input: Parameters<DBAdapter["update"]>[0]) => {
      const { call, data, scope, model } = await narrowWrite(input, input.update);
      return admit(model, scope, await raw.update<T>({ ...call, update: data }));
    },

    updateMany: async (input) => {
      const { call, data } = await narrowWrite(input, input.update);
      return raw.updateMany({ ...call, update: data });
    },

    delete: async (input) => raw.delete((await narrow(input)).call),

    deleteMany: async (input) => raw.deleteMany((await narrow(input)).call),

    consumeOne: async <T>(input: Parameters<DBAdapter["consumeOne"]>[0]) => {
      const { call, scope, model } = await narrow(input);
      return admit(model, scope, await raw.consumeOne<T>(call));
    },

    incrementOne: async <T>(input: Parameters<DBAdapter["incrementOne"]>[0]) => {
      const { call, data, scope, model } = await narrowWrite(input, input.set);
      return admit(model, scope, await raw.incrementOne<T>({ ...call, set: data }));
    },
  };
}

function tenantClause(scope: Scope): Where {
  return {
    field: "tenantId",
    operator: "eq",
    value: scope.tenantId ?? PLATFORM,
    connector: "AND",
  };
}

function isTokenLookup({ where, select }: Parameters<DBAdapter["findOne"]>[0]) {
  const [clause, ...rest] = where;
  return clause?.field === "token" && (clause.operator ?? "eq") === "eq" && !rest.length && !select;
}

function remember(scope: Scope, user: Row) {
  if (user.id !== undefined) scope.knownUsers.add(String(user.id));
}
