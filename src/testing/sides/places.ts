import { isTenantRoute } from "../../core/constants";
import type { ResolvedTenant } from "../../core/options";
import { runInTenant } from "../../core/request";
import type { Tenant } from "../../features/management/tenant";
import type { Endpoint } from "../instance/endpoints";
import { NO_TENANT, type Subject, withoutStars } from "../instance/subject";
import type { Address } from "../options";

export const SIDES = ["a", "b", "platform"] as const;
export type SideName = (typeof SIDES)[number];

/** One side, as requests see it. */
export interface Place {
  name: SideName;
  tenantId: string | null;
  tenantSlug: string | null;
  origin: string;
  /** What the resolver goes by: a host, or a header of the application's own. */
  headers: Record<string, string>;
  /** Whether the address names the side, and overrules what else the request says. */
  addressed: boolean;
  /** Whether a request to the platform's address can name it by query, body or header. */
  claimable: boolean;
  /** The header that names it where the instance goes by the slug: see `bySlug()`. */
  slug?: Record<string, string>;
}

export type Tenants = Record<"a" | "b", Tenant>;

/** The three sides, at the addresses that the configuration knows them by. */
export async function findPlaces(
  subject: Subject,
  tenants: Tenants,
  address: Address | undefined,
): Promise<Place[]> {
  const { bySlug } = subject.tenantOptions;
  const found = address ?? (await addressesByHost(subject, tenants));
  const addressOf = (tenant: Tenant | null) => {
    const given = found?.(tenant) ?? {};
    const { url = subject.origin, headers = {} } =
      typeof given === "string" ? { url: given } : given;
    const { origin, host } = new URL(url);
    return { origin, headers: found ? { host, ...headers } : {} };
  };
  const platform = addressOf(null);
  // Whether the resolver leaves it to the request to name a tenant, at the platform's address.
  const claimable =
    !found || (await askResolver(subject, platform.origin, platform.headers)) !== false;
  return SIDES.map((name) => {
    const tenant = name === "platform" ? null : tenants[name];
    return {
      name,
      tenantId: tenant?.id ?? null,
      tenantSlug: tenant?.slug ?? null,
      claimable,
      addressed: found !== undefined && (tenant !== null || !claimable),
      ...addressOf(tenant),
      ...(bySlug && tenant && { slug: { [bySlug.slugHeader]: tenant.slug } }),
    };
  });
}

export const isPlatformReached = ({ origin }: Subject) => !origin.includes(NO_TENANT);

/** Asks the resolver which hosts are the tenants'. */
async function addressesByHost(subject: Subject, tenants: Tenants): Promise<Address | undefined> {
  if (!subject.tenantOptions.resolveTenantId) return undefined;
  const ask = (host: string) => askResolver(subject, `http://${host}`, { host });
  for (const { protocol, base } of basesOf(subject)) {
    if (!isTenant(await ask(`${tenants.a.slug}.${base}`), tenants.a)) continue;
    const platform = isPlatformReached(subject) ? `${protocol}//${base}` : subject.origin;
    return (tenant) => (tenant ? `${protocol}//${tenant.slug}.${base}` : platform);
  }
  return undefined;
}

export async function askResolver(
  { ctx, tenantOptions, basePath }: Subject,
  origin: string,
  given: Record<string, string>,
): Promise<ResolvedTenant> {
  const headers = new Headers(given);
  const path = "/get-session";
  const request = new Request(origin + basePath + path, { headers });
  try {
    return await tenantOptions.resolveTenantId?.({ context: ctx, headers, request, path });
  } catch {
    return undefined;
  }
}

export const isTenant = (answer: ResolvedTenant, { id, slug }: { id: string; slug: string }) =>
  typeof answer === "object" ? answer?.slug === slug : answer === id;

function basesOf({ ctx, origin }: Subject) {
  const { baseURL, trustedOrigins } = ctx.options;
  const own = new URL(origin);
  const allowed = typeof baseURL === "object" ? baseURL.allowedHosts : [];
  const trusted = Array.isArray(trustedOrigins) ? trustedOrigins : [];
  const wild = [...allowed, ...trusted].filter((pattern) => pattern.includes("*."));
  const below = wild.map((pattern) => {
    const [, protocol = own.protocol, base = ""] =
      /^(https?:)?(?:\/\/)?\*\.(.+)$/.exec(pattern) ?? [];
    return { protocol, base: withoutStars(base) };
  });
  return [...below, { protocol: own.protocol, base: own.host }].filter(({ base }) => base);
}

export const inside = <T>({ tenantId }: Pick<Place, "tenantId">, run: () => Promise<T>) =>
  tenantId === null ? run() : runInTenant(tenantId, run);

/** Where a request itself can name a tenant. */
type Claim = "body" | "query" | "header" | "slug";
/** The address decides, also against what the request claims. */
type ByAddress = "address" | `address over ${Claim}`;
export type Naming = "nothing" | Claim | ByAddress;

/** Sign-in and sign-up under a tenant, by invitation too, and what a page asks before. */
export const isOwnSignIn = (path: string) =>
  /^\/tenant\/(sign-(in|up)\b|invitation\/(get|accept)$|discover$)/.test(path);

/** Endpoints of this package that act on a tenant, and run in none. */
const MANAGEMENT =
  /^\/tenant\/(create|get|list|update|delete|sign-in-methods|user\/reset-two-factor)$|^\/tenant\/(oauth-config|invitation|domain)\//;

export const isManagement = (path: string) =>
  (MANAGEMENT.test(path) || isTenantRoute(path)) && !isOwnSignIn(path);

/** The ways to name the side that a request goes to. Without an address, the platform has no name. */
export function namingsFor(home: Place, place: Place, { path, method }: Endpoint): Naming[] {
  const claims: Claim[] = ["query", "header"];
  if (isOwnSignIn(path) && method === "POST") claims.unshift("body");
  if (place.slug) claims.push("slug");
  const named = place.tenantId !== null && place.claimable ? claims : [];
  if (!place.addressed) return place.tenantId === null ? ["nothing"] : named;
  const against = claims.map((claim): ByAddress => `address over ${claim}`);
  return ["address", ...(home.tenantId === null ? [] : against), ...named];
}

/** How a side is named by its own users. */
export function namingAtHome({ tenantId, addressed, slug }: Place): Naming {
  if (addressed) return "address";
  if (tenantId === null) return "nothing";
  return slug ? "slug" : "header";
}

export function namedAtHome(place: Place, { tenantHeader }: { tenantHeader: string }) {
  if (namingAtHome(place) === "header") return { [tenantHeader]: place.tenantId ?? "" };
  return place.slug ?? {};
}
