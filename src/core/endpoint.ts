import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { APIError } from "better-auth/api";
import { isolationOf } from "./isolation";
import { currentRequest, type Endpoint, runInScope } from "./request";
import { errorRedirect } from "./utils";

/**
 * Marks the context of the endpoint that a request is about. better-auth copies the endpoint's own
 * object, so a mark there would be lost.
 */
const OUTERMOST = Symbol.for("better-auth-tenant:outermost");

/**
 * Remembers the first endpoint of a request as the endpoint that the request is about. Endpoints
 * that it calls share its scope, except tenant routes.
 */
export function noteEndpoint(endpoint: Endpoint): void {
  const record = currentRequest();
  const { headers, request } = endpoint;
  const context = endpoint.context as { [OUTERMOST]?: true };
  if (headers || request) record.hasCaller = true;
  if (record.endpoint) {
    // A call that reuses the context of another endpoint has that endpoint's mark as well.
    delete context[OUTERMOST];
    return;
  }
  record.endpoint = endpoint;
  context[OUTERMOST] = true;
}

/**
 * Returns whether server code makes the call: a job in `runInTenant`, or a call of `auth.api` with
 * neither request nor headers. Inside a caller's request, only code in `runInTenant`, `runInScope`
 * or a resolver counts.
 */
export const isServerCall = (): boolean => !currentRequest().hasCaller;

export const hasNoRequest = ({ request, headers }: Pick<Endpoint, "request" | "headers">) =>
  !request && !headers;

/** Runs a function in a new request, which has a caller if the current request has one. */
export function runSeparately<T>(run: () => Promise<T>): Promise<T> {
  const { hasCaller } = currentRequest();
  return runInScope(undefined, () => {
    currentRequest().hasCaller = hasCaller;
    return run();
  });
}

export const isOutermost = ({ context }: { context: object }) => OUTERMOST in context;

export const currentEndpoint = (): Endpoint | undefined => tryGetCurrentAuthEndpointContext();

/**
 * Changes the query, body or params of a call, for all later hooks and the endpoint. Writes to the
 * call itself: changes that a hook returns are lost if a later hook returns the call it was given.
 *
 * Guarded by "what is written on the current endpoint is what later hooks and the endpoint see".
 */
export function changeCall(place: "query" | "body" | "params", changes: object): void {
  const endpoint = currentEndpoint();
  if (endpoint) endpoint[place] = { ...endpoint[place], ...changes };
}

/** A call to a tenant route, which runs better-auth's own endpoint inside a tenant. */
export interface TenantRoute {
  /** The requested path; undefined for calls of `auth.api`. */
  path?: string;
  /** The tenant in which the calling code runs, used if the call names none. */
  tenantId?: string | null;
  /** What an extension removed from the query: see `extractFromQuery`. */
  extracted?: object | undefined;
}

const TENANT_ROUTE = Symbol.for("better-auth-tenant:tenant-route");

type Marked = { [TENANT_ROUTE]?: TenantRoute };

/**
 * Returns the tenant route of a call, if it is one. The mark is on the context, which better-auth
 * creates for each request, passes to `onRequest` and copies for the endpoint. A caller cannot
 * write the mark, and a hook that returns its context does not lose it.
 *
 * Guarded by "what onRequest writes on its context reaches the endpoint of that request alone".
 * Guarded by "a dispatch keeps what a hook has written on the context, even if other hooks replace the context".
 */
export const tenantRouteOf = ({ context }: { context: object }): TenantRoute | undefined =>
  (context as Marked)[TENANT_ROUTE];

export function markTenantRoute(context: object, route: TenantRoute): void {
  Object.assign(context, { [TENANT_ROUTE]: route });
}

/** Returns the context for a call of `auth.api` to a tenant route. */
export function asTenantRoute(context: AuthContext, route: TenantRoute): AuthContext {
  // Drops what the scope of the calling code has overridden.
  const base = isolationOf(context)?.ctx ?? context;
  const { sessionConfig, password, socialProviders } = base;
  // better-auth may have read the base URL from the request.
  const options = { ...base.options, baseURL: context.options.baseURL };
  const configuration = { options, sessionConfig, password, socialProviders };
  return { ...context, ...configuration, [TENANT_ROUTE]: route, session: null } as AuthContext;
}

/**
 * Turns the error of a followed link into a redirect to the page that the link names, as
 * better-auth does. Returns other errors unchanged.
 */
export function asErrorRedirect(error: APIError): APIError {
  const { request, query, context } = currentEndpoint() ?? {};
  const page: unknown = query?.errorCallbackURL ?? query?.callbackURL;
  if (!context || request?.method !== "GET" || typeof page !== "string") return error;
  if (!context.isTrustedOrigin(page, { allowRelativePaths: true })) return error;
  return errorRedirect(context, String(error.body?.code), page);
}
