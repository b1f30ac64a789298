import type { HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import { tenantOfAnswer } from "../naming/request";
import type { ResolvedOptions } from "../options";
import { getTenantId, runAsResolver } from "../scope/scope";

/**
 * A desktop app opens this endpoint in a browser, which can name a tenant in the query only. The
 * endpoint then calls `/sign-in/social` over the network with the headers that it got, so the
 * tenant has to be among those. Otherwise the sign-in would start on the platform.
 */
export const nameTenantInHeaders = (options: ResolvedOptions): BeforeHook => ({
  matcher: ({ path }) => path === "/electron/init-oauth-proxy" && getTenantId() !== null,

  handler: createAuthMiddleware(async (ctx) => {
    const tenantId = getTenantId();
    if (!ctx.request || tenantId === null) return;
    const headers = new Headers(ctx.request.headers);
    headers.set(options.tenantHeader, tenantId);
    // A slug would win over the id.
    if (options.bySlug) headers.delete(options.bySlug.slugHeader);
    await assertCallLeadsTo(tenantId, ctx, options, headers);
    return { context: { request: new Request(ctx.request, { headers }) } };
  }),
});

/**
 * Where the resolver goes by the host, the call has to go to a host of the tenant's: it overrules
 * the header. With a base URL that is the same for everybody, it goes to the platform's.
 */
async function assertCallLeadsTo(
  tenantId: string,
  ctx: HookEndpointContext,
  { resolveTenantId }: ResolvedOptions,
  sent: Headers,
): Promise<void> {
  if (!resolveTenantId) return;
  const { baseURL } = ctx.context;
  const path = "/sign-in/social";
  const headers = new Headers(sent);
  headers.set("host", new URL(baseURL).host);
  const request = new Request(baseURL + path, { headers, method: "POST" });
  const call = { ...ctx, path, headers, request };
  const answer = await tenantOfAnswer(ctx, await runAsResolver(() => resolveTenantId(call)));
  if (answer === undefined || answer === tenantId) return;
  throw tenantError(
    "TENANT_SCOPE_CONFLICT",
    `The sign-in would start at ${new URL(baseURL).host}, which is no host of this tenant. Set baseURL: { allowedHosts: [...] } with the hosts of your tenants.`,
  );
}
