import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import { CORE_ERROR_CODES } from "./error-codes";

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

export const tenantError = errorsWith(CORE_ERROR_CODES, {
  TENANT_NOT_FOUND: "NOT_FOUND",
  TENANT_SUSPENDED: "FORBIDDEN",
  TENANT_ID_REQUIRED: "BAD_REQUEST",
  UNAUTHORIZED: "UNAUTHORIZED",
  USER_NOT_IN_TENANT: "FORBIDDEN",
  VALUE_TAKEN: "UNPROCESSABLE_ENTITY",
  INVALID_VALUE: "BAD_REQUEST",
  TRY_AGAIN: "SERVICE_UNAVAILABLE",
  TENANT_SCOPE_CONFLICT: "CONFLICT",
});

/** Creates the error for an instance that is not isolated. It refuses every request. */
export const notStarted = () =>
  new BetterAuthError(
    "tenantAuth() has not started: another plugin has replaced `options` of the context that its init is given. Have that init return what it brings, as { options: { ... } } or { context: { ... } }.",
  );
