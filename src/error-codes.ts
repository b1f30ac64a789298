import { defineErrorCodes } from "@better-auth/core/utils/error-codes";

/** Every error this plugin answers with. better-auth's own codes pass through unchanged. */
export const TENANT_AUTH_ERROR_CODES = defineErrorCodes({
  TENANT_NOT_FOUND: "Tenant not found",
  TENANT_ID_REQUIRED: "This endpoint needs a tenant, and the request names none",
  TENANT_ID_OR_SLUG_REQUIRED: "Give either the id or the slug of the tenant, not both",
  TENANT_ALREADY_EXISTS: "A tenant with this slug already exists",
  INVALID_SLUG:
    "A slug has 2 to 63 lowercase letters, digits or hyphens, and no hyphen at either end",
  SLUG_RESERVED: "This slug is reserved",
  UNAUTHORIZED: "Unauthorized",
  TENANT_MANAGEMENT_NOT_ALLOWED: "You are not allowed to manage tenants",
  UNSUPPORTED_PROVIDER: "This is not a built-in social provider",
  PROVIDER_NOT_FOUND: "Provider not found",
  INVALID_REDIRECT_URI:
    "The redirect URI must be an absolute https URL (http on loopback only) without a fragment",
  OAUTH_CONFIG_NOT_FOUND: "The tenant has no OAuth config for this provider",
  OAUTH_CONFIG_NOT_SAVED: "The OAuth config could not be saved",
  OAUTH_CREDENTIAL_DECRYPT_FAILED: "The stored OAuth credentials cannot be decrypted",
  USER_NOT_IN_TENANT: "The user does not belong to the tenant of this request",
  VALUE_TAKEN: "This value is taken, here or in another tenant",
  TENANT_SCOPE_CONFLICT: "This call names another tenant than the request it is part of",
});
