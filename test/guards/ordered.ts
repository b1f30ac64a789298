import { type BetterAuthOptions, type BetterAuthPlugin, betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { onTestFinished } from "vitest";
import { type TenantAuthOptions, tenantAuth } from "../../src/index";
import { Browser } from "../support/browser";
import { createDatabase } from "../support/database";
import { BASE_URL } from "../support/instance";

/** Where tenantAuth() stands among the other plugins. */
export const ORDERS = ["first", "last"] as const;

/** An instance whose plugins stand in an order of the test's choice, without any others. */
export async function createOrdered(
  order: (typeof ORDERS)[number],
  others: BetterAuthPlugin[],
  options: Partial<BetterAuthOptions> = {},
  tenant: TenantAuthOptions = {},
) {
  const database = await createDatabase("sqlite");
  onTestFinished(() => database.close());
  const ours = tenantAuth(tenant);
  const auth = betterAuth({
    baseURL: "http://localhost:3000",
    secret: "a test secret that is long enough for everybody",
    database: database.option,
    logger: { disabled: true },
    ...options,
    emailAndPassword: {
      enabled: true,
      // A real hash costs a tenth of a second, and says nothing about tenants.
      password: {
        hash: async (password) => `hashed:${password}`,
        verify: async ({ hash, password }) => hash === `hashed:${password}`,
      },
      ...options.emailAndPassword,
    },
    advanced: { disableOriginCheck: false, ...options.advanced },
    plugins: order === "first" ? [ours, ...others] : [...others, ours],
  });
  await auth.$context;
  await (await getMigrations(auth.options)).runMigrations();
  const api = auth.api as unknown as {
    createTenant: (input: { body: { name: string; slug: string } }) => Promise<{ id: string }>;
  };
  return {
    auth,
    database,
    createTenant: (slug: string) => api.createTenant({ body: { name: slug, slug } }),
    browser: (headers?: Record<string, string>) => new Browser(auth.handler, BASE_URL, headers),
    async rows(table: string) {
      const [row] = await database.query(`select count(*) as n from ${database.quote(table)}`);
      return Number(row?.n);
    },
  };
}
