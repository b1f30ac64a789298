import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { type AuthContext, HIDE_METADATA } from "better-auth";
import { APIError, callbackOAuth, isAPIError } from "better-auth/api";
import { callbackPath } from "../oauth/build";
import { tenantProviders } from "../oauth/providers";
import { redirect, redirectWithError } from "../oauth/state";
import type { ResolvedOptions } from "../options";
import { runEndpoint, standIn } from "../scope/run";
import { createScope } from "../scope/scope";
import type { EnterScope } from "../scope/settle";

const { body, query, metadata } = callbackOAuth.options;

/**
 * Where providers send people back to. The request names no tenant, and need not: its state does,
 * and better-auth's callback runs in whatever tenant that state was made for.
 */
export const callbackTenantOAuth = (options: ResolvedOptions, enter: EnterScope) =>
  standIn(
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
        const sent = query.safeParse({ ...ctx.body, ...ctx.query });
        if (!sent.success) throw APIError.fromStatus("BAD_REQUEST", { code: "VALIDATION_ERROR" });
        const params = new URLSearchParams(sent.data);
        const path = callbackPath(encodeURIComponent(ctx.params?.id ?? ""));
        throw redirect(`${ctx.context.baseURL}${path}?${params}`);
      }
      const scope = createScope(null);
      scope.awaitsState = () => enter(scope, tryGetCurrentAuthEndpointContext());
      const socialProviders = tenantProviders(ctx, options);
      return runEndpoint<never>(ctx, scope, redirecting(ctx.context), {}, { socialProviders });
    },
  );

/** What better-auth's callback does not catch itself: a database that is away, say. */
function redirecting(context: AuthContext): typeof callbackOAuth {
  const callback = (input: Parameters<typeof callbackOAuth>[0]) =>
    callbackOAuth(input).catch((error: unknown) => {
      if (isAPIError(error)) throw error;
      return redirectWithError(context, error);
    });
  return Object.assign(callback, callbackOAuth) as never;
}
