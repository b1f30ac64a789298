import { errorsWith } from "../../core/errors";
import { POLICY_ERROR_CODES } from "./error-codes";

export const policyError = errorsWith(POLICY_ERROR_CODES, {
  SIGN_UP_CLOSED: "FORBIDDEN",
  INVITATION_REQUIRED: "FORBIDDEN",
  EMAIL_DOMAIN_NOT_ALLOWED: "FORBIDDEN",
  SIGN_IN_METHOD_NOT_ALLOWED: "FORBIDDEN",
  TWO_FACTOR_REQUIRED: "FORBIDDEN",
  POLICY_LOCKS_OUT: "CONFLICT",
});
