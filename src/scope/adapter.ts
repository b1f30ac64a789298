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
type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

/** What the border asks of the rest of the plugin. */
export interface BorderRules {
  /** The confined model behind a model or table name; undefined for every other table. */
  confinedModel(name: string): string | undefined;
  /** R4: decides the scope of a request that names no tenant, before it touches its first row. */
  settleScope(adapter?: DBTransactionAdapter): Promise<Scope>;
  /** R4: a session that was just found by its token; if it is valid, the request runs in its tenant. */
  settleScopeBy(session: Row): Promise<void>;
  /** Called with the e-mail that a user of the scope is about to get. */
  beforeEmail(adapter: DBTransactionAdapter, scope: Scope, email: string): Promise<void>;
  /** What to say of a row that the database refuses. */
  onRefused(error: unknown): unknown;
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
  async function scopeNow(): Promise<Scope> {
    const scope = currentScope() ?? (await rules.settleScope(raw));
    if (scope.awaitsState) {
      throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
    }
    return scope;
  }

  /** The call as it may go out: about rows of the scope only. */
  async function narrow<Call extends TableCall>(call: Call) {
    const model = rules.confinedModel(call.model);
    const joinsConfined = Object.keys(call.join ?? {}).some(rules.confinedModel);
    const scope = model || joinsConfined ? await scopeNow() : undefined;
    if (!model || !scope) return { call, scope, model };
    // Last, and joined by AND: adapters that go through conditions from left to right apply it to
    // the outcome of every OR before it, the others to the whole group of them.
    const where = [...(call.where ?? []), ...tenantClause(scope)];
    return { call: { ...call, where }, scope, model };
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
    if (!currentScope()) await rules.settleScopeBy(session);
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
    const { type, provider } = (raw.options ?? {}) as { type?: string; provider?: string };
    const unique = where.some(({ field }) => field === "id" || field === "token");
    if ((type ?? provider) !== "mysql" || unique) return where;
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
    return run().catch((error) => {
      throw rules.onRefused(error);
    });
  }

  /** A row never changes its tenant. */
  async function narrowWrite<Call extends TableCall, Data extends Row | undefined>(
    input: Call,
    data: Data,
  ) {
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
      const tenantId = await vouchForUser(scope, call.data);
      const data = { ...call.data, tenantId: tenantId ?? PLATFORM };
      return write(model, scope, data, async () =>
        admit(model, scope, await raw.create({ ...call, data })),
      );
    },

    findOne: async <T>(input: Parameters<DBAdapter["findOne"]>[0]) => {
      if (rules.confinedModel(input.model) === "session" && isTokenLookup(input)) {
        return findSession<T>(input);
      }
      if (isImpersonator(input)) return raw.findOne<T>(input);
      const { call, scope, model } = await narrow(input);
      return admit(model, scope, await raw.findOne<T>(call));
    },

    findMany: async <T>(input: Parameters<DBAdapter["findMany"]>[0]) => {
      const reading = currentScope();
      if (reading?.awaitsState && rules.confinedModel(input.model) === "verification") {
        return takeState<T>(reading, input);
      }
      const { call, scope, model } = await narrow(input);
      const rows = await raw.findMany<T>(call);
      if (model === "session" && scope) noteMissing(scope, input.where, rows as Row[]);
      return scope ? rows.map((row) => admit(model, scope, row)) : rows;
    },

    count: async (input) => raw.count((await narrow(input)).call),

    update: async <T>(input: Parameters<DBAdapter["update"]>[0]) => {
      const { call, data, scope, model } = await narrowWrite(input, input.update);
      if (!model || !scope) return raw.update<T>({ ...call, update: data });
      // Who asks for no row in particular gets none: the tenant alone does not ask for one.
      if (input.where.length === 0) return null;
      const where = await pinpoint(input.model, call.where ?? [], scope);
      if (!where) return null;
      return write(model, scope, data, async () => {
        const row = await raw.update<T & Row>({ ...call, where, update: data });
        return row && isInside(scope, row.tenantId) ? admit(model, scope, row) : null;
      });
    },

    updateMany: async (input) => {
      const { call, data } = await narrowWrite(input, input.update);
      return raw.updateMany({ ...call, update: data });
    },

    delete: async (input) => {
      const { call, model } = await narrow(input);
      if (!model || input.where.length > 0) await raw.delete(call);
    },

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
