import {
  type AuthEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { lazy } from "../framework";
import { instanceOf, noteCall } from "./instance";
import { currentScope, currentTransaction, notes, type ReturnedState, type Settled } from "./scope";

/** An endpoint that is running, as far as the scope has to know it. */
export type Endpoint = Pick<AuthEndpointContext, "context" | "path" | "headers"> &
  Partial<Pick<AuthEndpointContext, "request" | "body" | "query" | "params" | "responseHeaders">>;

/** On the context, because better-auth copies the endpoint's own object on its way. */
const OUTERMOST = Symbol.for("better-auth-tenant:outermost");

export const SENT = Symbol.for("better-auth-tenant:sent");

/** On the context of a call, what we have taken out of its headers. */
const TAKEN_OUT = Symbol.for("better-auth-tenant:taken-out");

type Change = (headers: Headers) => void | Promise<void>;

/** What is noted there: the headers of a call before the bearer plugin has written into them, too. */
export type Noted = { [OUTERMOST]?: true; [SENT]?: Headers; [TAKEN_OUT]?: Change[] };

type Call = { headers?: Headers | undefined; context: object };

/** Takes something out of the headers of a call, whatever hooks make of them afterwards. */
export function takeOut({ headers, context }: Call, change: Change): ReturnType<Change> {
  const noted: Noted = context;
  noted[TAKEN_OUT] = [...(noted[TAKEN_OUT] ?? []), change];
  return headers && change(headers);
}

/**
 * Does it again once a hook has run: it may have written into the headers of the call, or hand
 * headers back, which are answered as they may count. Those may be somebody's that nobody can change.
 */
export async function takeOutAgain({ headers, context }: Call, handedBack?: Headers) {
  const { [TAKEN_OUT]: changes = [] }: Noted = context;
  const own = handedBack && new Headers(handedBack);
  for (const change of changes) {
    if (headers) await change(headers);
    if (own) await change(own);
  }
  return own;
}

export const hasTakenOut = ({ context }: Call) => TAKEN_OUT in context;

/**
 * Remembers the endpoint that a request is about. Endpoints that its hooks and handlers call
 * through `auth.api` share the request's scope, but it is not theirs to choose.
 */
export function noteEndpoint(
  endpoint: Partial<Pick<Endpoint, "headers" | "request">> & { context: object },
): void {
  const noted: Noted = endpoint.context;
  const { headers, request } = endpoint;
  // A copy: better-auth writes what a hook changes into the very object.
  if (headers?.has("authorization")) noted[SENT] ??= new Headers(headers);
  const { endpoint: first, resolving } = notes();
  noteCall(noted, !first, resolving);
  const known = notes();
  if (resolving) known.resolving = resolving;
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
export const isServersOwn = (): boolean => !notes().isVisited;

export const isOutermost = ({ context }: { context: object }) => OUTERMOST in context;

export const currentEndpoint = (): Endpoint | undefined => tryGetCurrentAuthEndpointContext();

export const apart = lazy(() => import("./apart"));

/** On a call of the adapter that may come out of a queue: where it is from. See `back.ts`. */
export const FROM = Symbol.for("better-auth-tenant:from");

/** Runs something where it is from. */
export type Here = <T>(run: () => Promise<T>) => Promise<T>;

type OfInstance = { adapter: object };

/** Whether something that is running is of another instance than the one that is asked. */
export const isOfAnother = (around: { adapter?: object } | undefined, asked: OfInstance) =>
  around?.adapter !== undefined && instanceOf(around) !== instanceOf(asked);

/** Whether this instance is asked in a hook of another one, or in a transaction of it. */
export const isAskedByAnother = (asked: OfInstance) =>
  isOfAnother(currentEndpoint()?.context, asked) || isOfAnother(currentTransaction(), asked);

/** Runs what an instance is asked for: without anything of another one that may be around it. */
export const runAsOwn = <T>(ctx: AuthContext, run: () => T) =>
  isAskedByAnother(ctx) ? apart().then(({ runApart }) => runApart(ctx, run)) : run();

/** The endpoint that the request is about, seen from an endpoint that it may have called. */
export function endpointOfRequest(): Endpoint | undefined {
  const called = currentEndpoint();
  if (!called || isOutermost(called)) return called;
  return (notes().endpoint as Endpoint | undefined) ?? called;
}

/** A call that came to an endpoint of ours and goes on at better-auth's, inside a tenant. */
export interface StandIn {
  /** The path that the request came to; a call of `auth.api` goes through both endpoints. */
  path?: string;
  /** The tenant of the call around this one, which need not be named again. */
  tenantId?: string | null;
  /** For a provider's callback: what it came back with, and by which redirect URI. */
  callback?: { state: ReturnedState | undefined; hasState: boolean; tenant: string | undefined };
}

const STAND_IN = Symbol.for("better-auth-tenant:stands-in");

type Marked = { [STAND_IN]?: StandIn };

/**
 * The mark is on the context: better-auth makes one for each request, hands it to `onRequest`, and
 * copies it for the endpoint. Nobody outside can write it, and no plugin in between can lose it.
 *
 * Guarded by "what onRequest writes on its context reaches the endpoint of that request alone".
 */
export const standInOf = ({ context }: { context: object }): StandIn | undefined =>
  (context as Marked)[STAND_IN];

export function markStandIn(context: object, standIn: StandIn): void {
  Object.assign(context, { [STAND_IN]: standIn });
}

/** The path that a request came to before it went on at another endpoint. */
export const cameTo = ({ context }: { context: object }): string | undefined =>
  standInOf({ context })?.path;

/** The context for a call of `auth.api` that goes on at another endpoint. */
export const asStandIn = (context: AuthContext, standIn: StandIn): AuthContext =>
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
function reachedScope(scope: Settled): Settled {
  if (scope.reach === "own" || adminTarget(currentEndpoint())) return scope;
  return { ...scope, reach: "own" };
}

/** The settled scope of the running request, if it is known already. */
export function settledScope(): Settled | undefined {
  const scope = currentScope();
  return scope.kind === "settled" ? reachedScope(scope) : undefined;
}

/** Whether this is the session token that the endpoint reads its session by. */
export function carries({ headers, context }: Endpoint, token: string | undefined): boolean {
  const { name } = context.authCookies.sessionToken;
  return headers?.get("cookie")?.includes(`${name}=${token}.`) === true;
}
