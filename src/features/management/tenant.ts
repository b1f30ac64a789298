import type { AuthContext, HookEndpointContext } from "better-auth";
import { tenantError } from "../../core/errors";
import { findTenantRow, type TenantRow, type TenantStatus } from "../../core/tenants/tenants";
import { parseStoredPolicy, type TenantPolicy } from "../policy/schema";

/** A tenant, as managers see it. */
export interface Tenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  /** Whether users can sign in. */
  status: TenantStatus;
  /** When `purgeTenants` may delete the tenant. Only set if the status is `"deleting"`. */
  deleteAt: Date | null;
  /** The tenant's policy, or null. */
  policy: TenantPolicy | null;
  createdAt: Date;
  updatedAt: Date;
}

export async function findTenant(ctx: AuthContext, field: "id" | "slug", value: string) {
  const row = await findTenantRow(ctx, field, value);
  return row && toTenant(row);
}

/** R2: returns the tenant. Refuses a request that names none, or a tenant that does not exist. */
export async function requireTenant(ctx: HookEndpointContext, tenantId: string | undefined) {
  if (tenantId === undefined) throw tenantError("TENANT_ID_REQUIRED");
  const tenant = await findTenant(ctx.context, "id", tenantId);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  return tenant;
}

/** Copies the public fields one by one, so that a new column cannot leak. */
export function toTenant(row: TenantRow | Tenant): Tenant {
  const { id, name, slug, metadata = null, createdAt, updatedAt } = row as Tenant;
  // MongoDB has no migrations. So older tenants lack these fields, and get the defaults here.
  const status = row.status ?? "active";
  const deleteAt = (row as Tenant).deleteAt ?? null;
  const policy = parseStoredPolicy(row.policy);
  return { id, name, slug, metadata, status, deleteAt, policy, createdAt, updatedAt };
}
