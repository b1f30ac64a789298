import {
  defineRequestState,
  getRequestStateAsyncLocalStorage,
  runWithRequestState,
} from "@better-auth/core/context";

/** Which tenant a request runs in. */
export interface Scope {
  /** null is the platform: no tenant. */
  tenantId: string | null;
  /**
   * True while an OAuth callback has not read its state yet. The state names the tenant, and
   * until then nothing else may be touched.
   */
  awaitsState: boolean;
  /** Users that were read or created through the border in this request (R8). */
  readonly knownUsers: Set<string>;
}

const scopeState = defineRequestState<Scope | null>(() => null);

// better-auth's request state is read through several awaits. The scope is asked for at every
// database call, so the storage behind the state is kept here and read synchronously.
let storage: Awaited<ReturnType<typeof getRequestStateAsyncLocalStorage>> | undefined;

export async function prepareScopes(): Promise<void> {
  storage = await getRequestStateAsyncLocalStorage();
}

export function createScope(tenantId: string | null): Scope {
  return { tenantId, awaitsState: false, knownUsers: new Set() };
}

/** The scope of the running request; none before its tenant is known, and outside of requests. */
export function currentScope(): Scope | undefined {
  return storage?.getStore()?.get(scopeState.ref) ?? undefined;
}

/** Puts the running request, and everything it calls from here on, into the scope. */
export function enterScope(scope: Scope): Scope {
  storage?.getStore()?.set(scopeState.ref, scope);
  return scope;
}

/**
 * Runs a function in a scope of its own. The request around it keeps its scope, so calls for
 * several tenants can run side by side in one request.
 */
export async function runInScope<T>(scope: Scope, fn: () => Promise<T>): Promise<T> {
  return await runWithRequestState(new WeakMap([[scopeState.ref, scope]]), fn);
}

/**
 * The tenant that the running code works for, or null on the platform. Works in every hook,
 * mail sender and callback that better-auth calls during a request.
 */
export function getTenantId(): string | null {
  return currentScope()?.tenantId ?? null;
}
