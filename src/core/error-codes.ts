import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import type { StandardSchemaV1 } from "better-call";

/** Every error of this plugin. better-auth's own codes pass through unchanged. */
export const TENANT_AUTH_ERROR_CODES = defineErrorCodes(
  inWords({
    TENANT_NOT_FOUND: "",
    TENANT_SUSPENDED: "",
    TENANT_DELETING: "",
    TENANT_ID_REQUIRED: "",
    TENANT_ID_OR_SLUG_REQUIRED: "",
    TENANT_ALREADY_EXISTS: "",
    INVALID_SLUG: "A slug has 2 to 63 lowercase letters, digits and inner hyphens",
    SLUG_RESERVED: "",
    UNAUTHORIZED: "",
    TENANT_MANAGEMENT_NOT_ALLOWED: "",
    UNSUPPORTED_PROVIDER: "",
    INVALID_PROVIDER_OPTIONS: "",
    UNTRUSTED_PROVIDER_HOST: "",
    PROVIDER_NOT_FOUND: "",
    INVALID_REDIRECT_URI: "Not an https URL (http on loopback only) without a fragment",
    OAUTH_CONFIG_NOT_FOUND: "",
    OAUTH_CONFIG_NOT_SAVED: "",
    OAUTH_CREDENTIAL_DECRYPT_FAILED: "",
    USER_NOT_IN_TENANT: "",
    VALUE_TAKEN: "",
    INVALID_VALUE: "",
    XML_TOO_LARGE: "This XML has too many elements or attributes, or is too long",
    SIGN_UP_CLOSED: "",
    INVITATION_REQUIRED: "",
    EMAIL_DOMAIN_NOT_ALLOWED: "",
    SIGN_IN_METHOD_NOT_ALLOWED: "",
    TWO_FACTOR_REQUIRED: "",
    POLICY_LOCKS_OUT: "",
    LAST_ADMIN: "",
    ROLE_NOT_ALLOWED: "You may not give this role",
    PLATFORM_ONLY: "",
    TRY_AGAIN: "",
    TENANT_SCOPE_CONFLICT: "The call names another tenant than the request",
  }),
);

/**
 * Turns the code into words ("Tenant not found") if there is no message. Browsers load all
 * messages, so this keeps them small.
 */
function inWords<Codes extends Record<string, string>>(codes: Codes) {
  const entries = Object.entries(codes).map(([code, message]) => [
    code,
    message || code[0] + code.slice(1).toLowerCase().replaceAll("_", " "),
  ]);
  return Object.fromEntries(entries) as { [Code in keyof Codes]: string };
}

/**
 * The error of a call. Suggests these codes, but allows codes of the application and other plugins.
 */
export type Failure<Code extends string> = { code?: Code | (string & {}); message?: string };

/** The type of a server plugin in its client, with the error codes of its calls. */
export type WithErrorCodes<Plugin extends { endpoints: object }, Code extends string> = Omit<
  Plugin,
  "endpoints"
> & {
  endpoints: {
    [Name in keyof Plugin["endpoints"]]: Plugin["endpoints"][Name] & {
      options: { error: StandardSchemaV1<Failure<Code>> };
    };
  };
};
