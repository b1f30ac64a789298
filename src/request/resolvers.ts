import {
  BetterAuthError,
  getHostFromSource,
  isDynamicBaseURLConfig,
  matchesHostPattern,
} from "better-auth";
import { DEFAULT_SLUG_HEADER } from "../constants";
import { tenantError } from "../errors";
import { isolationOf } from "../isolation/isolation";
import {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
  type SlugResolver,
} from "../options";
import { domainsIn } from "../tenants/plugins";

/** A host name, perhaps with a port. A number alone is the index of an array or string. */
const HOST = /^(?!\d+$)([a-z0-9-]+(?:\.[a-z0-9-]+)*)\.?(?::\d{1,5})?$/;

/**
 * Resolves the tenant by the first label of the host: `acme.example.com` is the tenant with the slug
 * `acme`. The base domain itself, reserved names and other hosts are the platform, whatever else
 * the request says.
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
 * Resolves the tenant by the whole host: `{ "login.acme.com": { slug: "acme" } }`, or a function that
 * looks it up. An unknown host is the platform, whatever else the request says.
 *
 * Without an argument, by the domains that tenants have verified with `tenantDomains()`. The hosts of
 * better-auth's `baseURL` are the platform then, and an unknown host is refused with 404.
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
 * The first of several resolvers by host that knows the host:
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

/** The tenant of a host, or false for the platform. Nothing for a host that it does not know. */
type FindHost = (
  host: string,
  ctx: ResolveTenantContext,
) => ResolvedTenant | Promise<ResolvedTenant>;

const isUnknown = (tenant: ResolvedTenant) =>
  tenant === undefined || tenant === null || tenant === "";

interface ByHost {
  find: FindHost;
  /** `byDomain()` without an argument, by itself or in `firstOf()`. */
  readsVerified?: boolean;
  /** The hosts of a tenant that are known without a request. */
  hostsOf?: (tenant: Named) => string[];
}

/** Where verified domains are read, an unknown host is refused: it may have been a tenant's. */
function byHost({ find, readsVerified = false, hostsOf = () => [] }: ByHost): ResolveTenant {
  const resolve: ResolveTenant = async (ctx) => {
    const host = hostOf(ctx);
    // A call of the server's own code may have no host to go by.
    if (host === undefined && !ctx.headers?.has("host")) return undefined;
    // better-auth goes on with the proxy's own host, which is not the one that the caller is at.
    const name = readsVerified && isUnreadable(ctx) ? undefined : hostNameOf(ctx);
    const found = name === undefined ? undefined : await find(name, ctx);
    if (!isUnknown(found) && found !== false) return found;
    const isRefused = readsVerified && isUnknown(found) && !ofAddresses.has(ctx.request ?? {});
    if (isRefused && !isAtApplicationHost(ctx)) throw tenantError("TENANT_NOT_FOUND");
    atPlatformHosts.add(ctx.request ?? ctx.headers ?? {});
    return false;
  };
  hostResolvers.set(resolve, { find, readsVerified, hostsOf });
  return resolve;
}

type Named = { id: string; slug: string };

/** The host of a request without its port; undefined for an IPv6 address. */
export const hostNameOf = (ctx: ResolveTenantContext) => HOST.exec(hostOf(ctx) ?? "")?.[1];

const findVerified: FindHost = async (host, ctx) => {
  const domains = domainsIn(ctx.context);
  if (!domains) throw new BetterAuthError(MISSING_DOMAINS);
  if (isAtApplicationHost(ctx)) return undefined;
  const tenantId = await domains.tenantOf(ctx.context, host);
  if (tenantId) verifiedHosts.set(ctx.request ?? ctx.headers ?? {}, tenantId);
  return tenantId;
};

export const MISSING_DOMAINS =
  "byDomain() without an argument reads verified domains: add tenantDomains() to the plugins";

/** Requests and headers with a verified domain as host, also if another resolver called ours. */
export const verifiedHosts = new WeakMap<object, string>();

/** Whether the host of a request is one of better-auth's `baseURL`, with this port or without. */
export function isAtApplicationHost(ctx: ResolveTenantContext): boolean {
  if (isUnreadable(ctx)) return false;
  // The options of a request have the base URL of that request.
  const { baseURL } = (isolationOf(ctx.context)?.ctx ?? ctx.context).options;
  const patterns = isDynamicBaseURLConfig(baseURL)
    ? [...baseURL.allowedHosts, baseURL.fallback ?? ""]
    : [baseURL ?? ""];
  const names = [hostOf(ctx) ?? "", hostNameOf(ctx) ?? ""];
  return patterns.some((pattern) => names.some((name) => matchesHostPattern(name, pattern)));
}

/** Requests that were made up to ask about an address: an unknown host there is no tenant's. */
export const ofAddresses = new WeakSet<object>();

/** Requests and headers with a host of the platform, also if another resolver called ours. */
const atPlatformHosts = new WeakSet<object>();

export const isAtPlatformHost = ({ request, headers }: ResolveTenantContext): boolean =>
  atPlatformHosts.has(request ?? headers ?? {});

const hostResolvers = new WeakMap<ResolveTenant, Required<ByHost>>();

/** What is known of a resolver by host; undefined for every other one. */
export const asHostResolver = (resolve: ResolveTenant | undefined) =>
  resolve && hostResolvers.get(resolve);

/** The host that better-auth builds links with: another one would send links to another tenant. */
export function hostOf({ headers, request, context }: ResolveTenantContext): string | undefined {
  const source = request ?? headers;
  const trusted = context.options.advanced?.trustedProxyHeaders;
  return (source && getHostFromSource(source, trusted))?.toLowerCase();
}

/** Whether a trusted proxy sends a host that better-auth does not read: a list, or a trailing dot. */
function isUnreadable(ctx: ResolveTenantContext): boolean {
  const { headers, request, context } = ctx;
  if (!context.options.advanced?.trustedProxyHeaders) return false;
  const forwarded = (request?.headers ?? headers)?.get("x-forwarded-host")?.toLowerCase();
  return Boolean(forwarded) && forwarded !== hostOf(ctx);
}

/**
 * Resolves the tenant by a slug in a request header: for pages at `/t/acme`, with
 * `tenantAuthClient({ tenantSlug })` in the browser. The header is a claim of the caller, as
 * `x-tenant-id` is, and comes before that one. Body and query come first, and no address belongs to
 * a tenant because of it.
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
    // Slugs are in lower case. A user may type the address of a page differently.
    const slug = (headers ?? request?.headers)?.get(header)?.toLowerCase();
    return slug ? { slug } : undefined;
  };
  return Object.assign(resolve, { slugHeader: header }) satisfies SlugResolver;
}
