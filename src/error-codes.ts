import { defineErrorCodes } from "@better-auth/core/utils/error-codes";

/** Every error this plugin answers with. better-auth's own codes pass through unchanged. */
export const TENANT_AUTH_ERROR_CODES = defineErrorCodes({
  TENANT_NOT_FOUND: "Tenant not found",
  TENANT_SUSPENDED: "Tenant suspended",
  TENANT_DELETING: "Tenant about to be deleted",
  TENANT_ID_REQUIRED: "Name a tenant",
  TENANT_ID_OR_SLUG_REQUIRED: "Give either id or slug",
  TENANT_ALREADY_EXISTS: "The slug is taken",
  INVALID_SLUG: "A slug has 2 to 63 lowercase letters, digits and inner hyphens",
  SLUG_RESERVED: "The slug is reserved",
  UNAUTHORIZED: "Unauthorized",
  TENANT_MANAGEMENT_NOT_ALLOWED: "You may not manage tenants",
  UNSUPPORTED_PROVIDER: "Not a built-in provider",
  INVALID_PROVIDER_OPTIONS: "The options do not fit the provider",
  UNTRUSTED_PROVIDER_HOST: "Neither the provider's own host nor a trusted one",
  PROVIDER_NOT_FOUND: "Provider not found",
  INVALID_REDIRECT_URI: "Not an https URL (http on loopback only) without a fragment",
  OAUTH_CONFIG_NOT_FOUND: "OAuth config not found",
  OAUTH_CONFIG_NOT_SAVED: "OAuth config not saved",
  OAUTH_CREDENTIAL_DECRYPT_FAILED: "OAuth config not readable",
  USER_NOT_IN_TENANT: "The user is not in this tenant",
  VALUE_TAKEN: "The value is taken, here or in another tenant",
  TENANT_SCOPE_CONFLICT: "The request around this call is in another tenant",
});
