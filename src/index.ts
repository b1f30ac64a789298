export { TENANT_AUTH_ERROR_CODES } from "./error-codes";
export type { TenantOAuthConfig } from "./oauth/store";
export {
  DEFAULT_RESERVED_SLUGS,
  type ResolveTenantContext,
  type TenantAuthOptions,
  type TenantManagementAction,
  type TenantManagementRequest,
  type TenantSession,
} from "./options";
export { tenantAuth } from "./plugin";
export type { TenantAuthSchema } from "./schema";
export { getTenantId, runInTenant } from "./scope/scope";
export type { Tenant } from "./tenants/store";
