import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import { inWords } from "../../core/error-codes";

/** Errors of SSO and SCIM. */
export const ENTERPRISE_ERROR_CODES = defineErrorCodes(
  inWords({
    XML_TOO_LARGE: "This XML has too many elements or attributes, or is too long",
  }),
);
