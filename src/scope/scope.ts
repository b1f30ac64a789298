import {
  defineRequestState,
  getRequestStateAsyncLocalStorage,
  runWithRequestState,
} from "@better-auth/core/context";
import { BetterAuthError } from "better-auth";

/** Which tenant a request runs in. */
export interface Scope {
  /** null is the platform: no tenant. */
  tenantId: string | null;
  /**
   * Set while an OAuth callback has not read its state yet. The state names the tenant, and until
   * then nothing else may be touched. Called when it is known.
   */
  awaitsState?: ((scope: Scope) => void) | undefined;
  /**
   * Set on the endpoints of better-auth's admin plugin, which are about other people: an admin of
   * the platform visits the tenant that it names, and without a name it sees all of them.
   */
  admin?: "visits" | "sees all" | undefined;
  /** True on the platform, where the resolver said so: a link may still lead into its tenant. */
  byHost?: boolean;
  /** True between the choice of a provider and the state that is made for it. */
  startsOAuth?: boolean;
  /** A token that came in sealed, and what was in it. */
  openedToken?: { sealed: string; token: string };
  /** Tokens of sessions of somewhere else that the request turned out to carry (R5). */
  readonly elsewhere: Set<string>;
  /** Users that were read or created through the border in this request, and their tenant (R8). */
  readonly knownUsers: Map<string, string | null>;
}

const scopeState = defineRequestState<Scope | null>(() => null);
const outermostState = defineRequestState<unknown>(() => null);

// better-auth's request state is read through several awaits. The scope is asked for at every
// database call, so the storage behind the state is kept here and read synchronously.
let storage: Awaited<ReturnType<typeof getRequestStateAsyncLocalStorage>> | undefined;

export async function prepareScopes(): Promise<void> {
  storage = await getRequestStateAsyncLocalStorage();
  if (keepsRequestsApart(storage)) return;
  throw new BetterAuthError("tenantAuth() needs AsyncLocalStorage, which this runtime lacks");
}

/**
 * Where there is no AsyncLocalStorage, better-auth may stand in for it with a single variable, which
 * belongs to whoever came last until they are done. That would be the end of the border.
 */
function keepsRequestsApart(candidate: NonNullable<typeof storage>): boolean {
  const probe = new WeakMap<object, unknown>();
  void candidate.run(probe, async () => {});
  return candidate.getStore() !== probe;
}

export function createScope(tenantId: string | null): Scope {
  return { tenantId, elsewhere: new Set(), knownUsers: new Map() };
}

/** The scope of the running request; none before its tenant is known, and outside of requests. */
export function currentScope(): Scope | undefined {
  return storage?.getStore()?.get(scopeState.ref) ?? undefined;
}

/**
 * Remembers the endpoint that a request is about. Endpoints that its hooks and handlers call
 * through `auth.api` share the request's scope, but it is not theirs to choose.
 */
export function noteEndpoint(endpoint: { context: object }): void {
  const store = storage?.getStore();
  if (!store || store.has(outermostState.ref)) return;
  store.set(outermostState.ref, endpoint);
  Object.assign(endpoint.context, { [OUTERMOST]: true });
}

export const isOutermost = ({ context }: { context: object }) => OUTERMOST in context;

export function outermostEndpoint(): unknown {
  return storage?.getStore()?.get(outermostState.ref);
}

const OUTERMOST = Symbol("better-auth-tenant:outermost");

/** Puts the running request, and everything it calls from here on, into the scope. */
export function enterScope(scope: Scope): Scope {
  storage?.getStore()?.set(scopeState.ref, scope);
  return scope;
}

/** The state of an OAuth callback has named its tenant. */
export function settleByState(scope: Scope, tenantId: string | null): void {
  const settled = scope.awaitsState;
  scope.awaitsState = undefined;
  scope.tenantId = tenantId;
  settled?.(scope);
}

/** Whether a row of a tenant, or of the platform with null, is inside the scope. */
export function isInside(scope: Scope, tenantId: string | null | undefined): boolean {
  return scope.admin === "sees all" || (tenantId ?? null) === scope.tenantId;
}

/** The same for a session that is looked up by its token: here visitors are let in. */
export function isAdmitted(scope: Scope, tenantId: string | null | undefined): boolean {
  return isInside(scope, tenantId) || (scope.admin === "visits" && (tenantId ?? null) === null);
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
