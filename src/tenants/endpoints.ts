import { APIError, createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { requireManager } from "../management";
import type { ResolvedOptions } from "../options";
import { confinedModels } from "../schema";
import { rememberDeletedTenant } from "../scope/cookies";
import { metadata, tenantId, tenantName, tenantSlug } from "./input";
import { requireTenant } from "./naming";
import { assertSlug } from "./slug";
import {
  findTenantById,
  findTenantBySlug,
  insertTenant,
  listTenants,
  removeTenant,
  updateTenant,
} from "./store";

const createBody = z.object({
  name: tenantName,
  slug: tenantSlug,
  metadata: metadata.nullish(),
});

export const createTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/create",
    { method: "POST", body: createBody, metadata: { openapi: { description: "Create a tenant" } } },
    async (ctx) => {
      await requireManager(ctx, options, "tenant:create");
      const { name, slug, metadata } = ctx.body;
      assertSlug(slug, options.reservedSlugs);
      const tenant = await insertTenant(ctx.context, { name, slug, metadata: metadata ?? null });
      if (!tenant) throw APIError.from("CONFLICT", TENANT_AUTH_ERROR_CODES.TENANT_ALREADY_EXISTS);
      return ctx.json(tenant);
    },
  );

const getQuery = z.object({
  id: z.string().optional().meta({ description: "Id of the tenant" }),
  slug: z.string().optional().meta({ description: "Slug of the tenant" }),
});

export const getTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/get",
    {
      method: "GET",
      query: getQuery,
      metadata: { openapi: { description: "Get a tenant by its id or by its slug" } },
    },
    async (ctx) => {
      const { id, slug } = ctx.query;
      const tenant = id
        ? await findTenantById(ctx.context, id)
        : slug && (await findTenantBySlug(ctx.context, slug));
      // Who may not manage learns nothing, not even whether the tenant exists.
      await requireManager(ctx, options, "tenant:get", (tenant || undefined)?.id ?? id);
      if (!id === !slug) {
        throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.TENANT_ID_OR_SLUG_REQUIRED);
      }
      if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
      return ctx.json(tenant);
    },
  );

export const listTenantsEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/list",
    { method: "GET", metadata: { openapi: { description: "List all tenants, oldest first" } } },
    async (ctx) => {
      await requireManager(ctx, options, "tenant:list");
      return ctx.json(await listTenants(ctx.context));
    },
  );

const updateBody = z.object({
  tenantId,
  name: tenantName.optional(),
  slug: tenantSlug.optional(),
  metadata: metadata.nullish().meta({ description: "Replaces the metadata; null clears it" }),
});

export const updateTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/update",
    { method: "POST", body: updateBody, metadata: { openapi: { description: "Update a tenant" } } },
    async (ctx) => {
      const { tenantId, ...body } = ctx.body;
      await requireManager(ctx, options, "tenant:update", tenantId);
      const tenant = await requireTenant(ctx, tenantId || undefined);
      const changes = Object.fromEntries(
        Object.entries(body).filter(([, value]) => value !== undefined),
      ) as Partial<typeof body>;
      if (Object.keys(changes).length === 0) return ctx.json(tenant);
      if (changes.slug !== undefined && changes.slug !== tenant.slug) {
        assertSlug(changes.slug, options.reservedSlugs);
      }
      const updated = await updateTenant(ctx.context, tenant.id, changes);
      if (updated === "taken") {
        throw APIError.from("CONFLICT", TENANT_AUTH_ERROR_CODES.TENANT_ALREADY_EXISTS);
      }
      if (updated === "gone") {
        throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
      }
      return ctx.json(updated);
    },
  );

const deleteBody = z.object({ tenantId });

export const deleteTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/delete",
    {
      method: "POST",
      body: deleteBody,
      metadata: {
        openapi: { description: "Delete a tenant with its users, sessions and OAuth configs" },
      },
    },
    async (ctx) => {
      const { tenantId } = ctx.body;
      await requireManager(ctx, options, "tenant:delete", tenantId);
      const tenant = await requireTenant(ctx, tenantId || undefined);
      await removeTenant(ctx.context, tenant.id, confinedModels(options));
      rememberDeletedTenant(ctx.context, tenant.id);
      return ctx.json({ success: true as const });
    },
  );
