import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import type { Pool } from "pg";
import { tenantAuth } from "../../src/index";
import { baseOptions } from "../instance";

export type { Pool };

/** Whoever asks may manage: who they are has its price, and here it is not the question. */
export async function createAuth(pool: Pool) {
  const auth = betterAuth({
    ...baseOptions({ database: pool }),
    plugins: [tenantAuth({ canManageTenants: () => true })],
  });
  await (await getMigrations(auth.options)).runMigrations();
  return auth;
}
