import type { Row } from "../../core/database";

/** The service of `tenantInvitations()` for other features. */
export interface Invitations {
  /** Returns the values that the invitation of a sign-up writes into the user with this email. */
  writtenInto(email: unknown): Row;
}

declare module "../../core/extension" {
  interface Services {
    invitations: Invitations;
  }
}
