import { adminTarget } from "./admin-endpoints";
import { currentEndpoint } from "./endpoint";
import { enteredScope, PLATFORM_SCOPE, type Scope } from "./request";

/**
 * Returns the scope in which the running code reads and changes data. Without a request and
 * `runInTenant`, that is the platform. An admin endpoint may have cross-tenant access. Calls that
 * its hooks make through `auth.api` do not.
 */
export function currentScope(): Scope {
  const scope = enteredScope() ?? PLATFORM_SCOPE;
  if (scope.access === "own" || adminTarget(currentEndpoint())) return scope;
  return { ...scope, access: "own" };
}
