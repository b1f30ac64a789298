import { BetterAuthError, getHostFromSource } from "better-auth";
import {
  DEFAULT_RESERVED_SLUGS,
  type ResolvedTenant,
  type ResolveTenant,
  type ResolveTenantContext,
} from "../options";

/** A host name, perhaps with a port. A number alone is the key of a list or of a text. */
const HOST = /^(?!\d+$)([a-z0-9-]+(?:\.[a-z0-9-]+)*)\.?(?::\d{1,5})?$/;

/**
 * Names the tenant by the first label of the host: `acme.example.com` is the tenant with the slug
 * `acme`. The base domain itself, reserved names and other hosts are the platform, whatever else
 * the request says.
 */
export function bySubdomain({
  baseDomain = "",
  reserved = DEFAULT_RESERVED_SLUGS,
}: {
  /** What stands behind the slug: `"example.com"`. */
  baseDomain: string;
  /**
   * Labels that are no tenant.
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
 * Names the tenant by the whole host: `{ "login.acme.com": { slug: "acme" } }`, or a function that
 * looks it up. A host that is not known is the platform, whatever else the request says.
 */
export function byDomain(
  domains:
    | Readonly<Record<string, string | { slug: string }>>
    | ((host: string) => ResolvedTenant | Promise<ResolvedTenant>),
): ResolveTenant {
  const wrong = Object.keys(domains).find((host) => HOST.exec(host)?.[1] !== host);
  if (typeof domains !== "function" && wrong !== undefined) {
    throw new BetterAuthError(
      `byDomain(): "${wrong}" never matches. Write { host: tenant }, with each host bare and in lower case, as a browser sends it`,
    );
  }
  const find =
    typeof domains === "function"
      ? domains
      : (host: string) => (Object.hasOwn(domains, host) ? domains[host] : false);
  const resolve: ResolveTenant = async (ctx) => {
    const host = hostOf(ctx);
    // Code of the server's own that calls without a request: there is nothing to go by.
    if (host === undefined) return ctx.headers?.has("host") ? false : undefined;
    const name = HOST.exec(host)?.[1];
    const found = name ? await find(name) : false;
    const answer = found === undefined || found === null || found === "" ? false : found;
    if (answer === false) atPlatformHosts.add(ctx.request ?? ctx.headers ?? {});
    return answer;
  };
  ours.add(resolve);
  return resolve;
}

/** Requests and headers with a host that is the platform's, also where another resolver asked us. */
const atPlatformHosts = new WeakSet<object>();

export const isAtPlatformHost = ({ request, headers }: ResolveTenantContext): boolean =>
  atPlatformHosts.has(request ?? headers ?? {});

const ours = new WeakSet<ResolveTenant>();

/**
 * The host that the resolver goes by. Undefined where it is a function of the application's: it may
 * read another host of the request than better-auth, or go by something else altogether.
 */
export const ownHost = (ctx: ResolveTenantContext, resolve: ResolveTenant | undefined) =>
  resolve && ours.has(resolve) ? hostOf(ctx) : undefined;

/**
 * The host as better-auth reads it where it makes the addresses of links: a request that was one
 * tenant's to us, and another's to better-auth, would send the links of one to the other.
 */
export function hostOf({ headers, request, context }: ResolveTenantContext): string | undefined {
  const source = request ?? headers;
  const trusted = context.options.advanced?.trustedProxyHeaders;
  return (source && getHostFromSource(source, trusted))?.toLowerCase();
}
