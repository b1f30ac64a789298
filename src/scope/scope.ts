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
  /** True between the choice of a provider and the state that is made for it. */
  startsOAuth?: boolean;
  /** A token that came in sealed, and what was in it. */
  openedToken?: { sealed: string; token: string };
  /** True once a session was looked for by its token and was not found in this tenant (R5). */
  missedSession: boolean;
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
  return { tenantId, awaitsState: false, missedSession: false, knownUsers: new Set() };
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
 * Runs server code that belongs to no request (a job, a seed, a test) inside a tenant: all of
 * better-auth that it calls sees that tenant only.
 */
export function runInTenant<T>(tenantId: string, fn: () => Promise<T>): Promise<T> {
  return runInScope(createScope(tenantId), fn);
}

/**
 * The tenant that the running code works for, or null on the platform. Works in every hook,
 * mail sender and callback that better-auth calls during a request.
 */
export function getTenantId(): string | null {
  return currentScope()?.tenantId ?? null;
}
