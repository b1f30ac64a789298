import type { GenericEndpointContext } from "better-auth";
import { tenantProviders } from "../oauth/providers";
import type { ResolvedOptions } from "../options";
import { runEndpoint } from "../scope/run";
import { createScope } from "../scope/scope";
import { namedTenantId, requireTenant } from "../tenants/naming";

/** Enters the scope of the tenant that the request names, and runs better-auth's endpoint in it. */
export async function runForTenant<Response>(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  endpoint: Parameters<typeof runEndpoint>[2],
) {
  const tenant = await requireTenant(ctx, await namedTenantId(ctx, options));
  const { tenantId: _, ...body } = ctx.body;
  return runEndpoint<Response>(
    ctx,
    createScope(tenant.id),
    endpoint,
    { body },
    { socialProviders: tenantProviders(ctx) },
  );
}
