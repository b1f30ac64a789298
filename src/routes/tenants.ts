import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { lazy } from "../framework";
import type { ResolvedOptions } from "../options";
import { createBody, deleteBody, listQuery, TENANT_SORTS, updateBody } from "./input";

const manage = lazy(() => import("./manage-tenants"));

export const createTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/create",
    { method: "POST", body: createBody, metadata: { openapi: { description: "Create a tenant" } } },
    async (ctx) => ctx.json(await (await manage()).addTenant(ctx, options, ctx.body)),
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
    async (ctx) => ctx.json(await (await manage()).readTenant(ctx, options, ctx.query)),
  );

export const listTenantsEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/list",
    {
      method: "GET",
      query: listQuery.optional(),
      metadata: {
        openapi: {
          description: "List all tenants, oldest first, or the part that is asked for",
          // better-auth describes a query by itself only where there has to be one.
          parameters: [
            { name: "limit", in: "query", schema: { type: "integer" } },
            { name: "offset", in: "query", schema: { type: "integer" } },
            { name: "search", in: "query", schema: { type: "string" } },
            { name: "sort", in: "query", schema: { type: "string", enum: [...TENANT_SORTS] } },
          ],
        },
      },
    },
    async (ctx) => ctx.json(await (await manage()).readTenants(ctx, options, ctx.query)),
  );

export const updateTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/update",
    { method: "POST", body: updateBody, metadata: { openapi: { description: "Update a tenant" } } },
    async (ctx) => ctx.json(await (await manage()).updateTenant(ctx, options, ctx.body)),
  );

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
    async (ctx) => ctx.json(await (await manage()).deleteTenant(ctx, options, ctx.body)),
  );

/** For the server's own code alone: it has no path. */
export const purgeTenantsEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint.serverOnly({ method: "POST" }, async ({ context }) =>
    (await import("../tenants/delete")).purgeTenants(context, options),
  );
