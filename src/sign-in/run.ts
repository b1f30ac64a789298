import type { GenericEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import { tenantContext } from "../context";
import type { ResolvedOptions } from "../options";
import { type Endpoint, runEndpoint } from "../scope/run";
import { createScope, getTenantId } from "../scope/scope";
import { namedTenantId, requireTenantId } from "../tenants/naming";

/** Enters the scope of the tenant that the request names, and runs better-auth's endpoint in it. */
export async function runForTenant<Response>(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  endpoint: Endpoint & { path: string },
) {
  await askRequestHooks(ctx, endpoint.path);
  const named = await namedTenantId(ctx, options);
  // The hook that ran before has looked it up already, unless this is a call from inside another
  // request.
  const known = named !== undefined && named === getTenantId();
  const tenantId = known ? named : await requireTenantId(ctx, named);
  const { tenantId: own, ...body } = ctx.body ?? {};
  assertText(own);
  return runEndpoint<Response>(
    ctx,
    createScope(tenantId),
    endpoint,
    { body },
    tenantContext(ctx, tenantId, options),
  );
}

function assertText(tenantId: unknown): asserts tenantId is string | undefined {
  if (tenantId === undefined || typeof tenantId === "string") return;
  const message = "[body.tenantId] Invalid input: expected string";
  throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
}

/**
 * Plugins that guard requests by their path (captcha does) have seen the path of our endpoint.
 * They are asked about the one that it stands for, or a tenant's sign-in would go unguarded.
 */
async function askRequestHooks({ request, path, context }: GenericEndpointContext, inner: string) {
  if (!request) return;
  const url = request.url.replace(path, inner);
  for (const { onRequest } of context.options.plugins ?? []) {
    const { method, headers } = request;
    const answer = await onRequest?.(new Request(url, { method, headers }), context);
    if (!answer || !("response" in answer)) continue;
    const { status, headers: answerHeaders } = answer.response;
    const body = await answer.response.json().catch(() => undefined);
    throw new APIError(status as 400, body, answerHeaders);
  }
}
