import type { GenericEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import type { Session, User } from "better-auth/types";
import * as z from "zod";
import type { TenantAuthSchema } from "./schema";

/** What a management call is about to do. */
export type TenantManagementAction =
  | "tenant:create"
  | "tenant:get"
  | "tenant:list"
  | "tenant:update"
  | "tenant:delete"
  | "oauth-config:register"
  | "oauth-config:list"
  | "oauth-config:delete";

/** A signed-in caller, and where it belongs. */
export interface TenantSession {
  session: Session & { tenantId?: string | null };
  user: User & { tenantId?: string | null; role?: string | null };
}

export interface TenantManagementRequest {
  action: TenantManagementAction;
  /** The tenant that is to be managed; undefined where there is none (create, list, not found). */
  tenantId: string | undefined;
  /** The caller's session, of whatever tenant, or null. */
  session: TenantSession | null;
}

/** What a resolver can go by: the request as better-auth's hooks see it. */
export type ResolveTenantContext = Pick<GenericEndpointContext, "context"> &
  Partial<Pick<GenericEndpointContext, "path" | "headers" | "request" | "body" | "query">>;

export interface TenantAuthOptions {
  /**
   * Names the tenant of a request, before anything the request itself says: from the host name,
   * for example. Nothing (null, undefined or an empty string) lets the body, the query and the
   * header speak. Runs on every request.
   */
  resolveTenantId?: (
    ctx: ResolveTenantContext,
  ) => string | null | undefined | Promise<string | null | undefined>;
  /**
   * The request header that names the tenant.
   * @default "x-tenant-id"
   */
  tenantHeader?: string;
  /**
   * Platform users who may manage tenants, by id.
   * @default []
   */
  adminUserIds?: string[];
  /**
   * Platform users who may manage tenants, by role (the admin plugin's `role`).
   * @default ["admin"]
   */
  adminRoles?: string[];
  /**
   * Decides who may manage, in place of `adminUserIds` and `adminRoles`: true lets the call
   * through, anything else is a 403. Calls of `auth.api.*` from the server's own code, with
   * neither request nor headers, are not asked about: they are trusted.
   */
  canManageTenants?: (
    ctx: GenericEndpointContext,
    request: TenantManagementRequest,
  ) => boolean | Promise<boolean>;
  /**
   * Slugs that no tenant may take. Replaces the default list.
   * @default DEFAULT_RESERVED_SLUGS
   */
  reservedSlugs?: string[];
  /**
   * Keeps better-auth's own unique index on the e-mail: one e-mail is one user in one tenant.
   * @default false
   */
  keepEmailGloballyUnique?: boolean;
  /**
   * One session cookie under better-auth's name, so that whoever signs in at a second tenant
   * leaves the first; or one for each tenant, so that several are open in one browser at once.
   * With `"per-tenant"` a request has to name its tenant to be in it: without a name it runs on
   * the platform.
   * @default "shared"
   */
  sessionCookies?: "shared" | "per-tenant";
  /**
   * Models of other plugins whose rows belong to a tenant as well, such as `"organization"`.
   * They get a `tenantId` column and are confined like users and sessions. Worth it for what is
   * looked up by something that can be guessed: an e-mail address, a slug.
   * @default []
   */
  scopedModels?: string[];
  /** Other names for the plugin's models and fields. */
  schema?: TenantAuthSchema;
}

/** Names that collide with what applications put at the first label of a host or path. */
export const DEFAULT_RESERVED_SLUGS = (
  "about account accounts admin administrator api app apps assets auth billing blog cdn console " +
  "contact dashboard demo dev docs download email ftp help home imap internal localhost login " +
  "logout mail me my new null oauth operator ops platform pop portal pricing private public " +
  "register root security settings shop sign-in sign-out sign-up signin signout signup smtp sso " +
  "staging static status support system team tenant tenants test undefined user users web webmail " +
  "ws www"
).split(" ");

/** The options with their defaults filled in. */
export type ResolvedOptions = TenantAuthOptions &
  Required<
    Pick<
      TenantAuthOptions,
      | "tenantHeader"
      | "adminUserIds"
      | "adminRoles"
      | "reservedSlugs"
      | "keepEmailGloballyUnique"
      | "sessionCookies"
      | "scopedModels"
    >
  >;

const fn = z.custom((value) => typeof value === "function", "expected a function");
const names = z.record(
  z.string(),
  z.strictObject({
    modelName: z.string().min(1).optional(),
    fields: z.record(z.string(), z.string().min(1)).optional(),
  }),
);

const optionsSchema = z.strictObject({
  resolveTenantId: fn.optional(),
  tenantHeader: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected a header name"),
  adminUserIds: z.array(z.string().min(1)),
  adminRoles: z.array(z.string().min(1)),
  canManageTenants: fn.optional(),
  reservedSlugs: z.array(z.string()),
  keepEmailGloballyUnique: z.boolean(),
  sessionCookies: z.enum(["shared", "per-tenant"]),
  scopedModels: z.array(z.string().min(1)),
  schema: names.optional(),
});

/** Fills in the defaults. A mistake in the options shows here, at start, not at the first sign-in. */
export function resolveOptions(options: TenantAuthOptions = {}): ResolvedOptions {
  const resolved = {
    ...options,
    tenantHeader: options.tenantHeader ?? "x-tenant-id",
    adminUserIds: options.adminUserIds ?? [],
    adminRoles: options.adminRoles ?? ["admin"],
    reservedSlugs: options.reservedSlugs ?? DEFAULT_RESERVED_SLUGS,
    keepEmailGloballyUnique: options.keepEmailGloballyUnique ?? false,
    sessionCookies: options.sessionCookies ?? "shared",
    scopedModels: options.scopedModels ?? [],
  };
  const { error } = optionsSchema.safeParse(resolved);
  if (error) throw new BetterAuthError(`tenantAuth(): ${z.prettifyError(error)}`);
  return resolved;
}
