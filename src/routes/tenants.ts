import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { lazy } from "../framework";
import { requireTenant } from "../naming/request";
import type { ResolvedOptions } from "../options";
import {
  listQuery,
  metadata,
  policy as policyInput,
  TENANT_SORTS,
  tenantId,
  tenantName,
  tenantSlug,
  updateBody,
} from "./input";
import type { assertTarget as AssertTarget, requireManager as RequireManager } from "./management";

/** Loaded by the first manager who comes: servers that only sign people in start without it. */
const store = lazy(() => import("../tenants/store"));
const management = lazy(() => import("./management"));

const policies = lazy(() => import("./policy-input"));

const requireManager = async (...call: Parameters<typeof RequireManager>) =>
  (await management()).requireManager(...call);
const assertTarget = async (...call: Parameters<typeof AssertTarget>) =>
  (await management()).assertTarget(...call);

const createBody = z.object({
  name: tenantName,
  slug: tenantSlug,
  metadata: metadata.nullish(),
  policy: policyInput.nullish(),
});

export const createTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/create",
    { method: "POST", body: createBody, metadata: { openapi: { description: "Create a tenant" } } },
    async (ctx) => {
      const actor = await requireManager(ctx, options, "tenant:create");
      const { createTenant } = await store();
      const { metadata = null, policy: given = null, ...tenant } = ctx.body;
      const policy = given && (await (await policies()).parsePolicy(ctx.context, undefined, given));
      return ctx.json(
        await createTenant(ctx.context, options, actor, { ...tenant, metadata, policy }),
      );
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
      const { readTenant } = await import("./read-tenants");
      return ctx.json(await readTenant(ctx, options, ctx.query));
    },
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
    async (ctx) => {
      const { readTenants } = await import("./read-tenants");
      return ctx.json(await readTenants(ctx, options, ctx.query));
    },
  );

export const updateTenantEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint(
    "/tenant/update",
    { method: "POST", body: updateBody, metadata: { openapi: { description: "Update a tenant" } } },
    async (ctx) => {
      const { updateTenant } = await import("./update-tenant");
      return ctx.json(await updateTenant(ctx, options, ctx.body));
    },
  );

const NINETY_DAYS = 90 * 24 * 60 * 60;

const deleteBody = z.object({
  tenantId,
  dryRun: z.boolean().optional().meta({ description: "Only counts what would be deleted" }),
  after: z.int().nonnegative().max(NINETY_DAYS).optional().meta({
    description: "Seconds until it may be deleted; suspended until then, and can be taken back",
  }),
});

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
      const actor = await requireManager(ctx, options, "tenant:delete", tenantId);
      await assertTarget(ctx, options, tenantId || undefined);
      const tenant = await requireTenant(ctx, tenantId || undefined);
      const { removeTenant } = await import("../tenants/status");
      return ctx.json(await removeTenant(ctx.context, options, actor, tenant, ctx.body));
    },
  );

/** For the server's own code alone: it has no path. */
export const purgeTenantsEndpoint = (options: ResolvedOptions) =>
  createAuthEndpoint.serverOnly({ method: "POST" }, async ({ context }) =>
    (await import("../tenants/delete")).purgeTenants(context, options),
  );
