import type { AuthContext } from "better-auth";
import { tenantError } from "../errors";
import type { ResolvedOptions } from "../options";
import { emit, type TenantActor, type TenantChange } from "../tenants/events";
import { type ClientInput, checkConfig, readChanges, readClient, redirectURIOf } from "./check";
import {
  changeOAuthConfig,
  decrypt,
  findOAuthConfig,
  listOAuthConfigs,
  type OAuthConfigInput,
  oldestFirst,
  removeOAuthConfig,
  type StoredOAuthConfig,
  saveOAuthConfig,
  tryDecrypt,
} from "./config-store";

/** What is returned: the client id in clear, the client secret never. */
export interface TenantOAuthConfig {
  id: string;
  tenantId: string;
  providerId: string;
  /** Null if the config cannot be decrypted. */
  clientId: string | null;
  scopes: string[] | null;
  redirectURI: string | null;
  /** What to register at the provider: `redirectURI`, or else the callback of this server. */
  callbackURL: string;
  enabled: boolean;
  /** Other options of the provider. */
  options: Record<string, unknown> | null;
  /** Whether the config can be decrypted. Otherwise, sign-in with it fails. */
  readable: boolean;
  secretChangedAt: Date;
  createdAt: Date;
  updatedAt: Date;
}

/** Manages a tenant's configs. The caller is allowed to, and the tenant exists. */
export function manage(
  ctx: AuthContext,
  options: ResolvedOptions,
  tenantId: string,
  actor: TenantActor,
) {
  const tell = (change: TenantChange) => emit(ctx, options, actor, tenantId, change);
  return {
    async register(providerId: string, input: ClientInput, enabled: boolean) {
      const { client } = await readClient(ctx, { tenantId, providerId }, input, options);
      const saved = await saveOAuthConfig(ctx, tenantId, providerId, { ...client, enabled });
      await tell({ type: "oauth-config:registered", providerId });
      return toOutput(ctx, saved);
    },

    async list() {
      const rows = await listOAuthConfigs(ctx, tenantId);
      return Promise.all(rows.toSorted(oldestFirst).map((row) => toOutput(ctx, row)));
    },

    async update(providerId: string, changes: Partial<OAuthConfigInput>) {
      // Checked again if another request changes what it was compared with.
      for (let tries = 0; tries < 20; tries++) {
        const row = await findOAuthConfig(ctx, tenantId, providerId);
        if (!row) throw notFound();
        const checked = await readChanges(ctx, row, changes, options);
        const saved = await changeOAuthConfig(ctx, row, checked);
        if (!saved) continue;
        const given = Object.entries(changes).filter(([, value]) => value !== undefined);
        const changed = given.map(([name]) => name);
        await tell({ type: "oauth-config:changed", providerId, changed });
        return toOutput(ctx, saved);
      }
      throw tenantError("OAUTH_CONFIG_NOT_SAVED");
    },

    /** Checks the given config, or else the stored one. Without either, returns what to register. */
    async check(providerId: string, given: Partial<ClientInput>) {
      const check = (redirectURI: string | null | undefined, loading: Promise<typeof given>) =>
        checkConfig(ctx, { tenantId, providerId }, redirectURI, loading, options);
      const isGiven = Object.values(given).some((value) => value != null);
      const row = isGiven ? null : await findOAuthConfig(ctx, tenantId, providerId);
      if (!row) return check(given.redirectURI, Promise.resolve(given));
      const stored = decrypt(ctx, row).then((clear) => ({ ...row, ...clear }));
      return check(row.redirectURI, stored);
    },

    async remove(providerId: string) {
      if (!(await removeOAuthConfig(ctx, tenantId, providerId))) throw notFound();
      await tell({ type: "oauth-config:deleted", providerId });
      return { success: true as const };
    },
  };
}

/** Field by field, so that a column that is added later cannot leak. */
async function toOutput(ctx: AuthContext, row: StoredOAuthConfig): Promise<TenantOAuthConfig> {
  const clear = await tryDecrypt(ctx, row);
  return {
    id: row.id,
    tenantId: row.tenantId,
    providerId: row.providerId,
    clientId: clear?.clientId ?? null,
    scopes: row.scopes ?? null,
    redirectURI: row.redirectURI ?? null,
    callbackURL: redirectURIOf(ctx, row, row.redirectURI, clear?.options ?? {}),
    enabled: row.enabled,
    options: clear?.options ?? null,
    readable: clear !== null,
    secretChangedAt: row.secretChangedAt ?? row.createdAt,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

const notFound = () => tenantError("OAUTH_CONFIG_NOT_FOUND");
