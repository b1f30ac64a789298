import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { PLATFORM } from "../schema";
import type { Endpoint } from "../scope/endpoint";
import type { SessionRow } from "../scope/scope";
import { notes, type Settled } from "../scope/scope";
import type { ReadSession } from "../scope/settle";
import type { TenantPolicy } from "../tenants/policy";

/** A row as the border sees it. */
export type Row = Record<string, unknown> & { id?: string; tenantId?: string | null };

/** What the border of an instance is made of, and what it asks of the rest of the plugin. */
export interface Border {
  ctx: AuthContext;
  /** The database adapter as it was. */
  raw: DBTransactionAdapter;
  /** The confined model behind a model or table name; undefined for every other table. */
  confinedModel(name: string): string | undefined;
  /**
   * When the tenant was created; undefined when it is gone. A number that is given to a second
   * tenant is told apart by it (R10). Remembered for ten seconds.
   */
  tenantSince(tenantId: string, adapter?: DBTransactionAdapter): Promise<string | undefined>;
  /** Whether this process has deleted the tenant while the request was on its way. */
  wasDeleted(tenantId: string): boolean;
  /** The same for a session in secondary storage, where there is one. */
  storedSession?: ((token: string) => Promise<StoredSession | undefined>) | undefined;
  /** Reads a session below the border: it is what settles the scope. */
  readSession: ReadSession;
  /** Called with the e-mail that a user of the scope is about to get. */
  beforeEmail(adapter: DBTransactionAdapter, scope: Settled, email: string): Promise<void>;
  /** What to say of a row that the database refuses. */
  onRefused(error: unknown): Promise<unknown>;
  /** The policy of the tenant that the request runs in, as this process remembers it. */
  policyNow(): TenantPolicy | null | undefined;
  /** Refuses what the policy does not allow before anything is done, where that can be told. */
  refuseEarly(endpoint: Endpoint): Promise<void>;
  /** R13: called with a user that is about to be made in a tenant. */
  admitUser(
    tenantId: string,
    user: Row,
    adapter: DBTransactionAdapter,
  ): Promise<Opening | undefined>;
  /** R14: called with a session that is about to be made in a tenant. Returns what to change in it. */
  admitSession(
    scope: Settled,
    session: Row,
    adapter: DBTransactionAdapter,
  ): Promise<object | undefined>;
  /** Keeps the last administrator of a tenant; missing where the application names no roles. */
  keepAdmin?: KeepAdmin | undefined;
}

/** Runs a change of users, unless a tenant would have no administrator after it. */
export type KeepAdmin = <T>(
  change: { where: Where[]; update?: Row | undefined },
  run: (adapter: DBTransactionAdapter) => Promise<T>,
) => Promise<T>;

/** On the session that an API key stands for: a key is no session that could be continued. */
export const OF_KEY = Symbol.for("better-auth-tenant:session-of-key");

/** What lets somebody in where the policy says `"invited"`. */
export interface Opening {
  /** What the user gets besides: a role, or that the address is verified. */
  data?: Row;
  /** Called with the new user, in the same transaction, with the adapter below the border. */
  accept?(user: Row, raw: DBTransactionAdapter): Promise<void>;
}

/**
 * Says whether somebody was invited. May be asked twice for one user, so it changes nothing: what
 * there is to change comes with `accept`. Where users are made in any case, only an invitation
 * counts that the call itself carries.
 */
export type Opener = (
  user: Row,
  counts: "any invitation" | "a carried one",
) => Promise<Opening | undefined>;

/** On the adapter, like the border: a plugin may set it before or after ours has started. */
const OPENER = Symbol.for("better-auth-tenant:opener");

export const openerOf = (adapter: object | undefined): Opener | undefined =>
  (adapter as { [OPENER]?: Opener } | undefined)?.[OPENER];

export const setOpener = (adapter: object, opener: Opener) =>
  Object.assign(adapter, { [OPENER]: opener });

