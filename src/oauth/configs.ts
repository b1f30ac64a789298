import type { AuthContext } from "better-auth";
import { tenantError } from "../errors";
import type { ResolvedOptions } from "../options";
import { emit, type TenantActor, type TenantChange } from "../tenants/events";
import { tenantExists } from "../tenants/find";
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

/** What goes out: the client id in clear, the client secret never. */
export interface TenantOAuthConfig {
  id: string;
  tenantId: string;
  providerId: string;
  /** Null when what is stored cannot be decrypted any more. */
  clientId: string | null;
  scopes: string[] | null;
  redirectURI: string | null;
  /** What has to be registered at the provider: `redirectURI`, or else the callback of this server. */
  callbackURL: string;
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
      const saving = saveOAuthConfig(ctx, tenantId, providerId, { ...client, enabled });
      const saved = await saving.catch((error: unknown) => ({ error }));
      // Deleted in the meantime: not every database keeps a config from outliving its tenant.
      if (!(await tenantExists(ctx, tenantId))) {
        await removeOAuthConfig(ctx, tenantId, providerId);
        throw tenantError("TENANT_NOT_FOUND");
      }
      if ("error" in saved) throw saved.error;
      await tell({ type: "oauth-config:registered", providerId });
      return toOutput(ctx, saved);
    },

    async list() {
      const rows = await listOAuthConfigs(ctx, tenantId);
      return Promise.all(rows.toSorted(oldestFirst).map((row) => toOutput(ctx, row)));
    },

    async update(providerId: string, changes: Partial<OAuthConfigInput>) {
      // Checked again whenever somebody else has changed what it was compared with.
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

    /** What is given, or else what is stored. Without either, it tells what to register. */
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

/** The fields that go out, one by one: a column that is added later does not leak by itself. */
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
