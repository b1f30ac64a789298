import type { GenericEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import type { Session, User } from "better-auth/types";
import * as z from "zod";
import { DEFAULT_TENANT_HEADER } from "./constants";
import type { TenantAuthSchema } from "./schema";
import type { TenantEventHandler } from "./tenants/events";

/** What a management call is about to do. */
export type TenantManagementAction =
  | "tenant:create"
  | "tenant:get"
  | "tenant:list"
  | "tenant:update"
  | "tenant:delete"
  | "user:manage"
  | "policy:update"
  | "oauth-config:register"
  | "oauth-config:list"
  | "oauth-config:update"
  | "oauth-config:check"
  | "oauth-config:delete"
  | "invitation:create"
  | "invitation:list"
  | "invitation:resend"
  | "invitation:revoke"
  | "sso:register"
  | "sso:list"
  | "sso:update"
  | "sso:verify"
  | "sso:delete";

/** What a tenant's own administrators can be allowed to do, in their own tenant. */
export type TenantRoleAction =
  | Exclude<TenantManagementAction, "tenant:create" | "tenant:delete" | "user:manage">
  | "oauth-config:*"
  | "invitation:*"
  | "sso:*";

/** A signed-in caller, and where it belongs. */
export interface TenantSession {
  session: Session & { tenantId?: string | null; impersonatedBy?: string | null };
  user: User & { tenantId?: string | null; role?: string | null };
}

/** What `canManageTenants` has to decide about. */
export interface TenantManagementRequest {
  /** What the call is about to do. */
  action: TenantManagementAction;
  /**
   * The tenant that is to be managed; undefined where there is none (create, list, not found). For
   * `user:manage`, the tenant of the users in question; undefined for those of all tenants.
   */
  tenantId: string | undefined;
  /** The caller's session, of whatever tenant, or null. */
  session: TenantSession | null;
}

/** What a resolver can go by: the request as better-auth's hooks see it. */
export type ResolveTenantContext = Pick<GenericEndpointContext, "context"> &
  Partial<Pick<GenericEndpointContext, "path" | "headers" | "request" | "body" | "query">>;

/**
 * What a resolver may answer: a tenant by its id or by its slug; `false` for no tenant, whatever
 * the request says; nothing (null, undefined or an empty string) to let the request speak.
 */
export type ResolvedTenant = string | { slug: string } | false | null | undefined;

/** Names the tenant of a request: see `resolveTenantId`. */
export type ResolveTenant = (ctx: ResolveTenantContext) => ResolvedTenant | Promise<ResolvedTenant>;

/** What `bySlug()` returns: it reads a claim of the request, and answers nothing about a host. */
export type SlugResolver = ResolveTenant & { slugHeader: string };

/** The options of `tenantAuth()`. A mistake in them is an error at start. */
export interface TenantAuthOptions {
  /**
   * Names the tenant of a request, before anything the request itself says: from the host name,
   * for example, with `bySubdomain()` or `byDomain()`, or by a slug with `bySlug()`. Runs on every
   * request.
   */
  resolveTenantId?: ResolveTenant;
  /**
   * The request header that names the tenant.
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
   * plugin's `role`). On the platform, only they give such a role.
   * @default ["admin"]
   */
  adminRoles?: string[];
  /**
   * Decides who may manage, in place of `adminUserIds` and `adminRoles`: true lets the call
   * through, anything else is a 403. Calls of `auth.api.*` from the server's own code, with
   * neither request nor headers, are not asked about: they are trusted. With invitations, it is
   * asked again for the inviter when one with a role is accepted: without request and headers.
   * On better-auth's admin endpoints, `user:manage` asks whether a platform user may manage the
   * users of a tenant, or of all tenants: an error or any answer but true leaves the platform.
   */
  canManageTenants?: (
    ctx: GenericEndpointContext,
    request: TenantManagementRequest,
  ) => boolean | Promise<boolean>;
  /**
   * What a tenant's own users may manage of their tenant, by role (the admin plugin's `role`):
   * `{ admin: ["tenant:get", "tenant:update", "policy:update", "oauth-config:*"] }`. They change its
   * name and metadata, never its slug or status. A tenant keeps its last user with such a role. On
   * better-auth's admin endpoints they give no role, and take over no user, that can do more than
   * they.
   * `canManageTenants` decides alone where it is given.
   * @default {}
   */
  tenantRoles?: Record<string, TenantRoleAction[]>;
  /**
   * Slugs that no tenant may take. Replaces the default list.
   * @default DEFAULT_RESERVED_SLUGS
   */
  reservedSlugs?: string[];
  /**
   * Hosts that a tenant's OAuth config may point to besides the provider's own public ones (a
   * GitLab of its own, say), and where identity providers of `sso()` may be. A host stands for its
   * default port, `host:port` for that one, and `*.example.com` for all below a domain. The server
   * will call them, so name none that a tenant should not reach. Nobody is sent there with a token:
   * that is what better-auth's `trustedOrigins` are for.
   * @default []
   */
  trustedProviderHosts?: string[];
  /**
   * Keeps better-auth's own unique index on the e-mail: one e-mail is one user in one tenant.
   * @default false
   */
  keepEmailGloballyUnique?: boolean;
  /**
   * One session cookie under better-auth's name, so that whoever signs in at a second tenant
   * leaves the first; or one for each tenant, so that several are open in one browser at once.
   * With `"per-tenant"` a request has to name its tenant for its cookie to count: without a name
   * the platform's cookie does. A bearer token says where it belongs by itself.
   * @default "shared"
   */
  sessionCookies?: "shared" | "per-tenant";
  /**
   * Models of other plugins whose rows belong to a tenant as well, such as `"organization"`.
   * They get a `tenantId` column and are confined like users and sessions. Every model of another
   * plugin that is looked up by more than its user has to be in here or in `sharedModels`.
   * @default []
   */
  scopedModels?: string[];
  /**
   * Models of other plugins whose rows may be seen from every tenant.
   * @default []
   */
  sharedModels?: string[];
  /**
   * Told what happens to tenants, after the commit: created, changed, suspended, deleted, a policy
   * or an OAuth config changed. The call waits for it. An error in it is logged, and breaks nothing.
   */
  onTenantEvent?: TenantEventHandler;
  /** Other names for the plugin's models and fields. */
  schema?: TenantAuthSchema;
}

/** Names that collide with what applications put at the first label of a host or path. */
export const DEFAULT_RESERVED_SLUGS = (
  "about account admin api app assets auth billing blog cdn console dashboard demo dev docs email " +
  "ftp help home imap internal localhost login logout mail null oauth operator platform pop portal " +
  "public register root security settings shop sign-in sign-out sign-up signin signout signup " +
  "smtp sso staging static status support system team tenant tenants test user users " +
  "web www"
).split(" ");

/** The options with their defaults filled in. */
export type ResolvedOptions = TenantAuthOptions &
  Required<
    Pick<
      TenantAuthOptions,
      | "tenantHeader"
      | "adminUserIds"
      | "adminRoles"
      | "tenantRoles"
      | "reservedSlugs"
      | "trustedProviderHosts"
      | "keepEmailGloballyUnique"
      | "sessionCookies"
      | "scopedModels"
      | "sharedModels"
    >
  > & {
    /** What `bySlug()` made. It is not a resolver then: a slug in a header is a claim (R1, R9). */
    bySlug?: SlugResolver | undefined;
  };

const fn = z.custom((value) => typeof value === "function", "expected a function");
const names = z.record(
  z.string(),
  z.strictObject({
    modelName: z.string().min(1).optional(),
    fields: z.record(z.string(), z.string().min(1)).optional(),
  }),
);

const ROLE_ACTIONS = [
  ..."tenant:get tenant:list tenant:update policy:update".split(" "),
  ..."* register list update check delete".split(" ").map((name) => `oauth-config:${name}`),
  ..."* create list resend revoke".split(" ").map((name) => `invitation:${name}`),
  ..."* register list update verify delete".split(" ").map((name) => `sso:${name}`),
];

/** Every action that `canManageTenants` can be asked about. */
export const MANAGEMENT_ACTIONS = [
  ..."user:manage tenant:create tenant:delete".split(" "),
  ...ROLE_ACTIONS.filter((name) => !name.endsWith("*")),
] as TenantManagementAction[];

const HOST_PATTERN = /^(\*\.)?([a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?$/;

/** A host, perhaps with a port, or all below a domain; spelled as it will be compared. */
function isHostPattern(pattern: string): boolean {
  const [, wildcard = "", name = ""] = HOST_PATTERN.exec(pattern) ?? [];
  const address = `https://${pattern.slice(wildcard.length)}`;
  const isDomain = /[a-z]$/.test(name);
  return name !== "" && (isDomain || !wildcard) && URL.canParse(address)
    ? new URL(address).origin === address
    : false;
}

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected a header name");

const optionsSchema = z
  .strictObject({
    resolveTenantId: fn.optional(),
    tenantHeader: headerName,
    slugHeader: headerName.optional(),
    adminUserIds: z.array(z.string().min(1)),
    adminRoles: z.array(z.string().min(1)),
    tenantRoles: z.record(z.string().min(1), z.array(z.enum(ROLE_ACTIONS))),
    canManageTenants: fn.optional(),
    reservedSlugs: z.array(z.string()),
    trustedProviderHosts: z.array(z.string().refine(isHostPattern, "expected a host")),
    keepEmailGloballyUnique: z.boolean(),
    sessionCookies: z.enum(["shared", "per-tenant"]),
    scopedModels: z.array(z.string().min(1)),
    sharedModels: z.array(z.string().min(1)),
    onTenantEvent: fn.optional(),
    schema: names.optional(),
  })
  .refine(
    ({ scopedModels, sharedModels }) => !sharedModels.some((model) => scopedModels.includes(model)),
    {
      path: ["sharedModels"],
      error: "a model is either scoped or shared",
    },
  )
  .refine(
    ({ tenantHeader, slugHeader }) => slugHeader?.toLowerCase() !== tenantHeader.toLowerCase(),
    { path: ["slugHeader"], error: "the tenantHeader has an id in it" },
  );

const isSlugResolver = (resolver: ResolveTenant | undefined): resolver is SlugResolver =>
  typeof resolver === "function" && "slugHeader" in resolver;

/** Fills in the defaults. A mistake in the options shows here, at start, not at the first sign-in. */
export function resolveOptions(options: TenantAuthOptions = {}): ResolvedOptions {
  const { resolveTenantId } = options;
  const bySlug = isSlugResolver(resolveTenantId) ? resolveTenantId : undefined;
  const resolved = {
    ...options,
    tenantHeader: options.tenantHeader ?? DEFAULT_TENANT_HEADER,
    adminUserIds: options.adminUserIds ?? [],
    adminRoles: options.adminRoles ?? ["admin"],
    tenantRoles: options.tenantRoles ?? {},
    reservedSlugs: options.reservedSlugs ?? DEFAULT_RESERVED_SLUGS,
    trustedProviderHosts: options.trustedProviderHosts ?? [],
    keepEmailGloballyUnique: options.keepEmailGloballyUnique ?? false,
    sessionCookies: options.sessionCookies ?? "shared",
    scopedModels: options.scopedModels ?? [],
    sharedModels: options.sharedModels ?? [],
  };
  const { error } = optionsSchema.safeParse({ ...resolved, slugHeader: bySlug?.slugHeader });
  if (error) throw new BetterAuthError(`tenantAuth(): ${z.prettifyError(error)}`);
  return bySlug ? { ...resolved, resolveTenantId: undefined, bySlug } : resolved;
}
