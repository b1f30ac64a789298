export { TENANT_AUTH_ERROR_CODES } from "./error-codes";
export { byDomain, bySubdomain } from "./naming/by-host";
export { bySlug } from "./naming/by-slug";
export type { OAuthConfigCheck, OAuthConfigFinding } from "./oauth/check";
export type { TenantOAuthConfig } from "./oauth/configs";
export {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
  type TenantAuthOptions,
  type TenantManagementAction,
  type TenantManagementRequest,
  type TenantRoleAction,
  type TenantSession,
} from "./options";
export { tenantAuth } from "./plugin";
export type { SignInMethod, TenantPolicy } from "./policy";
export type { SignInMethods } from "./routes/sign-in-methods";
export type { TenantAuthSchema } from "./schema";
export { getTenantId, runInTenant } from "./scope/scope";
export type { TenantActor, TenantEvent } from "./tenants/events";
export type { Tenant, TenantStatus } from "./tenants/find";
