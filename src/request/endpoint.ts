import {
  type AuthEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { isolationOf } from "../isolation/isolation";
import { currentScope, getTenantId, requestSlot, runInScope, type Scope } from "./scope";

/** An endpoint that is running, as far as the scope has to know it. */
export type Endpoint = Pick<AuthEndpointContext, "context" | "path" | "headers"> &
  Partial<Pick<AuthEndpointContext, "request" | "body" | "query" | "params" | "responseHeaders">>;

/** On the context, because better-auth copies the endpoint's own object on its way. */
const OUTERMOST = Symbol.for("better-auth-tenant:outermost");

/** The endpoint that the request is about, as opposed to those that it calls through `auth.api`. */
export const requestEndpoint = requestSlot<Endpoint>();

/** True from the first call on that came with a request or headers. */
const hasCaller = requestSlot<boolean>();

/** Remembers the endpoint that a request is about. Calls inside of it share the request's scope. */
export function noteEndpoint(endpoint: Endpoint): void {
  const { headers, request } = endpoint;
  const context = endpoint.context as { [OUTERMOST]?: true };
  if (headers || request) hasCaller.set(true);
  // A call that is made with the context of another has its mark as well.
  if (requestEndpoint.get()) return void delete context[OUTERMOST];
  requestEndpoint.set(endpoint);
  context[OUTERMOST] = true;
}

/**
 * Server code: a job in `runInTenant`, or a call of `auth.api` with neither request nor headers. What
 * a request calls through `auth.api` belongs to that request.
 */
export const isServerCall = (): boolean => !hasCaller.get();

/** A call of `auth.api` with neither request nor headers. */
export const hasNoRequest = ({ request, headers }: Pick<Endpoint, "request" | "headers">) =>
  !request && !headers;

/** Runs a function in a request of its own, which counts as the caller's if this one does. */
export function runSeparately<T>(run: () => Promise<T>): Promise<T> {
  const isCallers = hasCaller.get();
  return runInScope(undefined, () => {
    hasCaller.set(isCallers);
    return run();
  });
}

export const isOutermost = ({ context }: { context: object }) => OUTERMOST in context;

export const currentEndpoint = (): Endpoint | undefined => tryGetCurrentAuthEndpointContext();

/**
 * Changes values that a call carries, for all later hooks and the endpoint. On the call itself: what
 * a hook returns instead is undone by a later hook that returns the call as it was given it.
 *
 * Guarded by "what is written on the current endpoint is what later hooks and the endpoint see".
 */
export function changeCall(place: "query" | "body" | "params", changes: object): void {
  const endpoint = currentEndpoint();
  if (endpoint) endpoint[place] = { ...endpoint[place], ...changes };
}

/** An OAuth state that came back: better-auth's part, tenant and host in its prefix, a signature. */
export interface ReturnedState {
  state: string;
  tenantId: string;
  /** Where the flow was started, with `redirectBaseURL`. */
  host?: string | undefined;
  signature?: string | undefined;
}

/** A call to a tenant route, which runs better-auth's own endpoint inside a tenant. */
export interface TenantRoute {
  /** The path that the request came to; undefined for calls of `auth.api`. */
  path?: string;
  /** The tenant of the call around this one. */
  tenantId?: string | null;
  /** For a provider's callback: what it came back with, and by which redirect URI. */
  callback?: { state: ReturnedState | undefined; hasState: boolean; tenant: string | undefined };
}

const TENANT_ROUTE = Symbol.for("better-auth-tenant:tenant-route");

type Marked = { [TENANT_ROUTE]?: TenantRoute };

/**
 * The mark is on the context: better-auth makes one for each request, hands it to `onRequest`, and
 * copies it for the endpoint. No caller can write it, and no plugin in between can lose it.
 *
 * Guarded by "what onRequest writes on its context reaches the endpoint of that request alone".
 */
export const tenantRouteOf = ({ context }: { context: object }): TenantRoute | undefined =>
  (context as Marked)[TENANT_ROUTE];

export function markTenantRoute(context: object, route: TenantRoute): void {
  Object.assign(context, { [TENANT_ROUTE]: route });
}

/** The context for a call of `auth.api` to a tenant route. */
export function asTenantRoute(context: AuthContext, route: TenantRoute): AuthContext {
  // Without the overrides of the scope that the call is made in.
  const isolation = isolationOf(context);
  const isChanged = getTenantId() !== null || isolation?.options.platformPolicy;
  const base = (isChanged && isolation?.ctx) || context;
  const { sessionConfig, password, socialProviders } = base;
  // better-auth may have read the base URL from the request.
  const options = { ...base.options, baseURL: context.options.baseURL };
  const configuration = { options, sessionConfig, password, socialProviders };
  return { ...context, ...configuration, [TENANT_ROUTE]: route, session: null } as AuthContext;
}

/** The session of the operator who visits a tenant: valid in it, and no other of the platform is. */
export const visitor = requestSlot<{ token: string; userId: string }>();

/**
 * True while an admin endpoint itself runs, and false once it is done. Cross-tenant access begins and
 * ends with the endpoint: hooks of other plugins have none.
 *
 * Guarded by "R3: a before hook that asks who is there sees and changes the platform's".
 */
export const isAdminRunning = requestSlot<boolean>();

/** Whose data an endpoint of better-auth's admin plugin is about. */
export type AdminTarget = "everybody" | "a user" | "a session" | "a place" | "oneself";

/**
 * All endpoints of better-auth's admin plugin. A contract test compares the list with the plugin:
 * an endpoint that is added there has no cross-tenant access until it is written down here.
 */
export const ADMIN_ENDPOINTS: Readonly<Record<string, AdminTarget>> = Object.fromEntries(
  Object.entries({
    everybody: "list-users",
    "a user":
      "get-user set-role update-user list-user-sessions ban-user unban-user impersonate-user revoke-user-sessions remove-user set-user-password",
    "a session": "revoke-user-session",
    "a place": "create-user",
    oneself: "has-permission stop-impersonating",
  }).flatMap(([target, names]) =>
    names.split(" ").map((name) => [`/admin/${name}`, target as AdminTarget]),
  ),
);

/** better-auth's own admin plugin: one of the application that calls itself `admin` does not count. */
export function adminPlugin({ options }: AuthContext) {
  const plugin = options.plugins?.find(({ id }) => id === "admin");
  const paths = new Set(Object.values(plugin?.endpoints ?? {}).map(({ path }) => path));
  return Object.keys(ADMIN_ENDPOINTS).every((path) => paths.has(path)) ? plugin : undefined;
}

/** What an admin endpoint is about, when the request itself is about that endpoint. */
export function adminTarget(endpoint: Endpoint | undefined): AdminTarget | undefined {
  if (!endpoint?.path || !Object.hasOwn(ADMIN_ENDPOINTS, endpoint.path)) return undefined;
  return isOutermost(endpoint) && adminPlugin(endpoint.context)
    ? ADMIN_ENDPOINTS[endpoint.path]
    : undefined;
}

/**
 * The scope of the running code. Cross-tenant access is granted to an admin endpoint, and not to what
 * its hooks call through `auth.api`.
 */
export function effectiveScope(): Scope {
  const scope = currentScope();
  if (scope.access === "own" || adminTarget(currentEndpoint())) return scope;
  return { ...scope, access: "own" };
}
