import { BetterAuthError } from "better-auth";

/*
 * Errors for mistakes that hardly anybody makes, loaded when somebody does.
 */

export const twoVersions = () =>
  new BetterAuthError(
    "tenantAuth(): two versions of better-auth-tenant are loaded, and cannot share a request. Install one.",
  );

export const noAsyncLocalStorage = () =>
  new BetterAuthError("tenantAuth() requires AsyncLocalStorage, which this runtime lacks");

export const notATenantId = (given: unknown) =>
  new BetterAuthError(
    `runInTenant() requires the id of a tenant as a non-empty string, not ${typeof given === "string" ? "an empty one" : typeof given}`,
  );
