import {
  BetterAuthError,
  getHostFromSource,
  isDynamicBaseURLConfig,
  matchesHostPattern,
} from "better-auth";
import { DEFAULT_SLUG_HEADER } from "../constants";
import { tenantError } from "../errors";
import { isolationOf } from "../isolation";
import {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
  type SlugResolver,
} from "../options";

/**
 * Matches a host name, perhaps with a port. A bare number is the key of an array, passed to
 * `byDomain()` by mistake.
 */
const HOST = /^(?!\d+$)([a-z0-9-]+(?:\.[a-z0-9-]+)*)\.?(?::\d{1,5})?$/;

/**
 * Resolves the tenant by the first label of the host: `acme.example.com` is the tenant with the
 * slug `acme`. The base domain, reserved labels and other hosts are the platform, even if the
 * request names a tenant.
 */
export function bySubdomain({
  baseDomain = "",
  reserved = DEFAULT_RESERVED_SLUGS,
}: {
  /** The part after the slug: `"example.com"`. */
  baseDomain: string;
  /**
   * Labels that are not tenants.
   * @default DEFAULT_RESERVED_SLUGS
   */
  reserved?: readonly string[];
}): ResolveTenant {
  const base = HOST.exec(baseDomain.toLowerCase())?.[1];
  if (!base)
    throw new BetterAuthError(
      `bySubdomain(): "${baseDomain}" is not a domain: write { baseDomain: "example.com" }`,
    );
  const find: FindHost = (host) => {
    if (host !== base && !host.endsWith(`.${base}`)) return undefined;
    const slug = host.slice(0, -base.length - 1);
    return slug && !slug.includes(".") && !reserved.includes(slug) ? { slug } : false;
  };
  return byHost({
    find,
    hostsOf: ({ slug }) => (reserved.includes(slug) ? [] : [`${slug}.${base}`]),
  });
}

/**
 * Resolves the tenant by the whole host: `{ "login.acme.com": { slug: "acme" } }`, or a function
 * that looks it up. An unknown host is the platform, even if the request names a tenant.
 *
 * Without an argument, uses the domains that tenants have verified with `tenantDomains()`. The
 * hosts of better-auth's `baseURL` are then the platform, and an unknown host is refused with 404.
 */
export function byDomain(
  domains?:
    | Readonly<Record<string, string | { slug: string }>>
    | ((host: string) => ResolvedTenant | Promise<ResolvedTenant>),
): ResolveTenant {
  if (domains === undefined) return byHost({ find: findVerified, readsVerified: true });
  if (typeof domains === "function") return byHost({ find: domains });
  const wrong = Object.keys(domains).find((host) => HOST.exec(host)?.[1] !== host);
  if (wrong !== undefined) {
    throw new BetterAuthError(
      `byDomain(): "${wrong}" never matches. Write { host: tenant }, with each host bare and in lower case, as a browser sends it`,
    );
  }
  const isOf = (tenant: Named, found: string | { slug: string }) =>
    typeof found === "string" ? found === tenant.id : found.slug === tenant.slug;
  return byHost({
    find: (host) => (Object.hasOwn(domains, host) ? domains[host] : undefined),
    hostsOf: (tenant) =>
      Object.entries(domains)
        .filter(([, found]) => isOf(tenant, found))
        .map(([host]) => host),
  });
}

/**
 * Combines resolvers by host. The first resolver that recognizes the host decides:
 * `firstOf(bySubdomain({ baseDomain: "example.com" }), byDomain())`.
 */
export function firstOf(...resolvers: ResolveTenant[]): ResolveTenant {
  const known = resolvers.flatMap((resolve) => hostResolvers.get(resolve) ?? []);
  if (known.length === 0 || known.length < resolvers.length) {
    throw new BetterAuthError(
      "firstOf() combines bySubdomain() and byDomain(). A resolver of your own can call others itself.",
    );
  }
  const find: FindHost = async (host, ctx) => {
    for (const { find } of known) {
      const tenant = await find(host, ctx);
      if (!isUnknown(tenant)) return tenant;
    }
    return undefined;
  };
  return byHost({
    find,
    readsVerified: known.some(({ readsVerified }) => readsVerified),
    hostsOf: (tenant) => known.flatMap(({ hostsOf }) => hostsOf(tenant)),
  });
}

/** Returns the tenant of a host, false for the platform, or undefined for an unknown host. */
type FindHost = (
  host: string,
  ctx: ResolveTenantContext,
) => ResolvedTenant | Promise<ResolvedTenant>;

const isUnknown = (tenant: ResolvedTenant) =>
  tenant === undefined || tenant === null || tenant === "";

interface ByHost {
  find: FindHost;
  /** True for `byDomain()` without an argument, alone or in `firstOf()`. */
  readsVerified?: boolean;
  /** The hosts of a tenant that are known without a request. */
  hostsOf?: (tenant: Named) => string[];
}

/**
 * Creates a resolver by host. If it reads verified domains, it refuses an unknown host, which may
 * have been a tenant's.
 */
