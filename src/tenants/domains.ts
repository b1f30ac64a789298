import type { AuthContext, BetterAuthOptions } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";

/** What the core asks `tenantDomains()`. It is found on that plugin, wherever it stands. */
export interface Domains {
  /** The tenant whose verified host a domain is, in its normal form. Cached like tenants. */
  tenantOf(ctx: AuthContext, domain: string): Promise<string | undefined>;
  /** The domains that a tenant has verified. */
  verifiedBy(
    ctx: AuthContext,
    tenantId: string,
    adapter?: DBTransactionAdapter,
  ): Promise<readonly string[]>;
}

export const DOMAINS = Symbol.for("better-auth-tenant:domains");

export function domainsIn({ options }: { options: BetterAuthOptions }): Domains | undefined {
  const plugin = options.plugins?.find((plugin) => DOMAINS in plugin);
  return (plugin as { [DOMAINS]?: Domains } | undefined)?.[DOMAINS];
}
