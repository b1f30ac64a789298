import type { GenericEndpointContext } from "better-auth";
import { dispatchAuthEndpoint, isAPIError } from "better-auth/api";
import type { Session, User } from "better-auth/types";
import { runInScope, type Scope } from "./scope";

/** Marks the context of an endpoint that this plugin runs in a scope it has entered itself. */
export const SCOPED = Symbol("better-auth-tenant:scoped");

// better-call keeps the headers that belong to a thrown error under this symbol and exports it
// from no documented entry. Without them a failed sign-in, and every redirect, loses its cookies.
const ERROR_HEADERS = Symbol.for("better-call:api-error-headers");

export type Endpoint = Parameters<typeof dispatchAuthEndpoint>[0];
type NewSession = { session: Session & Record<string, unknown>; user: User };

/** Runs one of better-auth's own endpoints, with all of its hooks, inside a scope. */
export async function runEndpoint<Response>(
  ctx: GenericEndpointContext,
  scope: Scope,
  endpoint: Endpoint,
  input: Partial<Pick<GenericEndpointContext, "body" | "query" | "params" | "method">>,
  changes: Partial<GenericEndpointContext["context"]>,
): Promise<{ response: Response; newSession: NewSession | null }> {
  let newSession: NewSession | null = null;
  const context = {
    ...ctx.context,
    ...changes,
    [SCOPED]: true,
    // Whatever session the caller has is looked up again, inside the scope.
    session: null,
    setNewSession(session: NewSession | null) {
      newSession = session;
      this.newSession = session;
    },
  };
  try {
    const dispatched = await runInScope(scope, () =>
      dispatchAuthEndpoint(endpoint, {
        ...ctx,
        ...input,
        context,
        asResponse: false,
        returnHeaders: true,
      }),
    );
    const { headers, response } = dispatched as { headers?: Headers; response: Response };
    carryHeaders(headers, ctx);
    return { response, newSession };
  } catch (error) {
    // The error becomes the answer of our endpoint, and takes its headers along: a redirect is one.
    if (isAPIError(error)) error.headers = headersOf(error);
    throw error;
  }
}

function carryHeaders(headers: Headers | undefined, ctx: GenericEndpointContext) {
  headers?.forEach((value, name) => {
    if (name === "set-cookie") ctx.responseHeaders.append(name, value);
    else ctx.setHeader(name, value);
  });
}

function headersOf(error: { headers: HeadersInit; [ERROR_HEADERS]?: Headers }): HeadersInit {
  return error[ERROR_HEADERS] ?? error.headers;
}
