import type { AuthContext, GenericEndpointContext } from "better-auth";
import type { Session, User } from "better-auth/types";
import * as z from "zod";
import { coreOptions } from "../../core/isolation";
import { DEFAULT_RESERVED_SLUGS, fn, type ResolvedCoreOptions, texts } from "../../core/options";
import type { TenantEventHandler } from "./events";

const OPERATOR_ACTIONS = ["tenant:create", "tenant:delete", "user:manage"] as const;

const TENANT_ACTIONS = [
  "tenant:get",
  "tenant:list",
  "tenant:update",
  "policy:update",
  "oauth-config:register",
  "oauth-config:list",
  "oauth-config:update",
  "oauth-config:check",
  "oauth-config:delete",
  "invitation:create",
  "invitation:list",
  "invitation:resend",
  "invitation:revoke",
  "domain:add",
  "domain:verify",
  "domain:list",
  "domain:update",
  "domain:remove",
  "sso:register",
  "sso:list",
  "sso:update",
  "sso:verify",
  "sso:delete",
  "user:reset-two-factor",
] as const;

const ROLE_ACTIONS = [
  ...TENANT_ACTIONS,
  "oauth-config:*",
  "invitation:*",
  "domain:*",
  "sso:*",
] as const;

/** All actions that `canManageTenants` may be asked about. */
export const MANAGEMENT_ACTIONS = [...OPERATOR_ACTIONS, ...TENANT_ACTIONS];

/** An action on tenants or their users, which `canManageTenants` allows or refuses. */
export type TenantManagementAction = (typeof MANAGEMENT_ACTIONS)[number];

/** An action that `tenantRoles` can allow to a tenant's own users. */
export type TenantRoleAction = (typeof ROLE_ACTIONS)[number];

/** The caller's session and user, with their tenant. */
export interface TenantSession {
  session: Session & {
    tenantId?: string | null;
    impersonatedBy?: string | null;
    signInMethod?: string | null;
    secondFactorAt?: Date | null;
  };
  user: User & { tenantId?: string | null; role?: string | null };
}

/** The call that `canManageTenants` allows or refuses. */
export interface TenantManagementRequest {
  /** What the call is about to do. */
  action: TenantManagementAction;
  /**
   * The tenant to manage. Undefined if there is none (create, list, not found). For `user:manage`,
   * the tenant whose users are managed. Undefined for the users of all tenants.
   */
  tenantId: string | undefined;
  /** The caller's session, in any tenant or on the platform. Null if the caller has none. */
  session: TenantSession | null;
}

/** The options of `tenantAuth()` that decide who manages tenants. */
export interface ManagementOptions {
  /**
   * Ids of platform users who may manage every tenant and its users.
   * @default []
   */
  adminUserIds?: string[];
  /**
   * Roles of platform users who may manage every tenant and its users (the admin plugin's `role`).
   * On the platform, only users who may manage tenants can give these roles.
   * @default ["admin"]
   */
  adminRoles?: string[];
  /**
   * Decides who may manage tenants, instead of `adminUserIds`, `adminRoles` and `tenantRoles`: true
   * allows the call, any other value is a 403. Not called for `auth.api.*` without request and
   * headers: server code is trusted. When an invitation with a role is accepted, this function is
   * called again for the inviter, without request and headers. On better-auth's admin endpoints, it
   * is called with `user:manage`: an error, or any value but true, limits the call to users of the
   * platform.
   */
  canManageTenants?: (
    ctx: GenericEndpointContext,
    request: TenantManagementRequest,
  ) => boolean | Promise<boolean>;
  /**
   * What a tenant's own users may manage in their tenant, by role (the admin plugin's `role`):
   * `{ admin: ["tenant:get", "tenant:update", "policy:update", "oauth-config:*"] }`. These users
   * can change the tenant's name and metadata, never its slug or status. They cannot remove the
   * last user with one of these roles. On better-auth's admin endpoints, they can neither give a
   * role nor take over a user with more rights than their own. Allows no call if `canManageTenants`
   * is set.
   * @default {}
   */
  tenantRoles?: Record<string, TenantRoleAction[]>;
  /**
   * Slugs that no tenant may have. Replaces the default list.
   * @default DEFAULT_RESERVED_SLUGS
   */
  reservedSlugs?: string[];
  /**
   * Called after the commit of each change to a tenant, such as a new policy, domain or invitation.
   * The request waits for this function. Its errors are logged, and have no other effect.
   */
  onTenantEvent?: TenantEventHandler;
}

export const MANAGEMENT_DEFAULTS = {
  adminUserIds: [],
  adminRoles: ["admin"],
  tenantRoles: {},
  reservedSlugs: DEFAULT_RESERVED_SLUGS,
} satisfies ManagementOptions;

export const managementChecks = {
  adminUserIds: texts,
  adminRoles: texts,
  tenantRoles: z.record(z.string().min(1), z.array(z.enum(ROLE_ACTIONS))),
  canManageTenants: fn.optional(),
  reservedSlugs: z.array(z.string()),
  onTenantEvent: fn.optional(),
};

export type ResolvedManagementOptions = ResolvedCoreOptions &
  ManagementOptions &
  Required<Pick<ManagementOptions, keyof typeof MANAGEMENT_DEFAULTS>>;

export const managementOptions = (ctx: AuthContext) =>
  coreOptions(ctx) as ResolvedManagementOptions;
