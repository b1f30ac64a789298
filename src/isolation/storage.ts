import { BetterAuthError } from "better-auth";
import type { SecondaryStorage } from "better-auth/db";
import { parseJSON } from "../framework";
import { adminTarget, currentEndpoint, effectiveScope } from "../request/endpoint";
import { tenantInPrefix } from "../request/prefix";
import { notes, type Scope, type SessionRow, scopeOf } from "../request/scope";
import { type Isolation, isOurs, isolationOf, isState, markOurs, setIsolation } from "./isolation";
import { isImpersonator, isSessionValidHere, scopeOfSession } from "./sessions";

const METHODS = ["get", "set", "delete", "getAndDelete", "increment"] as const;

/** What better-auth keeps about a user's sessions, by the user's id; the second since 1.7.20. */
const OF_USER = /^(?:active-sessions|revoked-sessions-before)-(.+)/s;

const PREFIX = "tenant:";

/** R10: each tenant has keys of its own. */
function keyIn({ tenantId }: Scope, key: string): string {
  if (tenantId !== null) return `${PREFIX}${tenantId}:${key}`;
  // A caller on the platform cannot choose a key that is a tenant's.
  return key.startsWith(PREFIX) ? `${PREFIX}:${key}` : key;
}

/**
 * The session of an operator who visits a tenant, or acts as one of its users, stays on the platform.
 * Reading goes by the prefix and is checked (see `mayUse`); only the verified operator writes and
 * deletes there, or a tenant's administrator could end an operator's session.
 */
function scopeOfKey(key: string, isRead = false): Scope {
  const scope = effectiveScope();
  if (scope.tenantId === null || !adminTarget(currentEndpoint())) return scope;
  const { visitor } = notes();
  const [, userId] = OF_USER.exec(key) ?? [];
  if (userId) return userId === visitor?.userId || isImpersonator(userId) ? scopeOf(null) : scope;
  if (key === visitor?.token) return scopeOf(null);
  return isRead && /^[\w-]{32}$/.test(key) ? scopeOfSession(key) : scope;
}

const RAW = Symbol.for("better-auth-tenant:raw-storage");

const isIsolated = (storage: SecondaryStorage) =>
  Object.hasOwn(storage, RAW) && METHODS.every((name) => isOurs(storage[name]));

/**
 * Isolates better-auth's secondary storage, where sessions and one-time tokens live without ever
 * reaching the database. It is changed in place, like the adapter: better-auth's internal adapter
 * has taken it by the time all options are known.
 */
export function isolateStorage(storage: SecondaryStorage, isolation: Isolation): void {
  if (isIsolated(storage)) return void setIsolation(storage, isolation);
  const raw = Object.fromEntries(
    METHODS.flatMap((name) => (storage[name] ? [[name, storage[name].bind(storage)]] : [])),
  ) as unknown as SecondaryStorage;
  const current = () => isolationOf(storage) ?? isolation;
  const at = (key: string, isRead = false) => keyIn(scopeOfKey(key, isRead), key);
  const methods = {
    get: async (key: string) => {
      const value = await raw.get(at(key, true));
      const found = value ? sessionIn(key, value) : undefined;
      if (found && !(await isValid(current(), key, found))) return null;
      // R6: a replayed callback must not find its state a second time.
      const { heldState } = notes();
      if (!value || !heldState || !isState(verificationIn(value), await heldState)) return value;
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
  try {
    Object.assign(setIsolation(storage, isolation), markOurs(methods));
    Object.defineProperty(storage, RAW, { value: raw, configurable: true });
  } catch {
    // Refused below.
  }
  if (isIsolated(storage)) return;
  throw new BetterAuthError(
    "tenantAuth() cannot isolate this secondaryStorage, because its methods cannot be replaced. Write: secondaryStorage: { get: (key) => storage.get(key), set: (key, value, ttl) => storage.set(key, value, ttl), delete: (key) => storage.delete(key), getAndDelete: (key) => storage.getAndDelete(key), increment: (key, ttl) => storage.increment(key, ttl) }",
  );
}

const isValid = (isolation: Isolation, key: string, session: SessionRow) =>
  isSessionValidHere(isolation, { ...session, token: key, tenantId: tenantInPrefix(key) });

/** A session under its own token. Other values of that shape belong to some plugin. */
function sessionIn(key: string, value: unknown): SessionRow | undefined {
  const parsed = Object(typeof value === "string" ? parseJSON(value) : value);
  return parsed.session?.token === key ? parsed.session : undefined;
}

const verificationIn = (value: unknown): unknown =>
  Object(typeof value === "string" ? parseJSON(value) : value).value;
