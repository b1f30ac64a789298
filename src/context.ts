import type { AuthContext } from "better-auth";
import { type Endpoint, tenantProviders } from "./oauth/providers";
import type { ResolvedOptions } from "./options";
import { tenantCookies } from "./scope/cookies";
import { enterScope } from "./scope/scope";
import type { EnterScope } from "./scope/settle";

/** What is different in better-auth's context inside a tenant. */
export function tenantContext(
  endpoint: Endpoint,
  tenantId: string,
  options: ResolvedOptions,
): Partial<AuthContext> {
  const socialProviders = tenantProviders(endpoint, options);
  if (options.sessionCookies === "shared") return { socialProviders };
  return { socialProviders, authCookies: tenantCookies(endpoint.context, tenantId) };
}

export const createEnterScope =
  (options: ResolvedOptions): EnterScope =>
  (scope, endpoint) => {
    if (scope.tenantId !== null && endpoint) {
      const { authCookies, ...changes } = tenantContext(endpoint, scope.tenantId, options);
      // An admin of the platform comes to visit with the platform's cookie.
      const visits = scope.admin === "visits";
      Object.assign(endpoint.context, changes, authCookies && !visits ? { authCookies } : {});
    }
    return enterScope(scope);
  };
