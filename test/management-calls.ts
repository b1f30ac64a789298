import type { TenantManagementAction } from "../src/index";
import type { Browser, RequestOptions } from "./support/browser";
import type { Instance } from "./support/instance";

/** One of the ten management endpoints, called in a way that works for whoever may. */
export interface ManagementCall {
  action: TenantManagementAction;
  method: "GET" | "POST";
  path: string;
  /** The parts of the request that do not name the target. */
  body?: Record<string, unknown>;
  /** Where the target is named; create and list have none. */
  target?: "tenantId" | "id";
  /** Whether the target may be named by the header instead. */
  header?: true;
  /** Whether a field that it does not know is a mistake, whoever calls. */
  strict?: true;
}

export const managementCalls: ManagementCall[] = [
  {
    action: "tenant:create",
    method: "POST",
    path: "/tenant/create",
    body: { name: "Brand new", slug: "brand-new" },
  },
  { action: "tenant:get", method: "GET", path: "/tenant/get", target: "id" },
  { action: "tenant:list", method: "GET", path: "/tenant/list" },
  {
    action: "tenant:update",
    method: "POST",
    path: "/tenant/update",
    body: { name: "Changed" },
    target: "tenantId",
  },
  { action: "tenant:delete", method: "POST", path: "/tenant/delete", target: "tenantId" },
  {
    action: "oauth-config:register",
    method: "POST",
    path: "/tenant/oauth-config/register",
    body: { providerId: "github", clientId: "new-id", clientSecret: "new-secret" },
    target: "tenantId",
    header: true,
  },
  {
    action: "oauth-config:list",
    method: "GET",
    path: "/tenant/oauth-config/list",
    target: "tenantId",
    header: true,
  },
  {
    action: "oauth-config:update",
    method: "POST",
    path: "/tenant/oauth-config/update",
    body: { providerId: "google", enabled: false },
    target: "tenantId",
    header: true,
    strict: true,
  },
  {
    action: "oauth-config:check",
    method: "POST",
    path: "/tenant/oauth-config/check",
    body: { providerId: "google" },
    target: "tenantId",
    header: true,
  },
  {
    action: "oauth-config:delete",
    method: "POST",
    path: "/tenant/oauth-config/delete",
    body: { providerId: "google" },
    target: "tenantId",
    header: true,
  },
];

/** Sends a management call about a tenant. A check asks the provider, so tests have no network. */
export function manage(
  browser: Browser,
  { method, path, body, target }: ManagementCall,
  tenantId: string | undefined,
  {
    extra,
    headers = {},
    query,
  }: Pick<RequestOptions, "headers" | "query"> & { extra?: object } = {},
) {
  const named = target && tenantId !== undefined ? { [target]: tenantId } : {};
  return method === "GET"
    ? browser.get(path, { query: { ...named, ...query, ...extra }, headers })
    : browser.post(path, { ...body, ...named, ...extra }, { headers, ...(query && { query }) });
}

/** A tenant with a google config: every management call about it can succeed. */
export async function createManagedTenant(instance: Instance, slug?: string) {
  const tenant = await instance.createTenant(slug);
  await instance.api.registerTenantOAuthConfig({
    body: {
      tenantId: tenant.id,
      providerId: "google",
      clientId: `client-${tenant.id}`,
      clientSecret: "the-secret",
    },
  });
  return tenant;
}

/** Everything that management can change, row by row. */
export async function storedState({ database }: Instance) {
  const state: Record<string, Record<string, unknown>[]> = {};
  for (const table of ["tenant", "tenantOauthConfig", "user", "account"]) {
    state[table] = await database.query(`select * from ${database.quote(table)} order by id`);
  }
  return state;
}
