import type { SecondaryStorage } from "better-auth/db";
import { adminTarget } from "../admin-endpoints";
import { currentScope } from "../current-scope";
import { currentEndpoint } from "../endpoint";
import type { Isolation } from "../isolation";
import { tenantInPrefix } from "../prefix";
import { currentRequest, type Scope, scopeOf } from "../request";
import { refuse } from "../schema";
import type { SessionRow } from "../session";
import { parseJSON, replaceMethods } from "../utils";
import { isImpersonator, openSession, scopeOfTokenLookup } from "./sessions";
import { isState } from "./single-use";

const METHODS = ["get", "set", "delete", "getAndDelete", "increment"] as const;

/**
 * Matches keys with data about the sessions of a user, by the user's id. better-auth has
 * `revoked-sessions-before` since 1.7.20.
 */
const OF_USER = /^(?:active-sessions|revoked-sessions-before)-(.+)/s;

/** A session token without a prefix, which `generateId(32)` makes. */
const PLATFORM_TOKEN = /^[\w-]{32}$/;

const PREFIX = "tenant:";

/** R10: returns the key in the storage. Each tenant has separate keys. */
function keyIn({ tenantId }: Scope, key: string): string {
  if (tenantId !== null) return `${PREFIX}${tenantId}:${key}`;
  // A caller on the platform must not be able to choose a tenant's key.
  return key.startsWith(PREFIX) ? `${PREFIX}:${key}` : key;
}

/**
 * Returns the scope of a key: the current one, except on admin endpoints. The session of an
 * operator who visits a tenant, or impersonates one of its users, stays on the platform. Every
 * caller there may read it by its token, because `openSession` checks each session that is read.
 * Only the verified operator may write or delete it: a tenant's administrator could otherwise end
 * an operator's session.
 */
function scopeOfKey(key: string, isRead = false): Scope {
  const scope = currentScope();
  if (scope.tenantId === null || !adminTarget(currentEndpoint())) return scope;
  const operator = currentRequest().visitor;
  const [, userId] = OF_USER.exec(key) ?? [];
  if (userId) return userId === operator?.userId || isImpersonator(userId) ? scopeOf(null) : scope;
  if (key === operator?.token) return scopeOf(null);
  return isRead && PLATFORM_TOKEN.test(key) ? scopeOfTokenLookup(key) : scope;
}

/** The property of an isolated storage that holds its methods without isolation. */
const RAW = Symbol.for("better-auth-tenant:raw-storage");

/**
 * Isolates better-auth's secondary storage, where sessions and one-time tokens may live without
 * reaching the database. Changes it in place, because better-auth's internal adapter already holds
 * the storage when all options are known.
 */
export function isolateStorage(
  storage: SecondaryStorage & { [RAW]?: SecondaryStorage },
  isolation: Isolation,
): void {
  const bound = METHODS.flatMap((name) =>
    storage[name] ? [[name, storage[name].bind(storage)]] : [],
  );
  const raw: SecondaryStorage = storage[RAW] ?? Object.fromEntries(bound);
  const at = (key: string, isRead = false) => keyIn(scopeOfKey(key, isRead), key);
  const methods = {
    get: async (key: string) => {
      const value = await raw.get(at(key, true));
      if (!value) return value;
      const stored = Object(typeof value === "string" ? parseJSON(value) : value);
      if (!(await isReadable(isolation, key, stored))) return null;
      // R6: a replayed callback must not find its state a second time.
      const held = currentRequest().heldState;
      if (!held || !isState(stored.value, await held)) return value;
      if (raw.getAndDelete) return raw.getAndDelete(at(key));
      await raw.delete(at(key));
      return value;
    },
    set: async (key: string, value: string, ttl?: number) => raw.set(at(key), value, ttl),
    delete: async (key: string) => raw.delete(at(key)),
    ...(raw.getAndDelete && { getAndDelete: async (key: string) => raw.getAndDelete(at(key)) }),
    ...(raw.increment && {
      increment: async (key: string, ttl: number) => raw.increment(at(key), ttl),
    }),
  };
  if (!replaceMethods(storage, methods)) {
    refuse(
      "the methods of this secondaryStorage cannot be replaced, so it cannot be isolated. Write: secondaryStorage: { get: (key) => storage.get(key), set: (key, value, ttl) => storage.set(key, value, ttl), delete: (key) => storage.delete(key), getAndDelete: (key) => storage.getAndDelete(key), increment: (key, ttl) => storage.increment(key, ttl) }",
    );
  }
  Object.defineProperty(storage, RAW, { value: raw, configurable: true });
}

/**
 * Returns whether a stored value may be read. Sessions are stored under their own tokens, and must
 * be valid. Other values (lists of sessions, one-time tokens) are kept apart by their keys alone.
 *
 * Guarded by "secondary storage holds sessions, lists of sessions and one-time tokens in the known form".
 */
async function isReadable(
  isolation: Isolation,
  key: string,
  { session, user }: { session?: SessionRow; user?: unknown },
): Promise<boolean> {
  if (session?.token !== key) return true;
  // better-auth would fail on a session whose user was deleted while it was written.
  if (!user) return false;
  const tenantId = tenantInPrefix(key);
  return openSession(isolation, { ...session, token: key, tenantId });
}
