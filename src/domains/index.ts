import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { DOMAINS, type Domains } from "../tenants/plugins";
import { TENANT_DOMAIN_ERROR_CODES } from "./error-codes";
import { prepareCall, prepareHost } from "./hosts";
import {
  assertSetup,
  domainSchema,
  resolveDomainOptions,
  type TenantDomainsOptions,
} from "./options";
import * as routes from "./routes";
import { verifiedRow, verifiedRows } from "./store";
import { recheck } from "./verify";

export { TENANT_DOMAIN_ERROR_CODES } from "./error-codes";
export type { ResolveTxt, TenantDomainsOptions, TenantDomainsSchema } from "./options";
export type { DiscoveredTenant, TenantDomain } from "./routes";
export type { DomainRecord } from "./verify";

declare module "@better-auth/core" {
  interface BetterAuthPluginRegistry<AuthOptions, Options> {
    "tenant-domains": { creator: typeof tenantDomains };
  }
}

/**
 * Domains that tenants prove to be theirs by a DNS record: as hosts (`byDomain()`), as email domains
 * (`emailDomains: "verified"`), and for sign-in pages that ask for the email first.
 */
export const tenantDomains = (domainOptions?: TenantDomainsOptions) => {
  const options = resolveDomainOptions(domainOptions);
  const domains: Domains = {
    async tenantOf(ctx, domain) {
      const row = await verifiedRow(ctx, domain);
      if (row) recheck(ctx, options, [row]);
      return row?.host ? row.tenantId : undefined;
    },
    async verifiedBy(ctx, tenantId, adapter) {
      const rows = await verifiedRows(ctx, tenantId, adapter);
      // A given adapter may be that of a transaction.
      if (!adapter) recheck(ctx, options, rows);
      return rows.map(({ domain }) => domain);
    },
  };
  return {
    ...{ [DOMAINS]: domains },
    id: "tenant-domains",
    schema: domainSchema(options.schema),
    init: (ctx: AuthContext) => assertSetup(ctx),
    onRequest: prepareHost,
    hooks: { before: [prepareCall] },
    endpoints: {
      /** Adds a domain to a tenant, and returns the DNS record that proves it. For managers. */
      addTenantDomain: routes.addDomainEndpoint(options),
      /** Looks for the DNS record. For managers. */
      verifyTenantDomain: routes.verifyDomainEndpoint(options),
      /** Lists a tenant's domains. For managers. */
      listTenantDomains: routes.listDomainsEndpoint(options),
      /** Changes whether a domain can be discovered, and is a host. For managers. */
      updateTenantDomain: routes.updateDomainEndpoint,
      /** Removes a domain from a tenant. For managers. */
      removeTenantDomain: routes.removeDomainEndpoint,
      /** The tenants of a verified domain. For everyone. */
      discoverTenants: routes.discoverEndpoint(options),
    },
    rateLimit: [
      // Each verification looks up a name of the caller's choice.
      { pathMatcher: (path: string) => path === routes.VERIFY_PATH, window: 60, max: 10 },
      // Otherwise a list of companies would become a list of customers.
      { pathMatcher: (path: string) => path === routes.DISCOVER_PATH, window: 60, max: 20 },
    ],
    options,
    $ERROR_CODES: TENANT_DOMAIN_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};
