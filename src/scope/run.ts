import type { AuthContext, GenericEndpointContext } from "better-auth";
import { dispatchAuthEndpoint } from "better-auth/api";
import type { Session, User } from "better-auth/types";
import type { EndpointOptions, StrictEndpoint } from "better-call";
import { runInScope, type Scope } from "./scope";

/** Marks the context of an endpoint that this plugin runs in a scope it has entered itself. */
export const SCOPED = Symbol("better-auth-tenant:scoped");

export type Endpoint = Parameters<typeof dispatchAuthEndpoint>[0];
type NewSession = { session: Session & Record<string, unknown>; user: User };

/** What better-auth expects of an endpoint when it asks for everything. */
type Answer<Response> = {
  response: Response;
  headers?: Headers | undefined;
  status?: number | undefined;
};

/**
 * An endpoint that stands for another one. It is called by better-auth as it is: the input is
 * checked, and the answer made, by the endpoint inside, and doing either twice would cost a
 * twentieth of a sign-in.
 */
export function standIn<Path extends string, const Options extends EndpointOptions, Response>(
  path: Path,
  options: Options,
  run: (ctx: GenericEndpointContext) => Promise<Answer<Response>>,
) {
  return Object.assign(run, { path, options }) as unknown as StrictEndpoint<
    Path,
    Options,
    Response
  >;
}

/**
 * Runs one of better-auth's own endpoints, with all of its hooks, inside a scope. The context is the
 * caller's own, made by better-auth for this one call, and becomes the context of what runs inside.
 */
export async function runEndpoint<Response>(
  ctx: GenericEndpointContext,
  scope: Scope,
  endpoint: Endpoint,
  input: Partial<Pick<GenericEndpointContext, "body">>,
  changes: Partial<GenericEndpointContext["context"]>,
): Promise<Answer<Response> & { newSession: NewSession | null }> {
  let newSession: NewSession | null = null;
  Object.assign(ctx.context, changes, {
    [SCOPED]: true,
    // Whatever session the caller has is looked up again, inside the scope.
    session: null,
    setNewSession(this: AuthContext, session: NewSession | null) {
      newSession = session;
      this.newSession = session;
    },
  });
  const everything = { asResponse: false, returnHeaders: true, returnStatus: true };
  const answer = await runInScope(scope, () =>
    dispatchAuthEndpoint(endpoint, { ...ctx, ...input, ...everything }),
  );
  return { ...(answer as Answer<Response>), newSession };
}
