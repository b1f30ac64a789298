import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";

/** The service of `tenantDomains()` for other features. */
export interface Domains {
  verifiedBy(
    ctx: AuthContext,
    tenantId: string,
    adapter?: DBTransactionAdapter,
  ): Promise<readonly string[]>;
}

declare module "../../core/extension" {
  interface Services {
    domains: Domains;
  }
}
