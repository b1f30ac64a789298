import { defineErrorCodes } from "@better-auth/core/utils/error-codes";
import type { StandardSchemaV1 } from "better-call";

/**
 * Turns a code into words ("Tenant not found") where its message is empty. Browsers load all
 * messages, so this keeps them small.
 */
export function inWords<Codes extends Record<string, string>>(codes: Codes) {
  const entries = Object.entries(codes).map(([code, message]) => [
    code,
    message || code[0] + code.slice(1).toLowerCase().replaceAll("_", " "),
  ]);
  return Object.fromEntries(entries) as { [Code in keyof Codes]: string };
}

/** Errors of the core. Each feature has its own `error-codes.ts`. */
export const CORE_ERROR_CODES = defineErrorCodes(
  inWords({
    TENANT_NOT_FOUND: "",
    TENANT_SUSPENDED: "",
    TENANT_ID_REQUIRED: "",
    UNAUTHORIZED: "",
    USER_NOT_IN_TENANT: "",
    VALUE_TAKEN: "",
    INVALID_VALUE: "",
    TRY_AGAIN: "",
    TENANT_SCOPE_CONFLICT: "The call names another tenant than the request",
  }),
);

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
