import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { tenantError } from "../errors";
import { rootCause } from "../framework";
import { signFor } from "../keys";
import { despiteDeadlocks } from "../tenants/sweep";
import { nameOf, type OAuthConfigKey, warnOfDefaultSecret } from "./log-lines";

/** What a tenant has told us in confidence about its client at a provider. */
export interface Confidential {
  clientId: string;
  clientSecret: string;
  options: Record<string, unknown> | null;
}

/** The same as it is stored: cipher text. */
export interface Encrypted {
  clientId: string;
  clientSecret: string;
  options?: string | null;
}

/** Encrypts with the newest of the framework's secrets. */
function encrypt(ctx: AuthContext, value: string): Promise<string> {
  return symmetricEncrypt({ key: ctx.secretConfig, data: value });
}

/** Decrypts what was encrypted with any of the framework's secrets. */
export async function decrypt(
  ctx: AuthContext,
  stored: Encrypted & OAuthConfigKey,
): Promise<Confidential> {
  const open = (data: string) => symmetricDecrypt({ key: ctx.secretConfig, data });
  try {
    const { clientId, clientSecret, options } = stored;
    const [id, secret, text] = await Promise.all([
      open(clientId),
      open(clientSecret),
      options ? open(options) : "null",
    ]);
    return { clientId: id, clientSecret: secret, options: JSON.parse(text) };
  } catch {
    // The cause is left out on purpose: it must not carry cipher text into an answer or a log.
    ctx.logger.error(
      `${nameOf(stored)} cannot be decrypted. Add the auth secret that it was stored with to the option secrets, or register the config again.`,
    );
    throw tenantError("OAUTH_CREDENTIAL_DECRYPT_FAILED");
  }
}

/** Tells whether two sets of credentials are the same, without telling what they are. */
export function fingerprint(ctx: AuthContext, parts: unknown[]): Promise<string> {
  return signFor("oauth-credentials", JSON.stringify(parts), ctx);
}

/** A row of the table. */
export interface StoredOAuthConfig extends Encrypted, OAuthConfigKey {
  id: string;
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

/** What a manager can say about a config. */
export interface OAuthConfigInput extends Confidential {
  scopes: string[] | null;
  redirectURI: string | null;
  enabled: boolean;
}

export async function findOAuthConfig(ctx: AuthContext, tenantId: string, providerId: string) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [
    { field: "tenantId", value: tenantId },
    { field: "providerId", value: providerId },
  ];
  const row = await adapter.findOne<StoredOAuthConfig>({ model: MODEL, where });
  // MySQL takes other spellings of a name for the same.
  return row?.providerId === providerId ? row : null;
}

/** One config for each (tenant, provider) pair: creates it, or replaces what is there. */
export function saveOAuthConfig(
  ctx: AuthContext,
  tenantId: string,
  providerId: string,
  input: OAuthConfigInput,
): Promise<StoredOAuthConfig> {
  warnOfDefaultSecret(ctx, { tenantId, providerId });
  return withoutDriverErrors(ctx, { tenantId, providerId }, async () => {
    const replace = async () => {
      const existing = await findOAuthConfig(ctx, tenantId, providerId);
      return existing && change(ctx, existing, input);
    };
    const adapter = await getCurrentAdapter(ctx.adapter);
    const now = new Date();
    const stamps = { secretChangedAt: now, createdAt: now, updatedAt: now };
    const create = async () =>
      adapter.create<Record<string, unknown>, StoredOAuthConfig | null>({
        model: MODEL,
        data: { ...(await toRow(ctx, input)), tenantId, providerId, ...stamps },
      });
    const failures: unknown[] = [];
    for (let tries = 0; tries < TRIES; tries++) {
      // Nothing where somebody deletes it: MySQL reads a row again that it has created.
      const saved =
        (await replace()) ?? (await create().catch((error) => void failures.push(error)));
      // Somebody was faster: the unique index let one of us create the row, the other replaces it.
      if (saved) return saved;
    }
    throw failures.at(-1) ?? new Error("It was deleted in the meantime.");
  });
}

/** How often somebody else may create or delete a config while it is saved. */
const TRIES = 3;

/**
 * Changes some of a config and leaves the rest; null when it is not there any more, or was changed
 * in between so that the changes have to be looked at again.
 */
export function changeOAuthConfig(
  ctx: AuthContext,
  existing: StoredOAuthConfig,
  changes: Partial<OAuthConfigInput>,
): Promise<StoredOAuthConfig | null> {
  return withoutDriverErrors(ctx, existing, () => change(ctx, existing, changes));
}

async function change(
  ctx: AuthContext,
  existing: StoredOAuthConfig,
  changes: Partial<OAuthConfigInput>,
) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const now = new Date();
  const secretChangedAt =
    changes.clientSecret === undefined || (await hasSecret(ctx, existing, changes.clientSecret))
      ? {}
      : { secretChangedAt: now };
  const update = { ...(await toRow(ctx, changes)), ...secretChangedAt, updatedAt: now };
  const where = [{ field: "id", value: existing.id }];
  if (changes.options === undefined || changes.clientSecret !== undefined) {
    return adapter.update<StoredOAuthConfig>({ model: MODEL, where, update });
  }
  // The options say where the secret is sent, and were compared with those beside this secret. A
  // secret that somebody has stored since then is for another place.
  const sameSecret = { field: "clientSecret", value: existing.clientSecret };
  const count = await adapter.updateMany({ model: MODEL, where: [...where, sameSecret], update });
  return count > 0 ? adapter.findOne<StoredOAuthConfig>({ model: MODEL, where }) : null;
}

async function hasSecret(ctx: AuthContext, row: StoredOAuthConfig, clientSecret: string) {
  return (await tryDecrypt(ctx, row))?.clientSecret === clientSecret;
}

/** The error of a driver goes no further: drivers put whole rows into theirs. */
export async function withoutDriverErrors<T>(
  ctx: AuthContext,
  key: OAuthConfigKey,
  run: () => Promise<T>,
): Promise<T> {
  try {
    // With the deletion of the tenant: whoever is rolled back first cannot know yet that it is gone.
    return await despiteDeadlocks(ctx, run);
  } catch (error) {
    const { name, code } = rootCause(error);
    ctx.logger.error(`${nameOf(key)} could not be saved: ${code ?? name}`);
    throw tenantError("OAUTH_CONFIG_NOT_SAVED");
  }
}

/** False when there was nothing to delete. */
export async function removeOAuthConfig(ctx: AuthContext, tenantId: string, providerId: string) {
  const row = await findOAuthConfig(ctx, tenantId, providerId);
  if (!row) return false;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [{ field: "id", value: row.id }];
  return (await adapter.deleteMany({ model: MODEL, where })) > 0;
}

export const tryDecrypt = (ctx: AuthContext, row: StoredOAuthConfig) =>
  decrypt(ctx, row).catch(() => null);

export async function toRow(ctx: AuthContext, input: Partial<OAuthConfigInput>) {
  const { clientId, clientSecret, options, ...rest } = input;
  return {
    ...rest,
    ...(clientId !== undefined && { clientId: await encrypt(ctx, clientId) }),
    ...(clientSecret !== undefined && { clientSecret: await encrypt(ctx, clientSecret) }),
    ...(options !== undefined && {
      options: options && (await encrypt(ctx, JSON.stringify(options))),
    }),
  };
}
