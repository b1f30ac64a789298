import { beforeEach } from "vitest";
import type { OAuthConfigCheck, TenantOAuthConfig } from "../../../src/index";
import { Browser, type RequestOptions } from "../../support/browser";
import { BASE_URL } from "../../support/instance";
import type { World } from "../../support/world";

/** A config in an answer, with times as texts. */
export type ConfigAnswer = {
  [Key in keyof TenantOAuthConfig]: TenantOAuthConfig[Key] extends Date
    ? string
    : TenantOAuthConfig[Key];
} & { message?: string };

export type OAuthTenant = Awaited<ReturnType<typeof createOAuthTenant>>;

type HasTenants = Pick<World, "auth" | "createTenant" | "database" | "operator">;

/** Creates a tenant. An operator manages its OAuth configs, and users sign in with them. */
export async function createOAuthTenant({ auth, createTenant, database, operator }: HasTenants) {
  const manager = await operator();
  const { id } = await createTenant();
  const { quote, query } = database;
  const table = quote("tenantOauthConfig");
  const mine = `where ${quote("tenantId")} = ?`;
  const post = <T = ConfigAnswer>(name: string, body: object, options?: RequestOptions) =>
    manager.post<T>(`/tenant/oauth-config/${name}`, { tenantId: id, ...body }, options);
  return {
    id,
    register: (body: object, options?: RequestOptions) => post("register", body, options),
    update: (body: object, options?: RequestOptions) => post("update", body, options),
    check: (body: object, options?: RequestOptions) =>
      post<OAuthConfigCheck>("check", body, options),
    remove: (providerId: string) => post<{ success: boolean }>("delete", { providerId }),
    async list() {
      const query = { tenantId: id };
      return (await manager.get<ConfigAnswer[]>("/tenant/oauth-config/list", { query })).data;
    },
    /** The configs as the database has them. */
    stored: () => query(`select * from ${table} ${mine}`, [id]),
    /** Writes a value into a column that the plugin would not write. */
    spoil: (column: string, value: string) =>
      query(`update ${table} set ${quote(column)} = ? ${mine}`, [value, id]),
    /** Starts a sign-in with a provider, in a new browser. */
    async start(provider: string, body: object = {}) {
      const browser = new Browser(auth.handler, BASE_URL);
      const answer = await browser.post<{ url: string }>("/tenant/sign-in/social", {
        tenantId: id,
        provider,
        callbackURL: "/welcome",
        errorCallbackURL: "/failed",
        ...body,
      });
      return { ...answer, browser };
    },
  };
}

/** A new tenant for each test. */
export function tenantOfEachTest(world: HasTenants): OAuthTenant {
  const tenant = {} as OAuthTenant;
  beforeEach(async () => {
    Object.assign(tenant, await createOAuthTenant(world));
  });
  return tenant;
}
