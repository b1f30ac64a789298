import type { SecondaryStorage } from "better-auth/db";
import { parseJSON, replaceMethods } from "../framework";
import { adminTarget, currentEndpoint, effectiveScope, visitor } from "../request/endpoint";
import { tenantInPrefix } from "../request/prefix";
import { type Scope, type SessionRow, scopeOf } from "../request/scope";
import { refuse } from "../schema";
import type { Isolation } from "./isolation";
import { isImpersonator, isSessionValidHere, scopeOfSession } from "./sessions";
import { heldState, isState } from "./single-use";

const METHODS = ["get", "set", "delete", "getAndDelete", "increment"] as const;

/** What better-auth keeps about a user's sessions, by the user's id; the second since 1.7.20. */
const OF_USER = /^(?:active-sessions|revoked-sessions-before)-(.+)/s;

const PREFIX = "tenant:";

/** R10: each tenant has its own keys. */
function keyIn({ tenantId }: Scope, key: string): string {
  if (tenantId !== null) return `${PREFIX}${tenantId}:${key}`;
  // A caller on the platform must not be able to choose a tenant's key.
  return key.startsWith(PREFIX) ? `${PREFIX}:${key}` : key;
}

/**
 * The session of an operator who visits a tenant, or impersonates one of its users, stays on the
 * platform. Reads follow the prefix and are checked (see `isSessionValidHere`); only the verified
 * operator writes and deletes there, or a tenant's administrator could end an operator's session.
 */
function scopeOfKey(key: string, isRead = false): Scope {
  const scope = effectiveScope();
  if (scope.tenantId === null || !adminTarget(currentEndpoint())) return scope;
  const operator = visitor.get();
  const [, userId] = OF_USER.exec(key) ?? [];
  if (userId) return userId === operator?.userId || isImpersonator(userId) ? scopeOf(null) : scope;
  if (key === operator?.token) return scopeOf(null);
  return isRead && /^[\w-]{32}$/.test(key) ? scopeOfSession(key) : scope;
}

/** On an isolated storage: its methods without isolation. */
const RAW = Symbol.for("better-auth-tenant:raw-storage");

/**
 * Isolates better-auth's secondary storage, where sessions and one-time tokens live without ever
 * reaching the database. It is changed in place, like the adapter: better-auth's internal adapter
 * has taken it by the time all options are known.
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
      if (!(await isValidSession(isolation, key, stored))) return null;
      // R6: a replayed callback must not find its state a second time.
      const held = heldState.get();
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

/** A session is stored under its own token. Other values of that shape belong to other plugins. */
async function isValidSession(
  isolation: Isolation,
  key: string,
  { session, user }: { session?: SessionRow; user?: unknown },
): Promise<boolean> {
  if (session?.token !== key) return true;
  // better-auth would fail on a session whose user was deleted while it was written.
  if (!user) return false;
  const tenantId = tenantInPrefix(key);
  return isSessionValidHere(isolation, { ...session, token: key, tenantId });
}
