import { APIError, createAuthEndpoint } from "better-auth/api";
import { socialProviderList } from "better-auth/social-providers";
import * as z from "zod";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { requireManager } from "../management";
import type { ResolvedOptions } from "../options";
import { tenantId, text } from "../tenants/input";
import { namedTenantId, requireTenant } from "../tenants/naming";
import { findTenantById } from "../tenants/store";
import { assertRedirectURI } from "./redirect-uri";
import { listOAuthConfigs, removeOAuthConfig, saveOAuthConfig, toOutput } from "./store";

const providerId = z.string().min(1).max(255).meta({ description: "A built-in social provider" });

const isBuiltIn = (id: string) => (socialProviderList as readonly string[]).includes(id);

const registerBody = z.object({
  tenantId: tenantId.optional(),
  providerId,
  clientId: text(2048).meta({ description: "The tenant's client id at the provider" }),
  clientSecret: text(8192).meta({ description: "The tenant's client secret; never returned" }),
  scopes: z.array(text(255)).max(50).nullish().meta({ description: "Scopes to ask for" }),
  redirectURI: z
    .string()
    .max(2048)
    .nullish()
    .meta({ description: "Overrides the callback URL that is sent to the provider" }),
  enabled: z.boolean().default(true).meta({ description: "Whether sign-in uses this config" }),
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
      const target = await namedTenantId(ctx, options);
      await requireManager(ctx, options, "oauth-config:register", target);
      const { id: tenantId } = await requireTenant(ctx, target);
      const { providerId, clientId, clientSecret, scopes, redirectURI, enabled } = ctx.body;
      if (!isBuiltIn(providerId)) {
        throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.UNSUPPORTED_PROVIDER);
      }
      if (redirectURI !== undefined && redirectURI !== null) assertRedirectURI(redirectURI);
      const config = await saveOAuthConfig(ctx.context, {
        tenantId,
        providerId,
        clientId,
        clientSecret,
        scopes: scopes ?? null,
        redirectURI: redirectURI ?? null,
        enabled,
      });
      // Deleted in the meantime: not every database keeps a config from outliving its tenant.
      if (!(await findTenantById(ctx.context, tenantId))) {
        await removeOAuthConfig(ctx.context, tenantId, providerId);
        throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
      }
      if (!config) {
        throw APIError.from(
          "INTERNAL_SERVER_ERROR",
          TENANT_AUTH_ERROR_CODES.OAUTH_CONFIG_NOT_SAVED,
        );
      }
      return ctx.json(await toOutput(ctx.context, config));
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
      const target = await namedTenantId(ctx, options);
      await requireManager(ctx, options, "oauth-config:list", target);
      const { id: tenantId } = await requireTenant(ctx, target);
      const configs = await listOAuthConfigs(ctx.context, tenantId);
      return ctx.json(await Promise.all(configs.map((config) => toOutput(ctx.context, config))));
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
      const target = await namedTenantId(ctx, options);
      await requireManager(ctx, options, "oauth-config:delete", target);
      const { id: tenantId } = await requireTenant(ctx, target);
      const { providerId } = ctx.body;
      if (!isBuiltIn(providerId) || !(await removeOAuthConfig(ctx.context, tenantId, providerId))) {
        throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.OAUTH_CONFIG_NOT_FOUND);
      }
      return ctx.json({ success: true as const });
    },
  );
