import type { GenericEndpointContext } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import type { ResolvedOptions, TenantManagementAction } from "../options";
import type { ProviderName } from "../request/tenant-routes";
import { jsonObject, limited, tenantId, text } from "../tenants/input";
import { requireTarget } from "../tenants/management";
import { manage } from "./configs";
import { rotateOAuthConfigs } from "./rotate";

// The type offers the built-in providers, and takes any text: that is for the server to refuse.
const providerId = text(255).meta({ description: "A built-in social provider" }) as z.ZodType<
  ProviderName,
  ProviderName
>;

const clientSecret = text(8192).meta({ description: "The tenant's client secret; never returned" });

const fields = {
  scopes: z.array(text(255)).max(50).nullish().meta({ description: "Scopes to ask for" }),
  redirectURI: limited(2048).nullish().meta({ description: "Overrides the callback URL" }),
  options: jsonObject.nullish().meta({ description: "What else the provider needs" }),
};

const enabled = z.boolean().meta({ description: "Whether sign-in uses this config" });

const registerBody = z.object({
  tenantId: tenantId.optional(),
  providerId,
  clientId: text(2048).meta({ description: "The tenant's client id at the provider" }),
  clientSecret,
  ...fields,
  enabled: enabled.default(true),
});

export const registerOAuthConfigEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/oauth-config/register",
    {
      method: "POST",
      body: registerBody,
      metadata: { openapi: { description: "Create or replace a tenant's config for a provider" } },
    },
    async (ctx) => {
      const configs = await manageConfigs(ctx, options, "oauth-config:register");
      const { providerId, enabled, tenantId: _, ...client } = ctx.body;
      return ctx.json(await configs.register(providerId, client, enabled));
    },
  );

const listQuery = z.object({ tenantId: tenantId.optional() }).optional();

export const listOAuthConfigsEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/oauth-config/list",
    {
      method: "GET",
      query: listQuery,
      metadata: {
        openapi: {
          description: "List a tenant's OAuth configs, without secrets",
          // better-auth describes a query by itself only where there has to be one.
          parameters: [{ name: "tenantId", in: "query", schema: { type: "string" } }],
        },
      },
    },
    async (ctx) => {
      const configs = await manageConfigs(ctx, options, "oauth-config:list");
      return ctx.json(await configs.list());
    },
  );

const updateBody = z.strictObject({
  tenantId: tenantId.optional(),
  providerId,
  clientSecret: clientSecret.optional(),
  ...fields,
  enabled: enabled.optional(),
});

export const updateOAuthConfigEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/oauth-config/update",
    {
      method: "POST",
      body: updateBody,
      metadata: {
        openapi: { description: "Change some of a tenant's config, without its secret" },
      },
    },
    async (ctx) => {
      const configs = await manageConfigs(ctx, options, "oauth-config:update");
      const { providerId, tenantId: _, ...changes } = ctx.body;
      return ctx.json(await configs.update(providerId, changes));
    },
  );

const deleteBody = z.object({ tenantId: tenantId.optional(), providerId });

export const deleteOAuthConfigEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/oauth-config/delete",
    {
      method: "POST",
      body: deleteBody,
      metadata: { openapi: { description: "Delete a tenant's config for a provider" } },
    },
    async (ctx) => {
      const configs = await manageConfigs(ctx, options, "oauth-config:delete");
      return ctx.json(await configs.remove(ctx.body.providerId));
    },
  );

const checkBody = registerBody
  .omit({ enabled: true })
  .partial({ clientId: true, clientSecret: true })
  .refine(
    ({ clientId, clientSecret }) => !clientId === !clientSecret,
    "give a client id and a secret, or neither",
  );

export const checkOAuthConfigEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/oauth-config/check",
    {
      method: "POST",
      body: checkBody,
      metadata: {
        openapi: {
          description: "Check a tenant's config for a provider",
        },
      },
    },
    async (ctx) => {
      const configs = await manageConfigs(ctx, options, "oauth-config:check");
      const { providerId, tenantId: _, ...given } = ctx.body;
      return ctx.json(await configs.check(providerId, given));
    },
  );

/** For the server's own code alone: it has no path. */
export const rotateOAuthSecretsEndpoint = createAuthEndpoint.serverOnly(
  { method: "POST" },
  async ({ context }) => rotateOAuthConfigs(context),
);

/** Loaded by the first manager who comes: servers that only sign people in start without it. */
async function manageConfigs(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  action: TenantManagementAction,
) {
  const { tenantId, actor } = await requireTarget(ctx, options, action);
  return manage(ctx.context, options, tenantId, actor);
}