/**
 * Code of the server's own: a job in `runInTenant`, or a call of `auth.api` with neither request nor
 * headers. What a request calls through `auth.api` is that request's.
 */
export function isTrusted(): boolean {
  const endpoint = notes().endpoint as Endpoint | undefined;
  return !endpoint || (!endpoint.request && !endpoint.headers);
}

/** A session in secondary storage, with the tenant of its label. */
export interface StoredSession {
  session: SessionRow;
  since: string | undefined;
}

/** On the adapter, which all copies of an instance's context share; one name for all our copies. */
const BORDER = Symbol.for("better-auth-tenant:border");

export const borderOf = (adapter: object): Border | undefined =>
  (adapter as { [BORDER]?: Border })[BORDER];

export const setBorder = (adapter: object, border: Border) =>
  Object.assign(adapter, { [BORDER]: border });

/** Whether a stored verification is the OAuth state that the callback came back with. */
export function isState(value: unknown, state: string | undefined): boolean {
  if (state === undefined || typeof value !== "string") return false;
  try {
    return (JSON.parse(value) as { oauthState?: unknown } | null)?.oauthState === state;
  } catch {
    return false;
  }
}

/** The condition that keeps a query inside the scope. */
export function tenantClause({ tenantId, reach }: Settled): Where[] {
  if (reach === "all") return [];
  const value = tenantId ?? PLATFORM;
  return [{ field: "tenantId", operator: "eq", value, connector: "AND" }];
}

/** Whether a row is inside the scope. One that does not show its tenant is not. */
export function isInside({ tenantId, reach }: Settled, row: Row): boolean {
  return reach === "all" || row.tenantId === tenantId;
}

export function rememberUser(user: Row): void {
  if (user.id === undefined || user.tenantId === undefined) return;
  const { id, tenantId, email, emailVerified } = user;
  // Behind the others: the one that was read last is the one that the request is about.
  notes().knownUsers.delete(String(id));
  notes().knownUsers.set(String(id), { tenantId, email, emailVerified });
}

/** Whether the tenant was deleted on the way, and perhaps its number given to another one. */
async function isAnother(border: Border, adapter: DBTransactionAdapter, tenantId: string) {
  if (border.wasDeleted(tenantId)) return true;
  const note = notes();
  if (note.since === undefined) return false;
  return note.since !== (await border.tenantSince(tenantId, adapter));
}

/**
 * R8: a session or an account is only ever given to a user of the scope, whichever plugin asks for
 * it. Returns the tenant that the row belongs to: the user's.
 */
export async function vouchForUser(
  border: Border,
  adapter: DBTransactionAdapter,
  scope: Settled,
  userId: unknown,
): Promise<string | null> {
  if (scope.tenantId !== null && (await isAnother(border, adapter, scope.tenantId))) {
    throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  }
  if (userId === undefined || userId === null) return scope.tenantId;
  const known = notes().knownUsers.get(String(userId))?.tenantId;
  if (known !== undefined && (scope.reach === "all" || known === scope.tenantId)) return known;
  const user = await adapter.findOne<Row>({
    model: "user",
    where: [{ field: "id", value: String(userId) }, ...tenantClause(scope)],
  });
  if (!user) throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.USER_NOT_IN_TENANT);
  rememberUser(user);
  return user.tenantId ?? null;
}

/** R13, R14: asks the policy of the tenant, and changes a new row as it says. */
export async function admitRow(
  border: Border,
  adapter: DBTransactionAdapter,
  model: string,
  scope: Settled & { tenantId: string },
  data: Row,
): Promise<Opening | undefined> {
  if (model === "session") Object.assign(data, await border.admitSession(scope, data, adapter));
  if (model !== "user") return undefined;
  const opening = await border.admitUser(scope.tenantId, data, adapter);
  Object.assign(data, opening?.data);
  return opening;
}
