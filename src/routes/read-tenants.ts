import type { GenericEndpointContext } from "better-auth";
import { APIError } from "better-auth/api";
import type * as z from "zod";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { requireTenant } from "../naming/request";
import type { ResolvedOptions } from "../options";
import { findTenantById, findTenantBySlug, type Tenant } from "../tenants/find";
import { listTenants } from "../tenants/store";
import type { listQuery } from "./input";
import { assertTarget, notAllowed, ownTenantOf, requireManager } from "./management";

/** A tenant by its id or by its slug, if the caller may see it. */
export async function readTenant(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  { id, slug }: { id?: string | undefined; slug?: string | undefined },
): Promise<Tenant> {
  const tenant = id
    ? await findTenantById(ctx.context, id)
    : slug && (await findTenantBySlug(ctx.context, slug));
  // Who may not manage learns nothing, not even whether the tenant exists.
  const target = (tenant || undefined)?.id ?? id;
  const own = ownTenantOf(await requireManager(ctx, options, "tenant:get", target), options);
  if (own && !id && !slug) return requireTenant(ctx, own);
  // A tenant's administrator learns nothing of others, not even which slugs there are.
  if (own && target !== own) throw notAllowed();
  if (!id === !slug) {
    throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.TENANT_ID_OR_SLUG_REQUIRED);
  }
  await assertTarget(ctx, options, target);
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return tenant;
}

/** The tenants that the caller may see. */
export async function readTenants(
  ctx: GenericEndpointContext,
  options: ResolvedOptions,
  query: z.infer<typeof listQuery> | undefined,
): Promise<Tenant[]> {
  const own = ownTenantOf(await requireManager(ctx, options, "tenant:list"), options);
  return own ? [await requireTenant(ctx, own)] : listTenants(ctx.context, query);
}
