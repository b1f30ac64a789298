import {
  type AuthEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { currentScope, notes, type ReturnedState, type Scope } from "./scope";

/** An endpoint that is running, as far as the scope has to know it. */
export type Endpoint = Pick<AuthEndpointContext, "context" | "path" | "headers"> &
  Partial<Pick<AuthEndpointContext, "request" | "body" | "query" | "params" | "responseHeaders">>;

/** On the context, because better-auth copies the endpoint's own object on its way. */
const OUTERMOST = Symbol.for("better-auth-tenant:outermost");

type Noted = { [OUTERMOST]?: true };

/**
 * Remembers the endpoint that a request is about. Endpoints that its hooks and handlers call
 * through `auth.api` share the request's scope, but it is not theirs to choose.
 */
export function noteEndpoint(
  endpoint: Partial<Pick<Endpoint, "headers" | "request">> & { context: object },
): void {
  const noted: Noted = endpoint.context;
  const { headers, request } = endpoint;
  const known = notes();
  if (headers || request) known.isVisited = true;
  // A call that is made with the context of another has its mark as well.
  if (known.endpoint) return void delete noted[OUTERMOST];
  known.endpoint = endpoint;
  noted[OUTERMOST] = true;
}

/**
 * Code of the server's own: a job in `runInTenant`, or a call of `auth.api` with neither request nor
 * headers. What a request calls through `auth.api` is that request's.
 */
export const isServerCall = (): boolean => !notes().isVisited;

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

/** A call that came to an endpoint of ours and goes on at better-auth's, inside a tenant. */
export interface TenantRoute {
  /** The path that the request came to; a call of `auth.api` goes through both endpoints. */
  path?: string;
  /** The tenant of the call around this one, which need not be named again. */
  tenantId?: string | null;
  /** For a provider's callback: what it came back with, and by which redirect URI. */
  callback?: { state: ReturnedState | undefined; hasState: boolean; tenant: string | undefined };
}

const STAND_IN = Symbol.for("better-auth-tenant:stands-in");

type Marked = { [STAND_IN]?: TenantRoute };

/**
 * The mark is on the context: better-auth makes one for each request, hands it to `onRequest`, and
 * copies it for the endpoint. Nobody outside can write it, and no plugin in between can lose it.
 *
 * Guarded by "what onRequest writes on its context reaches the endpoint of that request alone".
 */
export const tenantRouteOf = ({ context }: { context: object }): TenantRoute | undefined =>
  (context as Marked)[STAND_IN];

export function markTenantRoute(context: object, standIn: TenantRoute): void {
  Object.assign(context, { [STAND_IN]: standIn });
}

/** The path that a request came to before it went on at another endpoint. */
export const requestedPath = ({ context }: { context: object }): string | undefined =>
  tenantRouteOf({ context })?.path;

/** The context for a call of `auth.api` that goes on at another endpoint. */
export const asTenantRoute = (context: AuthContext, standIn: TenantRoute): AuthContext =>
  Object.assign({ ...context }, { [STAND_IN]: standIn, session: null });

/** Whose data an endpoint of better-auth's admin plugin is about. */
export type AdminTarget = "everybody" | "a user" | "a session" | "a place" | "oneself";

/**
 * All endpoints of better-auth's admin plugin. A contract test compares the list with the plugin:
 * an endpoint that is added there has no reach until it is written down here.
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

/**
 * The admin plugin, if it is better-auth's own: a plugin of the application that calls itself
 * `admin` reaches no further than any other.
 */
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
 * The scope with the reach that the running endpoint has: a wider one was granted to an admin
 * endpoint, and not to what its hooks call through `auth.api`.
 */
function reachedScope(scope: Scope): Scope {
  if (scope.access === "own" || adminTarget(currentEndpoint())) return scope;
  return { ...scope, access: "own" };
}

/** The scope of the running code, as far as the running endpoint reaches. */
export const effectiveScope = (): Scope => reachedScope(currentScope());

/** Whether this is the session token that the endpoint reads its session by. */
export function carries({ headers, context }: Endpoint, token: string | undefined): boolean {
  const { name } = context.authCookies.sessionToken;
  return headers?.get("cookie")?.includes(`${name}=${token}.`) === true;
}
