export { TENANT_AUTH_ERROR_CODES } from "./error-codes";
export type { OAuthConfigCheck, OAuthConfigFinding } from "./oauth/check";
export type { TenantOAuthConfig } from "./oauth/manage";
export {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
  type TenantAuthOptions,
  type TenantManagementAction,
  type TenantManagementRequest,
  type TenantSession,
} from "./options";
export { tenantAuth } from "./plugin";
export type { TenantAuthSchema } from "./schema";
export { getTenantId, runInTenant } from "./scope/scope";
export type { SignInMethods } from "./sign-in/methods";
export { byDomain, bySubdomain } from "./tenants/by-host";
export type { Tenant } from "./tenants/find";
