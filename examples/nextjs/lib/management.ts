import { isAPIError } from "better-auth/api";
import type { Tenant, TenantOAuthConfig } from "better-auth-tenant";
import { headers } from "next/headers";
import { notFound, redirect } from "next/navigation";
import { auth } from "./auth";
import { byName } from "./providers";
import { shownProvider } from "./sso";
import { basePath, headersFor, orSignIn, sessionAt } from "./tenants";

/** Calls the management API as somebody, so that the plugin decides what they may do. */
export type AsManager = <T>(call: (headers: Headers) => Promise<T>) => Promise<T>;

/** In the console: as the operator who is signed in. Everybody else is led to the sign-in page. */
export const asOperator: AsManager = async (call) => {
  try {
    return await call(new Headers(await headers()));
  } catch (error) {
    const status = statusOf(error);
    if (status === 401 || status === 403) redirect("/console/sign-in");
    if (status === 404) notFound();
    throw error;
  }
};

export const tenantForOperator = (id: string) =>
  asOperator((headers) => auth.api.getTenant({ query: { id }, headers }));

/**
 * On a tenant's own pages: as whoever is signed in there. Null for those who may not manage it;
 * who is not signed in is led to the sign-in page.
 */
export async function administratorOf(tenant: Tenant): Promise<AsManager | null> {
  const asAdministrator: AsManager = (call) => orSignIn(tenant, headersFor(tenant.id).then(call));
  if (!(await sessionAt(tenant.id))) redirect((await basePath(tenant)) || "/");
  try {
    const query = { id: tenant.id };
    await asAdministrator((headers) => auth.api.getTenant({ query, headers }));
    return asAdministrator;
  } catch (error) {
    if (statusOf(error) === 403) return null;
    throw error;
  }
}

const statusOf = (error: unknown) => (isAPIError(error) ? error.statusCode : undefined);

/** What both kinds of managers see of a tenant. */
export async function settingsOf(tenant: Pick<Tenant, "id" | "status">, asManager: AsManager) {
  const tenantId = tenant.id;
  const query = { tenantId };
  const [configs, invitations, domains, identityProviders] = await Promise.all([
    asManager((headers) => auth.api.listTenantOAuthConfigs({ query, headers })),
    asManager((headers) =>
      auth.api.listTenantInvitations({ query: { tenantId, limit: 50 }, headers }),
    ),
    asManager((headers) => auth.api.listTenantDomains({ query, headers })),
    // An endpoint of better-auth's: none of these runs in a tenant that is suspended. It has no
    // query of its own, but the query names the tenant.
    tenant.status === "active"
      ? asManager((headers) => auth.api.listSSOProviders({ ...{ query }, headers }))
      : null,
  ]);
  return {
    configs: configs.toSorted((a, b) => byName(a.providerId, b.providerId)).map(shownConfig),
    invitations,
    domains,
    identityProviders: identityProviders?.providers.map(shownProvider),
  };
}

/** Of a config, what the browser needs to know. */
function shownConfig(config: TenantOAuthConfig) {
  const { providerId, clientId, callbackURL, enabled, readable, options } = config;
  return {
    ...{ providerId, clientId, callbackURL, enabled, readable },
    issuer: typeof options?.issuer === "string" ? options.issuer : null,
    secretChangedAt: new Date(config.secretChangedAt).toISOString(),
    version: new Date(config.updatedAt).toISOString(),
  };
}
