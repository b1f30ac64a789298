export { prefixUniqueValues } from "./core/isolate/unique-values";
export {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
} from "./core/options";
export { getTenantId, runInTenant } from "./core/request";
export { byDomain, bySlug, bySubdomain, firstOf } from "./core/resolve/resolvers";
export type { SignInMethod } from "./core/sign-in-endpoints";
export type { TenantStatus } from "./core/tenants/tenants";
export { TENANT_AUTH_ERROR_CODES } from "./error-codes";
export type { TenantActor, TenantEvent } from "./features/management/events";
export type {
  TenantManagementAction,
  TenantManagementRequest,
  TenantRoleAction,
  TenantSession,
} from "./features/management/options";
export type { Tenant } from "./features/management/tenant";
export type { OAuthConfigCheck, OAuthConfigFinding } from "./features/oauth/check";
export type { TenantOAuthOptions } from "./features/oauth/provider-table";
export type { TenantOAuthConfig } from "./features/oauth/routes";
export type { TenantPolicy } from "./features/policy/schema";
export type { SignInMethods } from "./features/sign-in-page/sign-in-methods";
export type { TenantAuthOptions } from "./options";
export { tenantAuth } from "./plugin";
export type { TenantAuthSchema } from "./schema";
