import { defineErrorCodes } from "@better-auth/core/utils/error-codes";

/** Every error that domains add to those of `tenantAuth()`. */
export const TENANT_DOMAIN_ERROR_CODES = defineErrorCodes({
  INVALID_DOMAIN: "Not a domain that a tenant can have: write a name such as acme.com",
  DOMAIN_NOT_FOUND: "The tenant has not added this domain",
  DOMAIN_LIMIT_REACHED: "The tenant has too many domains",
  DOMAIN_LOOKUP_FAILED: "The DNS record could not be looked up. Try again later",
});
