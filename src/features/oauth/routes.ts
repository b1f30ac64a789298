import type { AuthContext } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { getOfTenant, jsonObject, limited, post, tenantId, text } from "../../core/input";
import { emit } from "../management/events";
import { requireTarget } from "../management/management";
import { findPolicyRefusals } from "../policy/provider-findings";
import {
  checkConfig,
  type OAuthConfigFinding,
  readChanges,
  readClient,
  redirectURIOf,
} from "./check";
import {
  listOAuthConfigs,
  type OAuthConfigKey,
  oldestFirst,
  removeOAuthConfig,
  rotateOAuthConfigs,
  type StoredOAuthConfig,
  saveOAuthConfig,
  tryDecrypt,
  updateOAuthConfig,
} from "./config-store";
import { oauthError } from "./errors";
import type { ProviderId, TenantOAuthOptions } from "./provider-table";
import type { ProviderName } from "./tenant-routes";

/** A config as endpoints return it: with the decrypted client id, without the client secret. */
export interface TenantOAuthConfig extends OAuthConfigKey {
  id: string;
  /** Null if the config cannot be decrypted. */
  clientId: string | null;
  scopes: string[] | null;
  redirectURI: string | null;
  /** The redirect URI to register at the provider: `redirectURI`, or this server's callback. */
  callbackURL: string;
  enabled: boolean;
  /** Other options of the provider. */
  options: Record<string, unknown> | null;
  /** Whether the config can be decrypted. Otherwise, sign-in with it fails. */
  readable: boolean;
  secretChangedAt: Date;
  createdAt: Date;
  updatedAt: Date;
  /** Set by `register` and `update` if the tenant's policy forbids sign-in with the provider. */
  findings?: OAuthConfigFinding[];
}

