import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import { inWords } from "../../core/error-codes";

/** Errors of tenant management. */
export const MANAGEMENT_ERROR_CODES = defineErrorCodes(
  inWords({
    TENANT_ID_OR_SLUG_REQUIRED: "",
    TENANT_ALREADY_EXISTS: "",
    TENANT_DELETING: "",
    INVALID_SLUG: "A slug has 2 to 63 lowercase letters, digits and inner hyphens",
    SLUG_RESERVED: "",
    TENANT_MANAGEMENT_NOT_ALLOWED: "",
    LAST_ADMIN: "",
    ROLE_NOT_ALLOWED: "You may not give this role",
  }),
);
