import type { BetterAuthClientPlugin } from "better-auth/client";
import type { WithErrorCodes } from "../../core/error-codes";
import type { ErrorCode } from "../../error-codes";
import { TENANT_DOMAIN_ERROR_CODES } from "./error-codes";
import type { tenantDomains } from "./index";

export { TENANT_DOMAIN_ERROR_CODES } from "./error-codes";

/** The comments that editors show for the calls: see `Actions` in `src/client.ts`. */
interface Actions {
  tenant: {
    /** The domains of a tenant. */
    domain: {
      /** Adds a domain, and returns the DNS record that proves it. For managers. */
      add: unknown;
      /** Looks for the DNS record. For managers. */
      verify: unknown;
      /** Lists a tenant's domains. For managers. */
      list: unknown;
      /** Changes whether a domain can be discovered, and is a host. For managers. */
      update: unknown;
      /** Removes a domain. For managers. */
      remove: unknown;
    };
    /** Returns the tenants of an email domain, for sign-in pages that ask for the email first. */
    discover: unknown;
  };
}

type Server = WithErrorCodes<
  ReturnType<typeof tenantDomains>,
  ErrorCode | keyof typeof TENANT_DOMAIN_ERROR_CODES
>;

/** The client of `tenantDomains()`: `authClient.tenant.domain.*` and `.tenant.discover`. */
export const tenantDomainsClient = () =>
  ({
    id: "tenant-domains",
    $InferServerPlugin: {} as Server,
    getActions: () => ({}) as Actions,
    $ERROR_CODES: TENANT_DOMAIN_ERROR_CODES,
    pathMethods: {
      "/tenant/domain/list": "GET",
      "/tenant/discover": "GET",
    },
  }) satisfies BetterAuthClientPlugin;
