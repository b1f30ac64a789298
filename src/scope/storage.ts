import { APIError } from "better-auth/api";
import type { SecondaryStorage } from "better-auth/db";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { currentScope, isAdmitted, type Scope } from "./scope";
import type { SessionRow } from "./settle";

export interface StorageRules {
  settleScope(): Promise<Scope>;
  settleScopeBy(session: SessionRow): Promise<unknown> | undefined;
}

const VERIFICATION = "verification:";
export const deletedKey = (tenantId: string) => `tenant-deleted:${tenantId}`;

/**
 * The border of better-auth's secondary storage, where sessions and one-time tokens live without
 * ever reaching the database. One-time tokens are found by names that repeat from tenant to
 * tenant (an e-mail address), so their keys are kept apart. Sessions are found by their token,
 * also by requests that name no tenant, so it is their content that is looked at.
 */
export function confineStorage(raw: SecondaryStorage, rules: StorageRules): SecondaryStorage {
  async function keyInScope(key: string): Promise<string> {
    if (!key.startsWith(VERIFICATION)) return key;
    const scope = currentScope() ?? (await rules.settleScope());
    if (scope.tenantId === null || scope.awaitsState) return key;
    return `tenant:${scope.tenantId}:${key}`;
  }

  /** Whether a value may be seen: R4 for sessions in requests that name no tenant, else R3. */
  async function isVisible(value: unknown): Promise<boolean> {
    const session = sessionIn(value);
    if (!session) return true;
    if (!currentScope()) await rules.settleScopeBy(session);
    const scope = currentScope();
    return !scope || isAdmitted(scope, session.tenantId);
  }

  return {
    increment: (key, ttl) => raw.increment(key, ttl),

    get: async (key) => {
      // A state that comes back is taken, not read: who comes a second time finds none.
      const takes = currentScope()?.awaitsState && key.startsWith(VERIFICATION);
      if (takes) return raw.getAndDelete(key);
      const value = await raw.get(await keyInScope(key));
      if (await isVisible(value)) return value;
      currentScope()?.elsewhere.add(key);
      return null;
    },

    getAndDelete: async (key) => {
      const value = await raw.getAndDelete(await keyInScope(key));
      return (await isVisible(value)) ? value : null;
    },

    set: async (key, value, ttl) => {
      const scope = currentScope();
      // The state of an OAuth flow is read again by a callback that knows its tenant from the
      // state alone. It carries the tenant inside, and its name is random.
      const plain = scope?.startsOAuth && key.startsWith(VERIFICATION);
      if (plain) scope.startsOAuth = false;
      await raw.set(plain ? key : await keyInScope(key), value, ttl);
      if (scope?.tenantId && sessionIn(value)) await dropIfTenantIsGone(key, value, scope.tenantId);
    },

    delete: async (key) => {
      const ownKey = await keyInScope(key);
      if (ownKey === key && !(await isVisible(await raw.get(key)))) return;
      await raw.delete(ownKey);
    },
  };

  /** Somebody who signs in while the tenant is deleted must not keep a session. */
  async function dropIfTenantIsGone(key: string, value: string, tenantId: string) {
    const { user } = JSON.parse(value) as { user?: unknown };
    if (user && !(await raw.get(deletedKey(tenantId)))) return;
    await raw.delete(key);
    throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  }
}

function sessionIn(value: unknown): SessionRow | undefined {
  if (typeof value === "string") {
    // better-auth writes sessions as { session, user }; nothing else has to be parsed.
    return value.startsWith('{"session":') ? sessionIn(JSON.parse(value)) : undefined;
  }
  const session = (value as { session?: unknown } | null | undefined)?.session;
  return typeof session === "object" && session !== null ? session : undefined;
}
