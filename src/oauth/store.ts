import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Where } from "better-auth/types";
import { decrypt, encrypt } from "./credentials";

/** A row of the table; `clientId` and `clientSecret` are cipher text. */
export interface StoredOAuthConfig {
  id: string;
  tenantId: string;
  providerId: string;
  clientId: string;
  clientSecret: string;
  scopes?: string[] | null;
  redirectURI?: string | null;
  enabled: boolean;
  createdAt: Date;
  updatedAt: Date;
}

/** What goes out: the client id in clear, the client secret never. */
export interface TenantOAuthConfig {
  id: string;
  tenantId: string;
  providerId: string;
  clientId: string;
  scopes: string[] | null;
  redirectURI: string | null;
  enabled: boolean;
  createdAt: Date;
  updatedAt: Date;
}

export interface OAuthConfigInput {
  tenantId: string;
  providerId: string;
  clientId: string;
  clientSecret: string;
  scopes: string[] | null;
  redirectURI: string | null;
  enabled: boolean;
}

const MODEL = "tenantOauthConfig";

/** More than there are providers: the adapter stops at 100 rows on its own. */
const ALL = 1000;

export async function listOAuthConfigs(
  ctx: AuthContext,
  tenantId: string,
): Promise<StoredOAuthConfig[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  return adapter.findMany<StoredOAuthConfig>({
    model: MODEL,
    where: [{ field: "tenantId", value: tenantId }],
    sortBy: { field: "createdAt", direction: "asc" },
    limit: ALL,
  });
}

async function findOAuthConfig(ctx: AuthContext, tenantId: string, providerId: string) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  return adapter.findOne<StoredOAuthConfig>({ model: MODEL, where: pair(tenantId, providerId) });
}

/**
 * One config for each (tenant, provider) pair: creates it, or replaces what is there. Null when
 * the database refuses; its error goes no further, because drivers put whole rows into theirs.
 */
export async function saveOAuthConfig(
  ctx: AuthContext,
  input: OAuthConfigInput,
): Promise<StoredOAuthConfig | null> {
  try {
    return await upsertOAuthConfig(ctx, input);
  } catch (error) {
    const { name, code } = error as { name?: string; code?: unknown };
    ctx.logger.error(`The OAuth config could not be saved: ${name} ${code ?? ""}`);
    return null;
  }
}

async function upsertOAuthConfig(ctx: AuthContext, input: OAuthConfigInput) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const now = new Date();
  const data = {
    ...input,
    clientId: await encrypt(ctx, input.clientId),
    clientSecret: await encrypt(ctx, input.clientSecret),
    updatedAt: now,
  };
  const replace = async () => {
    const existing = await findOAuthConfig(ctx, input.tenantId, input.providerId);
    return (
      existing &&
      adapter.update<StoredOAuthConfig>({
        model: MODEL,
        where: [{ field: "id", value: existing.id }],
        update: data,
      })
    );
  };
  const replaced = await replace();
  if (replaced) return replaced;
  try {
    return await adapter.create<Omit<StoredOAuthConfig, "id">, StoredOAuthConfig>({
      model: MODEL,
      data: { ...data, createdAt: now },
    });
  } catch (error) {
    // Somebody was faster: the unique index let one of us create the row, the other replaces it.
    const late = await replace();
    if (late) return late;
    throw error;
  }
}

/** False when there was nothing to delete. */
export async function removeOAuthConfig(ctx: AuthContext, tenantId: string, providerId: string) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const count = await adapter.deleteMany({ model: MODEL, where: pair(tenantId, providerId) });
  return count > 0;
}

/** The fields that go out, one by one: a column that is added later does not leak by itself. */
export async function toOutput(
  ctx: AuthContext,
  row: StoredOAuthConfig,
): Promise<TenantOAuthConfig> {
  return {
    id: row.id,
    tenantId: row.tenantId,
    providerId: row.providerId,
    clientId: await decrypt(ctx, row.clientId),
    scopes: row.scopes ?? null,
    redirectURI: row.redirectURI ?? null,
    enabled: row.enabled,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

function pair(tenantId: string, providerId: string): Where[] {
  return [
    { field: "tenantId", value: tenantId },
    { field: "providerId", value: providerId },
  ];
}
