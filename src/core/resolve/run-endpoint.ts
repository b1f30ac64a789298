import type { AuthContext, GenericEndpointContext } from "better-auth";
import { dispatchAuthEndpoint, isAPIError } from "better-auth/api";
import { kAPIErrorHeaderSymbol } from "better-call";
import { asTenantRoute, runSeparately } from "../endpoint";
import type { Answer } from "../hooks";
import { getTenantId } from "../request";

/**
 * Returns a handler that runs better-auth's endpoint for the tenant that the call names, or in
 * which the calling code runs.
 */
export const runFor =
  <Response>(name: string, own: Endpoint) =>
  (ctx: GenericEndpointContext) =>
    runEndpoint<Response>(ctx, name, own, {
      body: { ...ctx.body },
      context: asTenantRoute(ctx.context, { tenantId: getTenantId() }),
    });

type Endpoint = Parameters<typeof dispatchAuthEndpoint>[0];

/**
 * Runs one of better-auth's endpoints, with all hooks, in a separate request. If a plugin has
 * replaced the endpoint (a sign-in that asks a directory), runs the replacement. Of two endpoints
 * with one name, better-auth takes the last.
 */
export async function runEndpoint<Response>(
  ctx: GenericEndpointContext,
  name: string,
  own: Endpoint,
  input: Partial<Pick<GenericEndpointContext, "body" | "query" | "headers">> & {
    context: AuthContext;
  },
): Promise<Answer<Response>> {
  const { plugins = [] } = ctx.context.options;
  const bringing = plugins.findLast(({ endpoints }) => endpoints?.[name]);
  const endpoint: Endpoint = bringing?.endpoints?.[name] ?? own;
  const everything = { asResponse: false, returnHeaders: true, returnStatus: true };
  const answer = await runSeparately(() =>
    dispatchAuthEndpoint(endpoint, { ...ctx, ...input, ...everything }),
  ).catch(withFinalHeaders);
  return answer as Answer<Response>;
}

/** Rethrows an error with the headers that it has after the hooks, not those it was thrown with. */
function withFinalHeaders(error: unknown): never {
  const headers = (error as { [kAPIErrorHeaderSymbol]?: Headers })?.[kAPIErrorHeaderSymbol];
  if (isAPIError(error) && headers) error.headers = headers;
  throw error;
}
