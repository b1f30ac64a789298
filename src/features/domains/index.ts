import type { AuthContext, BetterAuthPlugin } from "better-auth";
import type { Extension } from "../../core/extension";
import { EXTENSION } from "../../core/extensions";
import { TENANT_DOMAIN_ERROR_CODES } from "./error-codes";
import { prepareCall, prepareHost } from "./hosts";
import {
  assertSetup,
  domainSchema,
  resolveDomainOptions,
  type TenantDomainsOptions,
} from "./options";
import * as routes from "./routes";
import type { Domains } from "./service";
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
 * Lets tenants verify domains by a DNS record. A verified domain can be a host (`byDomain()`) and
 * an email domain (`emailDomains: "verified"`). Sign-in pages can find a tenant by it.
 */
export const tenantDomains = (domainOptions?: TenantDomainsOptions) => {
  const options = resolveDomainOptions(domainOptions);
  const domains: Domains = {
    async verifiedBy(ctx, tenantId, adapter) {
      const rows = await verifiedRows(ctx, tenantId, adapter);
      // Not with a given adapter, which may belong to a transaction (see `recheck`).
      if (!adapter) recheck(ctx, options, rows);
      return rows.map(({ domain }) => domain);
    },
  };
  const extension = (): Extension => ({
    name: "domains",
    async tenantOfHost({ context }, host) {
      const row = await verifiedRow(context, host);
      if (row) recheck(context, options, [row]);
      return row?.host ? row.tenantId : undefined;
    },
    provides: { domains },
  });
  return {
    ...{ [EXTENSION]: extension },
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
      /** Returns the tenants of a verified domain. Public. */
      discoverTenants: routes.discoverEndpoint(options),
    },
    rateLimit: [
      // Limited, because each call looks up a DNS name that the caller chooses.
      { pathMatcher: (path: string) => path === routes.VERIFY_PATH, window: 60, max: 10 },
      // Otherwise callers could find out which companies of a list are customers.
      { pathMatcher: (path: string) => path === routes.DISCOVER_PATH, window: 60, max: 20 },
    ],
    options,
    $ERROR_CODES: TENANT_DOMAIN_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};
