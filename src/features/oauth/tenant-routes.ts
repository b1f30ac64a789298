import { HIDE_METADATA } from "better-auth";
import { APIError, callbackOAuth, signInSocial } from "better-auth/api";
import type { SocialProviderList } from "better-auth/social-providers";
import type * as z from "zod";
import { asTenantRoute } from "../../core/endpoint";
import { defineTenantEndpoint } from "../../core/hooks";
import { tenantId } from "../../core/input";
import { runEndpoint, runFor } from "../../core/resolve/run-endpoint";
import { redirect } from "../../core/utils";
import type { TenantSession } from "../management/options";
import { takeStatePrefix } from "./state-prefix";

type TenantUser = TenantSession["user"];

const social = signInSocial();

/** Response to a social sign-in: the provider's URL, or the user if the request had an id token. */
export type SocialAnswer =
  | { redirect: boolean; url: string; token?: undefined; user?: undefined }
  | { redirect: boolean; url?: undefined; token: string; user: TenantUser };

export type ProviderName = SocialProviderList[number] | (string & {});

export const signInSocialTenant = defineTenantEndpoint(
  "/tenant/sign-in/social",
  {
    method: "POST",
    body: social.options.body.extend({
      tenantId: tenantId.optional(),
      // Typed again, because better-auth types the input of this field for its own path only.
      provider: social.options.body.shape.provider as z.ZodType<ProviderName, ProviderName>,
    }),
    metadata: { openapi: { description: "Start social sign-in for a tenant" } },
  },
  runFor<SocialAnswer>("signInSocial", social),
);

const { body, query, metadata } = callbackOAuth.options;

/** Runs better-auth's callback in the tenant of the state. Providers redirect users to it. */
export const callbackTenantOAuth = defineTenantEndpoint(
  "/tenant/callback/:id",
  {
    method: ["GET", "POST"],
    body,
    query,
    metadata: { ...HIDE_METADATA, allowedMediaTypes: metadata.allowedMediaTypes },
  },
  async (ctx) => {
    if (ctx.method === "POST") {
      // A form post from the provider's site lacks our cookies. So the plugin redirects to a GET,
      // which has them.
      const sent = query.safeParse({ ...ctx.body, ...ctx.query });
      if (!sent.success) throw APIError.fromStatus("BAD_REQUEST", { code: "VALIDATION_ERROR" });
      const params = new URLSearchParams(sent.data);
      const { tenant } = ctx.query ?? {};
      if (typeof tenant === "string") params.set("tenant", tenant);
      // Passes the id on as it was sent: better-auth's callback does not decode it either.
      throw redirect(`${ctx.context.baseURL}/tenant/callback/${ctx.params?.id}?${params}`);
    }
    const params = new URLSearchParams(ctx.query);
    const context = asTenantRoute(ctx.context, { extracted: takeStatePrefix(params) });
    return runEndpoint<never>(ctx, "callbackOAuth", callbackOAuth, {
      query: Object.fromEntries(params),
      context,
    });
  },
);
