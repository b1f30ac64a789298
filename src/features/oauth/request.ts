import type { Row } from "../../core/database";
import { requestSlot } from "../../core/request";

interface OAuthRequest {
  /** Accounts that the request has read from the database. `noteAccounts` adds them. */
  readAccounts: Row[];
  /**
   * Addresses of identity providers that `sso()` is about to call, and whether the application
   * trusts their hosts. `limitCallsTo` adds them.
   */
  providerAddresses?: Map<string, { isTrusted: boolean }>;
}

export const oauthRequest = requestSlot((): OAuthRequest => ({ readAccounts: [] }));
