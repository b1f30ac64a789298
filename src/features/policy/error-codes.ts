import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import { inWords } from "../../core/error-codes";

/** Errors of policies. */
export const POLICY_ERROR_CODES = defineErrorCodes(
  inWords({
    SIGN_UP_CLOSED: "",
    INVITATION_REQUIRED: "",
    EMAIL_DOMAIN_NOT_ALLOWED: "",
    SIGN_IN_METHOD_NOT_ALLOWED: "",
    TWO_FACTOR_REQUIRED: "",
    POLICY_LOCKS_OUT: "",
  }),
);
