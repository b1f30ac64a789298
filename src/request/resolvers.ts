import { BetterAuthError, getHostFromSource } from "better-auth";
import { DEFAULT_SLUG_HEADER } from "../constants";
import {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
  type SlugResolver,
} from "../options";

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
  return byDomain((host) => {
    const slug = host.endsWith(`.${base}`) ? host.slice(0, -base.length - 1) : "";
    return slug && !slug.includes(".") && !reserved.includes(slug) ? { slug } : false;
  });
}

/**
 * Resolves the tenant by the whole host: `{ "login.acme.com": { slug: "acme" } }`, or a function that
 * looks it up. An unknown host is the platform, whatever else the request says.
 */
export function byDomain(
  domains:
    | Readonly<Record<string, string | { slug: string }>>
    | ((host: string) => ResolvedTenant | Promise<ResolvedTenant>),
): ResolveTenant {
  const isFunction = typeof domains === "function";
  const wrong = Object.keys(domains).find((host) => HOST.exec(host)?.[1] !== host);
  if (!isFunction && wrong !== undefined) {
    throw new BetterAuthError(
      `byDomain(): "${wrong}" never matches. Write { host: tenant }, with each host bare and in lower case, as a browser sends it`,
    );
  }
  const find = (host: string) => {
    if (isFunction) return domains(host);
    return Object.hasOwn(domains, host) ? domains[host] : false;
  };
  const resolve: ResolveTenant = async (ctx) => {
    const host = hostOf(ctx);
    // A call of the server's own code may have no host to go by.
    if (host === undefined) return ctx.headers?.has("host") ? false : undefined;
    const name = HOST.exec(host)?.[1];
    const found = name ? await find(name) : false;
    const tenant = found === "" ? false : (found ?? false);
    if (tenant === false) atPlatformHosts.add(ctx.request ?? ctx.headers ?? {});
    return tenant;
  };
  hostResolvers.add(resolve);
  return resolve;
}

/** Requests and headers with a host of the platform, also if another resolver called ours. */
const atPlatformHosts = new WeakSet<object>();

export const isAtPlatformHost = ({ request, headers }: ResolveTenantContext): boolean =>
  atPlatformHosts.has(request ?? headers ?? {});

const hostResolvers = new WeakSet<ResolveTenant>();

/**
 * The host that the resolver goes by. Undefined for the application's own function: it may read
 * another host than better-auth, or something else altogether.
 */
export const ownHost = (ctx: ResolveTenantContext, resolve: ResolveTenant | undefined) =>
  resolve && hostResolvers.has(resolve) ? hostOf(ctx) : undefined;

/** The host that better-auth builds links with: another one would send links to another tenant. */
export function hostOf({ headers, request, context }: ResolveTenantContext): string | undefined {
  const source = request ?? headers;
  const trusted = context.options.advanced?.trustedProxyHeaders;
  return (source && getHostFromSource(source, trusted))?.toLowerCase();
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
