import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { HIDE_METADATA } from "better-auth";
import { callbackOAuth, createAuthEndpoint } from "better-auth/api";
import { tenantProviders } from "../oauth/providers";
import { runEndpoint } from "../scope/run";
import { createScope } from "../scope/scope";
import type { EnterScope } from "../scope/settle";

const { body, query, metadata } = callbackOAuth.options;

/**
 * Where providers send people back to. The request names no tenant, and need not: its state does,
 * and better-auth's callback runs in whatever tenant that state was made for.
 */
export const callbackTenantOAuth = (enter: EnterScope) =>
  createAuthEndpoint(
    "/tenant/callback/:id",
    {
      method: ["GET", "POST"],
      body,
      query,
      metadata: { ...HIDE_METADATA, allowedMediaTypes: metadata.allowedMediaTypes },
    },
    async (ctx) => {
      if (ctx.method === "POST") {
        // A form_post comes from the provider's site, without our cookies. better-auth turns it
        // into a GET, which has them, but on its own path.
        const params = new URLSearchParams({ ...ctx.body, ...ctx.query });
        const path = `/tenant/callback/${encodeURIComponent(ctx.params.id)}`;
        throw ctx.redirect(`${ctx.context.baseURL}${path}?${params}`);
      }
      const scope = createScope(null);
      scope.awaitsState = () => enter(scope, tryGetCurrentAuthEndpointContext());
      const { response } = await runEndpoint<never>(
        ctx,
        scope,
        callbackOAuth,
        { params: ctx.params, query: ctx.query, method: "GET" },
        { socialProviders: tenantProviders(ctx) },
      );
      return response;
    },
  );
