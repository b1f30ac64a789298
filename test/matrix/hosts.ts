import type { BetterAuthOptions } from "better-auth";
import { bySubdomain } from "../../src/index";

/** Where the requests of a side go to, and come from. */
export interface Address {
  origin: string;
  /** The host that requests have to say where tenants are named by it. */
  host?: string;
}

/** One address for all: it says nothing about a tenant. */
export const SHARED_ADDRESS: Address = { origin: "http://localhost:3000" };

const BASE_DOMAIN = "example.com";

/** The host of the tenant with a slug, or with null the platform's. */
export function addressOf(slug: string | null): Address {
  const host = slug === null ? BASE_DOMAIN : `${slug}.${BASE_DOMAIN}`;
  return { origin: `http://${host}`, host };
}

export const resolveByHost = bySubdomain({ baseDomain: BASE_DOMAIN });

/** better-auth answers on every host. */
export const manyHosts: BetterAuthOptions["baseURL"] = {
  allowedHosts: [BASE_DOMAIN, `*.${BASE_DOMAIN}`],
  protocol: "http",
  fallback: `http://${BASE_DOMAIN}`,
};
