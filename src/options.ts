import type { AuthContext, GenericEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import type { Session, User } from "better-auth/types";
import * as z from "zod";
import { DEFAULT_TENANT_HEADER, PLUGIN_ID } from "./constants";
import { policySchema, type TenantPolicy } from "./policy/schema";
import type { TenantAuthSchema } from "./schema";
import type { TenantEventHandler } from "./tenants/events";

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

/** Every action that `canManageTenants` can be asked about. */
export const MANAGEMENT_ACTIONS = [...OPERATOR_ACTIONS, ...TENANT_ACTIONS];

/** What a management call is about to do. */
export type TenantManagementAction = (typeof MANAGEMENT_ACTIONS)[number];

/** What a tenant's own administrators can be allowed to do, in their own tenant. */
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

/** What `canManageTenants` decides about. */
export interface TenantManagementRequest {
  /** What the call is about to do. */
  action: TenantManagementAction;
  /**
   * The tenant to manage; undefined if there is none (create, list, not found). For `user:manage`, the
   * tenant of the users in question; undefined for the users of all tenants.
   */
  tenantId: string | undefined;
  /** The caller's session, of any tenant, or null. */
  session: TenantSession | null;
}

/** The request, as better-auth's hooks see it. */
export type ResolveTenantContext = Pick<GenericEndpointContext, "context"> &
  Partial<Pick<GenericEndpointContext, "path" | "headers" | "request" | "body" | "query">>;

/**
 * A tenant, by its id or slug; `false` for the platform, whatever else the request says; null,
 * undefined or an empty string to go by the request itself.
 */
export type ResolvedTenant = string | { slug: string } | false | null | undefined;

/** Resolves the tenant of a request: see `resolveTenantId`. */
export type ResolveTenant = (ctx: ResolveTenantContext) => ResolvedTenant | Promise<ResolvedTenant>;

/** What `bySlug()` returns: it reads a header of the caller, and says nothing about a host. */
export type SlugResolver = ResolveTenant & { slugHeader: string };

/** The options of `tenantAuth()`. Mistakes in them are errors at startup. */
export interface TenantAuthOptions {
  /**
   * Resolves the tenant of every request, before the request's own body, query and header: by host
   * name with `bySubdomain()` or `byDomain()`, for example, or by slug with `bySlug()`.
   */
  resolveTenantId?: ResolveTenant;
  /**
   * The request header with the id of the tenant.
   * @default "x-tenant-id"
   */
  tenantHeader?: string;
  /**
   * Platform users who may manage tenants, and the users of all tenants, by id.
   * @default []
   */
  adminUserIds?: string[];
  /**
   * Platform users who may manage tenants, and the users of all tenants, by role (the admin
   * plugin's `role`). On the platform, only they can give such a role.
   * @default ["admin"]
   */
  adminRoles?: string[];
  /**
   * Decides who may manage, instead of `adminUserIds` and `adminRoles`: true allows the call, any
   * other value is a 403. Calls of `auth.api.*` from the server's own code, with neither request nor
   * headers, are trusted and not asked about. When an invitation with a role is accepted, it is asked
   * again for the inviter, without request and headers. On better-auth's admin endpoints,
   * `user:manage` asks whether a platform user may manage the users of a tenant, or of all tenants:
   * an error, or any value but true, limits the call to the platform.
   */
  canManageTenants?: (
    ctx: GenericEndpointContext,
    request: TenantManagementRequest,
  ) => boolean | Promise<boolean>;
  /**
   * What a tenant's own users may manage of their tenant, by role (the admin plugin's `role`):
   * `{ admin: ["tenant:get", "tenant:update", "policy:update", "oauth-config:*"] }`. They can change
   * its name and metadata, never its slug or status. A tenant keeps its last user with such a role. On
   * better-auth's admin endpoints they can neither give a role, nor take over a user, with more rights
   * than their own. Has no effect if there is `canManageTenants`.
   * @default {}
   */
  tenantRoles?: Record<string, TenantRoleAction[]>;
  /**
   * Who may become a user of the platform, and how its users sign in: the same as a tenant's policy.
   * With `{ signUp: "closed" }`, a request that names no tenant creates no user. The platform has no
   * invitations, so `signUp` is `"open"` or `"closed"`.
   */
  platformPolicy?: TenantPolicy;
  /**
   * Slugs that no tenant may have. Replaces the default list.
   * @default DEFAULT_RESERVED_SLUGS
   */
  reservedSlugs?: string[];
  /**
   * Hosts that a tenant's OAuth config may point to besides the provider's own public ones (its own
   * GitLab, for example), and hosts of identity providers for `sso()`. A host means its default port,
   * `host:port` that port, and `*.example.com` everything below a domain. The server will call them:
   * list none that a tenant should not reach. Users are not sent there with a token; for that, see
   * better-auth's `trustedOrigins`.
   * @default []
   */
  trustedProviderHosts?: string[];
  /**
   * One redirect URI for the hosts of all tenants: `"https://example.com"` makes every tenant's flow
   * send `https://example.com/api/auth/tenant/callback/<provider>`. A callback that arrives there is
   * redirected to the host where the flow was started, which has to be the tenant's. The
   * `redirectURI` of a tenant's own config comes first.
   */
  redirectBaseURL?: string;
  /**
   * Keeps better-auth's unique index on the email: an email belongs to one user in one tenant.
   * @default false
   */
  keepEmailGloballyUnique?: boolean;
  /**
   * `"shared"`: one session cookie, so that signing in to a second tenant leaves the first.
   * `"per-tenant"`: one for each tenant, so that several are open in one browser. A request then has
   * to say its tenant for its cookie to count, or the platform's cookie counts. A bearer token
   * contains its tenant.
   * @default "shared"
   */
  sessionCookies?: "shared" | "per-tenant";
  /**
   * Models of other plugins whose rows belong to a tenant as well, such as `"organization"`. They get
   * a `tenantId` column and are isolated like users and sessions. Every model of another plugin that
   * is looked up by more than its user has to be in here or in `sharedModels`.
   * @default []
   */
  scopedModels?: string[];
  /**
   * Models of other plugins whose rows are visible in every tenant.
   * @default []
   */
  sharedModels?: string[];
  /**
   * Unique texts of users and scoped models that stay unique across all tenants, by model:
   * `{ user: ["employeeNumber"] }`. All others that people choose (`username`, `phoneNumber`, the slug
   * of an organization, your own) are unique in their tenant.
   * @default {}
   */
  globallyUnique?: Record<string, string[]>;
  /**
   * Called after the commit when a tenant was created, changed, suspended or deleted, or its policy or
   * an OAuth config changed. The call waits for it. Errors are logged, and have no other effect.
   */
  onTenantEvent?: TenantEventHandler;
  /** Other names for the plugin's models and fields. */
  schema?: TenantAuthSchema;
}

/** Names that applications use as the first label of a host or path. */
export const DEFAULT_RESERVED_SLUGS = (
  "about account admin api app assets auth billing blog cdn console dashboard demo dev docs email " +
  "ftp help home imap internal localhost login logout mail null oauth operator platform pop portal " +
  "public register root security settings shop sign-in sign-out sign-up signin signout signup " +
  "smtp sso staging static status support system team tenant tenants test user users " +
  "web www"
).split(" ");

const DEFAULTS = {
  tenantHeader: DEFAULT_TENANT_HEADER,
  adminUserIds: [],
  adminRoles: ["admin"],
  tenantRoles: {},
  reservedSlugs: DEFAULT_RESERVED_SLUGS,
  trustedProviderHosts: [],
  keepEmailGloballyUnique: false,
  sessionCookies: "shared",
  scopedModels: [],
  sharedModels: [],
  globallyUnique: {},
} satisfies TenantAuthOptions;

/** The options with their defaults. */
export type ResolvedOptions = TenantAuthOptions &
  Required<Pick<TenantAuthOptions, keyof typeof DEFAULTS>> & {
    /** Not a resolver: a slug in a header is a claim of the caller (R1, R9). */
    bySlug?: SlugResolver | undefined;
  };

const HOST_PATTERN = /^(\*\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?$/;

/** Whether a pattern is a host, perhaps with a port or a wildcard, in the form it is compared in. */
function isHostPattern(pattern: string): boolean {
  const [, wildcard = "", name = ""] = HOST_PATTERN.exec(pattern) ?? [];
  const address = `https://${pattern.slice(wildcard.length)}`;
  const isDomain = /[a-z]$/.test(name);
  if (name === "" || (wildcard && !isDomain) || !URL.canParse(address)) return false;
  return new URL(address).origin === address;
}

const isOrigin = (text: string) =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

export const fn = z.custom((value) => typeof value === "function", "expected a function");
const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected a header name");
const texts = z.array(z.string().min(1));
const names = z.strictObject({
  modelName: z.string().min(1).optional(),
  fields: z.record(z.string(), z.string().min(1)).optional(),
});

const optionsSchema = z
  .strictObject({
    resolveTenantId: fn.optional(),
    tenantHeader: headerName,
    slugHeader: headerName.optional(),
    adminUserIds: texts,
    adminRoles: texts,
    tenantRoles: z.record(z.string().min(1), z.array(z.enum(ROLE_ACTIONS))),
    canManageTenants: fn.optional(),
    platformPolicy: policySchema
      .refine(({ signUp }) => signUp !== "invited", {
        path: ["signUp"],
        error: 'expected "open" or "closed", not "invited": the platform has no invitations',
      })
      .optional(),
    reservedSlugs: z.array(z.string()),
    trustedProviderHosts: z.array(z.string().refine(isHostPattern, "expected a host")),
    redirectBaseURL: z
      .string()
      .refine(isOrigin, 'expected an origin without a path: "https://example.com"')
      .optional(),
    keepEmailGloballyUnique: z.boolean(),
    sessionCookies: z.enum(["shared", "per-tenant"]),
    scopedModels: texts,
    sharedModels: texts,
    globallyUnique: z.record(z.string(), texts),
    onTenantEvent: fn.optional(),
    schema: z.record(z.string(), names).optional(),
  })
  .refine(
    ({ scopedModels, sharedModels }) => !sharedModels.some((model) => scopedModels.includes(model)),
    { path: ["sharedModels"], error: "a model is either scoped or shared" },
  )
  .refine(
    ({ tenantHeader, slugHeader }) => slugHeader?.toLowerCase() !== tenantHeader.toLowerCase(),
    { path: ["slugHeader"], error: "the tenantHeader is for ids" },
  );

const isSlugResolver = (resolver: ResolveTenant | undefined): resolver is SlugResolver =>
  typeof resolver === "function" && "slugHeader" in resolver;

/** Adds the defaults. Mistakes in the options are errors here, at startup, not at the first sign-in. */
export function resolveOptions(options: TenantAuthOptions = {}): ResolvedOptions {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const resolved: ResolvedOptions = { ...DEFAULTS, ...Object.fromEntries(given) };
  const { resolveTenantId } = resolved;
  const bySlug = isSlugResolver(resolveTenantId) ? resolveTenantId : undefined;
  const checked = { ...resolved, slugHeader: bySlug?.slugHeader };
  const data = assertOptions("tenantAuth", optionsSchema, checked);
  if (data.platformPolicy) resolved.platformPolicy = data.platformPolicy;
  if (!bySlug) return resolved;
  delete resolved.resolveTenantId;
  return { ...resolved, bySlug };
}

/** Throws if an option of a plugin is invalid. */
export function assertOptions<T>(name: string, schema: z.ZodType<T>, options: object): T {
  const { error, data } = schema.safeParse(options);
  if (error) throw new BetterAuthError(`${name}(): ${z.prettifyError(error)}`);
  return data;
}

/** The `tenantAuth()` beside another plugin of ours. */
export function coreBeside(name: string, { options }: AuthContext) {
  const core = options.plugins?.find(({ id }) => id === PLUGIN_ID);
  if (core) return core;
  throw new BetterAuthError(`${name}(): put tenantAuth() before it in the plugins`);
}
