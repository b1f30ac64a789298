import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import { MANAGEMENT_ERROR_CODES } from "../management/error-codes";

/** Every error that invitations add to those of `tenantAuth()`. */
export const TENANT_INVITATION_ERROR_CODES = defineErrorCodes({
  INVITATION_NOT_FOUND: "Invitation not found",
  INVITATION_EXPIRED: "The invitation has expired",
  INVITATION_ALREADY_ACCEPTED: "The invitation was accepted already",
  INVITATION_EMAIL_MISMATCH: "The invitation is for another address",
  ROLE_NOT_ALLOWED: MANAGEMENT_ERROR_CODES.ROLE_NOT_ALLOWED.message,
  USER_ALREADY_IN_TENANT: "The address is a user of this tenant already",
  INVITATION_RECENTLY_SENT: "This address was sent an invitation less than a minute ago",
  INVITATION_LIMIT_REACHED:
    "The tenant has too many pending invitations, or has mailed too many within an hour",
});

/** The header that carries the token of an invitation to other endpoints, like social sign-in. */
export const INVITATION_HEADER = "x-tenant-invitation";
