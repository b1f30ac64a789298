import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";

export type ErrorCode = keyof typeof TENANT_AUTH_ERROR_CODES;
type Status = Parameters<typeof APIError.from>[0];

/**
 * Returns a function that creates an error by its code. The statuses are separate from the codes,
 * because browsers load the codes.
 */
export const errorsWith =
  <Code extends string>(
    codes: Record<Code, { message: string }>,
    status: Readonly<Record<Code, Status>>,
  ) =>
  (code: Code, message = codes[code].message) =>
    APIError.from(status[code], { code, message });

export const tenantError = errorsWith(TENANT_AUTH_ERROR_CODES, {
  TENANT_NOT_FOUND: "NOT_FOUND",
  TENANT_SUSPENDED: "FORBIDDEN",
  TENANT_DELETING: "CONFLICT",
  TENANT_ID_REQUIRED: "BAD_REQUEST",
  TENANT_ID_OR_SLUG_REQUIRED: "BAD_REQUEST",
  TENANT_ALREADY_EXISTS: "CONFLICT",
  INVALID_SLUG: "BAD_REQUEST",
  SLUG_RESERVED: "BAD_REQUEST",
  UNAUTHORIZED: "UNAUTHORIZED",
  TENANT_MANAGEMENT_NOT_ALLOWED: "FORBIDDEN",
  UNSUPPORTED_PROVIDER: "BAD_REQUEST",
  INVALID_PROVIDER_OPTIONS: "BAD_REQUEST",
  UNTRUSTED_PROVIDER_HOST: "BAD_REQUEST",
  PROVIDER_NOT_FOUND: "NOT_FOUND",
  INVALID_REDIRECT_URI: "BAD_REQUEST",
  OAUTH_CONFIG_NOT_FOUND: "NOT_FOUND",
  OAUTH_CONFIG_NOT_SAVED: "INTERNAL_SERVER_ERROR",
  OAUTH_CREDENTIAL_DECRYPT_FAILED: "INTERNAL_SERVER_ERROR",
  USER_NOT_IN_TENANT: "FORBIDDEN",
  VALUE_TAKEN: "UNPROCESSABLE_ENTITY",
  INVALID_VALUE: "BAD_REQUEST",
  XML_TOO_LARGE: "BAD_REQUEST",
  SIGN_UP_CLOSED: "FORBIDDEN",
  INVITATION_REQUIRED: "FORBIDDEN",
  EMAIL_DOMAIN_NOT_ALLOWED: "FORBIDDEN",
  SIGN_IN_METHOD_NOT_ALLOWED: "FORBIDDEN",
  TWO_FACTOR_REQUIRED: "FORBIDDEN",
  POLICY_LOCKS_OUT: "CONFLICT",
  LAST_ADMIN: "CONFLICT",
  ROLE_NOT_ALLOWED: "FORBIDDEN",
  PLATFORM_ONLY: "FORBIDDEN",
  TRY_AGAIN: "SERVICE_UNAVAILABLE",
  TENANT_SCOPE_CONFLICT: "CONFLICT",
});

/** Creates the error for an instance that is not isolated. It refuses every request. */
export const notStarted = () =>
  new BetterAuthError(
    "tenantAuth() has not started: another plugin has replaced `options` of the context that its init is given. Have that init return what it brings, as { options: { ... } } or { context: { ... } }.",
  );