function byHost({ find, readsVerified = false, hostsOf = () => [] }: ByHost): ResolveTenant {
  const resolve: ResolveTenant = async (ctx) => {
    const host = hostOf(ctx);
    // Server code may make a call without a host.
    if (host === undefined && !ctx.headers?.has("host")) return undefined;
    // better-auth would use the proxy's own host instead, which the caller has not requested.
    const name = readsVerified && isUnreadable(ctx) ? undefined : hostNameOf(ctx);
    const found = name === undefined ? undefined : await find(name, ctx);
    if (!isUnknown(found) && found !== false) return found;
    const isRefused =
      readsVerified && isUnknown(found) && !syntheticHostRequests.has(ctx.request ?? {});
    if (isRefused && !isAtApplicationHost(ctx)) throw tenantError("TENANT_NOT_FOUND");
    atPlatformHosts.add(ctx.request ?? ctx.headers ?? {});
    return false;
  };
  hostResolvers.set(resolve, { find, readsVerified, hostsOf });
  return resolve;
}

type Named = { id: string; slug: string };

/**
 * Returns the host of a request without its port; undefined if it is no name, as an IPv6 address.
 */
export const hostNameOf = (ctx: ResolveTenantContext) => HOST.exec(hostOf(ctx) ?? "")?.[1];

const findVerified: FindHost = async (host, ctx) => {
  const domains = isolationOf(ctx.context)?.extensions.find(({ tenantOfHost }) => tenantOfHost);
  if (!domains?.tenantOfHost) throw new BetterAuthError(MISSING_DOMAINS);
  if (isAtApplicationHost(ctx)) return undefined;
  const tenantId = await domains.tenantOfHost(ctx, host);
  if (tenantId) verifiedHosts.set(ctx.request ?? ctx.headers ?? {}, tenantId);
  return tenantId;
};

export const MISSING_DOMAINS =
  "byDomain() without an argument reads verified domains: add tenantDomains() to the plugins";

/**
 * The tenants of requests (or headers) whose host is a verified domain. Also set if the
 * application's resolver calls `byDomain()`.
 */
export const verifiedHosts = new WeakMap<object, string>();

/**
 * Returns whether the host of a request is one of better-auth's `baseURL`, with this port or
 * without.
 */
export function isAtApplicationHost(ctx: ResolveTenantContext): boolean {
  if (isUnreadable(ctx)) return false;
  // The options of a request contain the base URL of that request, not the configured one.
  const { baseURL } = (isolationOf(ctx.context)?.ctx ?? ctx.context).options;
  const patterns = isDynamicBaseURLConfig(baseURL)
    ? [...baseURL.allowedHosts, baseURL.fallback ?? ""]
    : [baseURL ?? ""];
  const names = [hostOf(ctx) ?? "", hostNameOf(ctx) ?? ""];
  return patterns.some((pattern) => names.some((name) => matchesHostPattern(name, pattern)));
}

/**
 * Requests that this plugin creates to ask a resolver about an address. An unknown host there
 * belongs to no tenant.
 */
export const syntheticHostRequests = new WeakSet<object>();

/**
 * Requests (or headers) whose host is the platform's. Also set if the application's resolver calls
 * a resolver by host.
 */
const atPlatformHosts = new WeakSet<object>();

export const isAtPlatformHost = ({ request, headers }: ResolveTenantContext): boolean =>
  atPlatformHosts.has(request ?? headers ?? {});

const hostResolvers = new WeakMap<ResolveTenant, Required<ByHost>>();

/** Returns the parts of a resolver by host; undefined for every other resolver. */
export const asHostResolver = (resolve: ResolveTenant | undefined) =>
  resolve && hostResolvers.get(resolve);

/**
 * Returns the host with which better-auth builds links, if it reads the base URL from the request.
 * Another host could send links to another tenant.
 */
export function hostOf({ headers, request, context }: ResolveTenantContext): string | undefined {
  const source = request ?? headers;
  const trusted = context.options.advanced?.trustedProxyHeaders;
  return (source && getHostFromSource(source, trusted))?.toLowerCase();
}

/**
 * Returns whether a trusted proxy sends a host that better-auth does not read: a list, or a
 * trailing dot.
 */
function isUnreadable(ctx: ResolveTenantContext): boolean {
  const { headers, request, context } = ctx;
  if (!context.options.advanced?.trustedProxyHeaders) return false;
  const forwarded = (request?.headers ?? headers)?.get("x-forwarded-host")?.toLowerCase();
  return Boolean(forwarded) && forwarded !== hostOf(ctx);
}

/**
 * Resolves the tenant by a slug in a request header: for pages at `/t/acme`, with
 * `tenantAuthClient({ tenantSlug })` in the browser. The caller chooses this header, like
 * `x-tenant-id`, so it assigns no host to a tenant. It takes precedence over `x-tenant-id`. The
 * body and the query take precedence over both.
 */
export function bySlug(
  options: {
    /**
     * The header with the slug; the client's `slugHeader`.
     * @default "x-tenant-slug"
     */
    header?: string;
  } = {},
): ResolveTenant {
  const { header = DEFAULT_SLUG_HEADER } = options;
  if (typeof options === "string") {
    throw new BetterAuthError(`bySlug(): write { header: "${options}" }`);
  }
  const resolve: ResolveTenant = ({ headers, request }) => {
    // Slugs are in lower case, but a user may type the address of a page in capitals.
    const slug = (headers ?? request?.headers)?.get(header)?.toLowerCase();
    return slug ? { slug } : undefined;
  };
  return Object.assign(resolve, { slugHeader: header }) satisfies SlugResolver;
}
