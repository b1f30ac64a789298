import { BetterAuthError } from "better-auth";

/*
 * Errors for mistakes that hardly anybody makes.
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

export const notStarted = () =>
  new BetterAuthError(
    "tenantAuth() has not started: another plugin has replaced `options` of the context that its init is given. Have that init return what it brings, as { options: { ... } } or { context: { ... } }.",
  );

export const cannotConfine = () =>
  new BetterAuthError(
    "tenantAuth() cannot confine this database adapter, because its methods cannot be replaced. Write: database: (options) => ({ ...adapter(options) })",
  );
