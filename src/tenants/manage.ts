import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { confinedModels } from "../schema";
import { rememberDeletedTenant } from "../scope/cookies";
import type { Tenant } from "./find";
import { assertSlug } from "./slug";
import { insertTenant, removeTenant, type TenantChanges, updateTenant } from "./store";

export { listTenants } from "./list";

export async function createTenant(
  ctx: AuthContext,
  { reservedSlugs }: ResolvedOptions,
  input: Pick<Tenant, "name" | "slug" | "metadata">,
): Promise<Tenant> {
  assertSlug(input.slug, reservedSlugs);
  const tenant = await insertTenant(ctx, input);
  if (!tenant) throw APIError.from("CONFLICT", TENANT_AUTH_ERROR_CODES.TENANT_ALREADY_EXISTS);
  return tenant;
}

/** What is undefined stays as it is. */
export async function changeTenant(
  ctx: AuthContext,
  { reservedSlugs }: ResolvedOptions,
  tenant: Tenant,
  input: TenantChanges,
): Promise<Tenant> {
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  const changes: TenantChanges = Object.fromEntries(given);
  if (given.length === 0) return tenant;
  if (changes.slug !== undefined && changes.slug !== tenant.slug) {
    assertSlug(changes.slug, reservedSlugs);
  }
  const changed = await updateTenant(ctx, tenant.id, changes);
  if (changed === "taken") {
    throw APIError.from("CONFLICT", TENANT_AUTH_ERROR_CODES.TENANT_ALREADY_EXISTS);
  }
  if (changed === "gone") {
    throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  }
  return changed;
}

export async function deleteTenant(ctx: AuthContext, options: ResolvedOptions, id: string) {
  await removeTenant(ctx, id, confinedModels(options));
  rememberDeletedTenant(ctx, id);
}
