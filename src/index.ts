export { TENANT_AUTH_ERROR_CODES } from "./error-codes";
export { prefixUniqueValues } from "./isolation/unique-values";
export type { OAuthConfigCheck, OAuthConfigFinding } from "./oauth/check";
export type { TenantOAuthOptions } from "./oauth/provider-table";
export type { TenantOAuthConfig } from "./oauth/routes";
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
export type { SignInMethod, TenantPolicy } from "./policy/schema";
export type { SignInMethods } from "./policy/sign-in-methods";
export { byDomain, bySlug, bySubdomain, firstOf } from "./request/resolvers";
export { getTenantId, runInTenant } from "./request/scope";
export type { TenantAuthSchema } from "./schema";
export type { Tenant, TenantStatus } from "./tenants/cache";
export type { TenantActor, TenantEvent } from "./tenants/events";
