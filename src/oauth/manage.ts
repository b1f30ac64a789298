import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import type { ResolvedOptions } from "../options";
import { tenantExists } from "../tenants/find";
import { checkConfig } from "./check";
import { type ClientInput, readClient } from "./client";
import { decrypt } from "./credentials";
import { parseOwnOptions } from "./provider-options";
import { assertRedirectURI } from "./redirect-uri";
import { listOAuthConfigs, oldestFirst, type StoredOAuthConfig } from "./store";
import {
  changeOAuthConfig,
  findOAuthConfig,
  type OAuthConfigInput,
  removeOAuthConfig,
  saveOAuthConfig,
  tryDecrypt,
} from "./writes";

export { rotateOAuthConfigs } from "./writes";

/** What goes out: the client id in clear, the client secret never. */
export interface TenantOAuthConfig {
  id: string;
  tenantId: string;
  providerId: string;
  /** Null when what is stored cannot be decrypted any more. */
  clientId: string | null;
  scopes: string[] | null;
  redirectURI: string | null;
  enabled: boolean;
  /** What the provider needs beyond a client id and a secret. */
  options: Record<string, unknown> | null;
  /** Whether what is stored can be decrypted. A config that is not readable signs nobody in. */
  readable: boolean;
  secretChangedAt: Date;
  createdAt: Date;
  updatedAt: Date;
}

/** Everything that is done to a tenant's configs. The caller may do it, and the tenant exists. */
export function manage(ctx: AuthContext, options: ResolvedOptions, tenantId: string) {
  return {
    async register(providerId: string, input: ClientInput, enabled: boolean) {
      const { client } = await readClient(ctx, providerId, input, options);
      const saving = saveOAuthConfig(ctx, tenantId, providerId, { ...client, enabled });
      const saved = await saving.catch((error: unknown) => ({ error }));
      // Deleted in the meantime: not every database keeps a config from outliving its tenant.
      if (!(await tenantExists(ctx, tenantId))) {
        await removeOAuthConfig(ctx, tenantId, providerId);
        throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
      }
      if ("error" in saved) throw saved.error;
      return toOutput(ctx, saved);
    },

    async list() {
      const rows = await listOAuthConfigs(ctx, tenantId);
      return Promise.all(rows.toSorted(oldestFirst).map((row) => toOutput(ctx, row)));
    },

    async update(providerId: string, changes: Partial<OAuthConfigInput>) {
      assertRedirectURI(changes.redirectURI);
      if (changes.options !== undefined) {
        const own = parseOwnOptions(providerId, changes.options, options.trustedProviderHosts);
        changes.options = changes.options && own;
      }
      const changed = await changeOAuthConfig(ctx, tenantId, providerId, changes);
      if (!changed) throw notFound();
      return toOutput(ctx, changed);
    },

    async check(providerId: string, given: ClientInput | undefined) {
      if (given) return checkConfig(ctx, providerId, given.redirectURI, async () => given, options);
      const row = await findOAuthConfig(ctx, tenantId, providerId);
      if (!row) throw notFound();
      const load = async () => ({ ...row, ...(await decrypt(ctx, row)) });
      return checkConfig(ctx, providerId, row.redirectURI, load, options);
    },

    async remove(providerId: string) {
      if (!(await removeOAuthConfig(ctx, tenantId, providerId))) throw notFound();
      return { success: true as const };
    },
  };
}

/** The fields that go out, one by one: a column that is added later does not leak by itself. */
export async function toOutput(
  ctx: AuthContext,
  row: StoredOAuthConfig,
): Promise<TenantOAuthConfig> {
  const clear = await tryDecrypt(ctx, row);
  return {
    id: row.id,
    tenantId: row.tenantId,
    providerId: row.providerId,
    clientId: clear?.clientId ?? null,
    scopes: row.scopes ?? null,
    redirectURI: row.redirectURI ?? null,
    enabled: row.enabled,
    options: clear?.options ?? null,
    readable: clear !== null,
    secretChangedAt: row.secretChangedAt ?? row.createdAt,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

const notFound = () => APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.OAUTH_CONFIG_NOT_FOUND);
