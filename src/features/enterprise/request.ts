import type { Row } from "../../core/database";
import { requestSlot } from "../../core/request";

interface EnterpriseRequest {
  /**
   * The caller, if they may manage the identity providers of this scope. A guest is signed in to
   * another scope, such as an operator on the platform.
   */
  manager?: { userId: string; isGuest: boolean };
  /** The identity providers that the request has read, the latest last. `asRead` adds them. */
  readProviders: Pick<Row, "providerId" | "domain" | "domainVerified">[];
  /** The user that a SCIM call is about. `rememberDirectoryUser` sets it. */
  directoryUserId?: string;
  /** The same user, if the SCIM call leaves the user deactivated. */
  deactivatedUserId?: string | undefined;
  /** Whether the SCIM call deletes the directory's row. `rememberDirectoryUser` sets it. */
  isRowDeleted?: boolean;
  /** The user that the SCIM call created. `markCreatedUsers` sets it. */
  createdUserId?: string;
  /** A directory's user whose email the identity provider proves. `linkDirectoryUsers` sets it. */
  provenUserId?: string;
}

export const enterpriseRequest = requestSlot((): EnterpriseRequest => ({ readProviders: [] }));
