import { errorsWith } from "../../core/errors";
import { TENANT_DOMAIN_ERROR_CODES } from "./error-codes";

export const domainError = errorsWith(TENANT_DOMAIN_ERROR_CODES, {
  INVALID_DOMAIN: "BAD_REQUEST",
  DOMAIN_NOT_FOUND: "NOT_FOUND",
  DOMAIN_LIMIT_REACHED: "TOO_MANY_REQUESTS",
  DOMAIN_LOOKUP_FAILED: "SERVICE_UNAVAILABLE",
});
