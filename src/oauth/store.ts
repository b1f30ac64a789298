import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Encrypted } from "./credentials";

/** A row of the table. */
export interface StoredOAuthConfig extends Encrypted {
  id: string;
  tenantId: string;
  providerId: string;
  scopes?: string[] | null;
  redirectURI?: string | null;
  enabled: boolean;
  secretChangedAt?: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

export const MODEL = "tenantOauthConfig";

/** More than there are providers: the adapter stops at 100 rows on its own. */
const ALL = 1000;

/** In any order: a sign-in looks for one of them, and need not wait until they are sorted. */
export async function listOAuthConfigs(
  ctx: AuthContext,
  tenantId: string,
): Promise<StoredOAuthConfig[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  return adapter.findMany<StoredOAuthConfig>({
    model: MODEL,
    where: [{ field: "tenantId", value: tenantId }],
    limit: ALL,
  });
}

export const oldestFirst = (a: StoredOAuthConfig, b: StoredOAuthConfig) =>
  Number(a.createdAt) - Number(b.createdAt);
