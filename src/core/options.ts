import { type AuthContext, BetterAuthError, type GenericEndpointContext } from "better-auth";
import * as z from "zod";
import { DEFAULT_TENANT_HEADER, PLUGIN_ID } from "./constants";
import type { Names } from "./schema";

/** The request, as better-auth's hooks see it. */
export type ResolveTenantContext = Pick<GenericEndpointContext, "context"> &
  Partial<Pick<GenericEndpointContext, "path" | "headers" | "request" | "body" | "query">>;

/**
 * A resolver's result: a tenant by its id or slug; `false` for the platform; null, undefined or
 * `""` to go by the tenant that the request names.
 */
export type ResolvedTenant = string | { slug: string } | false | null | undefined;

/** Resolves the tenant of a request: see `resolveTenantId`. */
export type ResolveTenant = (ctx: ResolveTenantContext) => ResolvedTenant | Promise<ResolvedTenant>;

/**
 * The resolver that `bySlug()` returns. The caller chooses its header, so it assigns no host to a
 * tenant.
 */
export type SlugResolver = ResolveTenant & { slugHeader: string };

/** Options for how tenants are found and isolated. */
export interface CoreOptions {
  /**
   * Resolves the tenant of each request, for example by host name with `bySubdomain()` or
   * `byDomain()`, before the request's body, query and header are read.
   */
  resolveTenantId?: ResolveTenant;
  /**
   * The request header with the id of the tenant.
   * @default "x-tenant-id"
   */
  tenantHeader?: string;
  /**
   * Keeps better-auth's unique index on the email, so that an email belongs to only one user across
   * all tenants.
   * @default false
   */
  keepEmailGloballyUnique?: boolean;
  /**
   * `"shared"`: one session cookie, so that signing in to a second tenant replaces the session of
   * the first. `"per-tenant"`: one cookie for each tenant, so that a browser can be signed in to
   * several. Each request must then name its tenant, or the platform's cookie is used. Bearer
   * tokens contain their tenant.
   * @default "shared"
   */
  sessionCookies?: "shared" | "per-tenant";
  /**
   * Models of other plugins whose rows belong to a tenant, such as `"organization"`: they get a
   * `tenantId` column and are isolated like users. better-auth does not start while a model is in
   * neither this list nor `sharedModels`, except those of official plugins that need no decision.
   * @default []
   */
  scopedModels?: string[];
  /**
   * Models of other plugins whose rows are visible in every tenant.
   * @default []
   */
  sharedModels?: string[];
  /**
   * Unique text fields that stay unique across all tenants, by model: `{ user: ["employeeNumber"]
   * }`. Other unique texts of users and scoped models, such as `username`, `phoneNumber` or the
   * slug of an organization, are unique per tenant, unless their values are random or made of ids.
   * @default {}
   */
  globallyUnique?: Record<string, string[]>;
  /** Other names for the plugin's models and fields. */
  schema?: Names;
}

export const CORE_DEFAULTS = {
  tenantHeader: DEFAULT_TENANT_HEADER,
  keepEmailGloballyUnique: false,
  sessionCookies: "shared",
  scopedModels: [],
  sharedModels: [],
  globallyUnique: {},
} satisfies CoreOptions;

/** The options of the core with their defaults. */
export type ResolvedCoreOptions = CoreOptions &
  Required<Pick<CoreOptions, keyof typeof CORE_DEFAULTS>> & {
    /**
     * Set if `resolveTenantId` is `bySlug()`. It is kept apart from other resolvers, because the
     * caller chooses the slug (R1, R9).
     */
    bySlug?: SlugResolver | undefined;
  };

/** Slugs that are reserved by default: applications often use these names in hosts and paths. */
export const DEFAULT_RESERVED_SLUGS = (
  "about account admin api app assets auth billing blog cdn console dashboard demo dev docs email " +
  "ftp help home imap internal localhost login logout mail null oauth operator platform pop portal " +
  "public register root security settings shop sign-in sign-out sign-up signin signout signup " +
  "smtp sso staging static status support system team tenant tenants test user users " +
  "web www"
).split(" ");

export const fn = z.custom((value) => typeof value === "function", "expected a function");
export const texts = z.array(z.string().min(1));
const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected a header name");
const names = z.strictObject({
  modelName: z.string().min(1).optional(),
  fields: z.record(z.string(), z.string().min(1)).optional(),
});

/** Checks of the core's options, and of the header that `bySlug()` reads. */
export const coreChecks = {
  resolveTenantId: fn.optional(),
  tenantHeader: headerName,
  slugHeader: headerName.optional(),
  keepEmailGloballyUnique: z.boolean(),
  sessionCookies: z.enum(["shared", "per-tenant"]),
  scopedModels: texts,
  sharedModels: texts,
  globallyUnique: z.record(z.string(), texts),
  schema: z.record(z.string(), names).optional(),
};

export const isSlugResolver = (resolver: ResolveTenant | undefined): resolver is SlugResolver =>
  typeof resolver === "function" && "slugHeader" in resolver;

/** Throws if an option of a plugin is invalid. */
export function assertOptions<T>(name: string, schema: z.ZodType<T>, options: object): T {
  const { error, data } = schema.safeParse(options);
  if (error) throw new BetterAuthError(`${name}(): ${z.prettifyError(error)}`);
  return data;
}

/**
 * Returns the `tenantAuth()` plugin that another plugin of ours requires. Throws if it is missing.
 */
export function coreBeside(name: string, { options }: AuthContext) {
  const core = options.plugins?.find(({ id }) => id === PLUGIN_ID);
  if (core) return core;
  throw new BetterAuthError(`${name}(): put tenantAuth() before it in the plugins`);
}