/** Copies field by field, so that a column that is added later cannot leak. */
async function toOutput(ctx: AuthContext, row: StoredOAuthConfig): Promise<TenantOAuthConfig> {
  const clear = await tryDecrypt(ctx, row);
  return {
    id: row.id,
    tenantId: row.tenantId,
    providerId: row.providerId,
    clientId: clear?.clientId ?? null,
    scopes: row.scopes ?? null,
    redirectURI: row.redirectURI ?? null,
    callbackURL: await redirectURIOf(ctx, row, row.redirectURI, clear?.options ?? {}),
    enabled: row.enabled,
    options: clear?.options ?? null,
    readable: clear !== null,
    secretChangedAt: row.secretChangedAt ?? row.createdAt,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

/** Returns a config that was just saved, with findings. */
async function toSavedOutput(ctx: AuthContext, row: StoredOAuthConfig): Promise<TenantOAuthConfig> {
  const output = await toOutput(ctx, row);
  const findings = await findPolicyRefusals(ctx, row.tenantId, `social:${row.providerId}`);
  return findings.length > 0 ? { ...output, findings } : output;
}

// The types suggest the built-in providers and their options, but accept others, because a form
// knows neither in advance. The server validates both.
const providerId = text(255).meta({ description: "A built-in social provider" }) as z.ZodType<
  ProviderName,
  ProviderName
>;
const target = { tenantId: tenantId.optional(), providerId };

type ForProvider<Id, Options> = { providerId: Id; options?: Options | null | undefined };
type KnownProvider = { [Id in ProviderId]: ForProvider<Id, TenantOAuthOptions<Id>> }[ProviderId];
const withOptions = <Schema extends z.ZodType>(schema: Schema) =>
  schema as z.ZodType<
    z.output<Schema>,
    Omit<z.input<Schema>, "providerId" | "options"> &
      (KnownProvider | ForProvider<string & {}, Record<string, unknown>>)
  >;
const clientSecret = text(8192).meta({ description: "The tenant's client secret; never returned" });
const enabled = z.boolean().meta({ description: "Whether sign-in uses this config" });
const settings = {
  scopes: z.array(text(255)).max(50).nullish().meta({ description: "Scopes to ask for" }),
  redirectURI: limited(2048).nullish().meta({ description: "Overrides the callback URL" }),
  options: jsonObject.nullish().meta({ description: "Other options of the provider" }),
};

const registerBody = z.object({
  ...target,
  clientId: text(2048).meta({ description: "The tenant's client id at the provider" }),
  clientSecret,
  ...settings,
  enabled: enabled.default(true),
});

export const registerOAuthConfigEndpoint = createAuthEndpoint(
  "/tenant/oauth-config/register",
  post(withOptions(registerBody), "Create or replace a tenant's config for a provider"),
  async (ctx) => {
    const { context } = ctx;
    const { tenantId, actor } = await requireTarget(ctx, "oauth-config:register");
    const { providerId, enabled, tenantId: _, ...input } = ctx.body;
    const key = { tenantId, providerId };
    const { client } = await readClient(context, key, input);
    const saved = await saveOAuthConfig(context, key, { ...client, enabled });
    await emit(context, actor, tenantId, { type: "oauth-config:registered", providerId });
    return ctx.json(await toSavedOutput(context, saved));
  },
);

export const listOAuthConfigsEndpoint = createAuthEndpoint(
  "/tenant/oauth-config/list",
  getOfTenant("List a tenant's OAuth configs, without secrets"),
  async (ctx) => {
    const { tenantId } = await requireTarget(ctx, "oauth-config:list");
    const rows = (await listOAuthConfigs(ctx.context, tenantId)).toSorted(oldestFirst);
    return ctx.json(await Promise.all(rows.map((row) => toOutput(ctx.context, row))));
  },
);

const updateBody = z.strictObject({
  ...target,
  clientSecret: clientSecret.optional(),
  ...settings,
  enabled: enabled.optional(),
});

export const updateOAuthConfigEndpoint = createAuthEndpoint(
  "/tenant/oauth-config/update",
  post(withOptions(updateBody), "Change parts of a tenant's config, without its secret"),
  async (ctx) => {
    const { context } = ctx;
    const { tenantId, actor } = await requireTarget(ctx, "oauth-config:update");
    const { providerId, tenantId: _, ...changes } = ctx.body;
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    const changed = given.map(([name]) => name);
    const saved = await updateOAuthConfig(context, { tenantId, providerId }, (row) =>
      readChanges(context, row, changes),
    );
    await emit(context, actor, tenantId, { type: "oauth-config:changed", providerId, changed });
    return ctx.json(await toSavedOutput(context, saved));
  },
);

export const deleteOAuthConfigEndpoint = createAuthEndpoint(
  "/tenant/oauth-config/delete",
  post(z.object(target), "Delete a tenant's config for a provider"),
  async (ctx) => {
    const { context } = ctx;
    const { tenantId, actor } = await requireTarget(ctx, "oauth-config:delete");
    const { providerId } = ctx.body;
    const isRemoved = await removeOAuthConfig(context, { tenantId, providerId });
    if (!isRemoved) throw oauthError("OAUTH_CONFIG_NOT_FOUND");
    await emit(context, actor, tenantId, { type: "oauth-config:deleted", providerId });
    return ctx.json({ success: true as const });
  },
);

const checkBody = registerBody
  .omit({ enabled: true })
  .partial({ clientId: true, clientSecret: true })
  .refine(
    ({ clientId, clientSecret }) => !clientId === !clientSecret,
    "give a client id and a secret, or neither",
  );

export const checkOAuthConfigEndpoint = createAuthEndpoint(
  "/tenant/oauth-config/check",
  post(withOptions(checkBody), "Check a tenant's config for a provider"),
  async (ctx) => {
    const { tenantId } = await requireTarget(ctx, "oauth-config:check");
    const { providerId, tenantId: _, ...given } = ctx.body;
    return ctx.json(await checkConfig(ctx.context, { tenantId, providerId }, given));
  },
);

/** Encrypts stored secrets again. For server code only, because it has no path. */
export const rotateOAuthSecretsEndpoint = createAuthEndpoint.serverOnly(
  { method: "POST" },
  async ({ context }) => rotateOAuthConfigs(context),
);
