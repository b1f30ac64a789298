import { createAuthMiddleware } from "better-auth/api";
import type { BeforeHook } from "../framework";
import type { ResolvedOptions } from "../options";
import { getTenantId } from "../scope/scope";

/**
 * A desktop app opens this endpoint in a browser, which can name a tenant in the query only. The
 * endpoint then calls `/sign-in/social` over the network with the headers that it got, so the
 * tenant has to be among those. Otherwise the sign-in would start on the platform.
 */
export const nameTenantInHeaders = ({ tenantHeader }: ResolvedOptions): BeforeHook => ({
  matcher: ({ path }) => path === "/electron/init-oauth-proxy" && getTenantId() !== null,

  handler: createAuthMiddleware(async (ctx) => {
    const tenantId = getTenantId();
    if (!ctx.request || tenantId === null) return;
    const headers = new Headers(ctx.request.headers);
    headers.set(tenantHeader, tenantId);
    return { context: { request: new Request(ctx.request, { headers }) } };
  }),
});
