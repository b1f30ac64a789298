import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { clauses, pagesOf, rootCause } from "../framework";
import { isolationOf, type Rotated } from "../isolation/isolation";
import { isNewest } from "../keys";
import { ALL } from "../tenants/cache";
import { despiteDeadlocks } from "../tenants/delete";

/** There is one config for each tenant and provider. */
export interface OAuthConfigKey {
  tenantId: string;
  providerId: string;
}

/** A tenant's client at a provider. */
export interface TenantClient {
  clientId: string;
  clientSecret: string;
  options?: Record<string, unknown> | null;
  scopes?: string[] | null;
  redirectURI?: string | null;
}

type Confidential = Required<Pick<TenantClient, "clientId" | "clientSecret" | "options">>;

/** What a manager can set in a config. */
export type OAuthConfigInput = TenantClient & { enabled: boolean };

/** A row of the table, with the confidential part in cipher text. */
export interface StoredOAuthConfig extends OAuthConfigKey, Omit<OAuthConfigInput, "options"> {
  id: string;
  options?: string | null;
  secretChangedAt?: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

const MODEL = "tenantOauthConfig";

/** Decrypts with the one of better-auth's secrets that the config was encrypted with. */
export async function decrypt(ctx: AuthContext, stored: StoredOAuthConfig): Promise<Confidential> {
  const open = (data: string) => symmetricDecrypt({ key: ctx.secretConfig, data });
  try {
    const [clientId, clientSecret, options] = await Promise.all([
      open(stored.clientId),
      open(stored.clientSecret),
      stored.options ? open(stored.options) : "null",
    ]);
    return { clientId, clientSecret, options: JSON.parse(options) };
  } catch {
    // Without the cause, which may contain cipher text.
    ctx.logger.error(
      `${nameOf(stored)} cannot be decrypted. Add the auth secret that it was stored with to the option secrets, or register the config again.`,
    );
    throw tenantError("OAUTH_CREDENTIAL_DECRYPT_FAILED");
  }
}

export const tryDecrypt = (ctx: AuthContext, row: StoredOAuthConfig) =>
  decrypt(ctx, row).catch(() => null);

/** Encrypts with the newest of the framework's secrets. */
async function toRow(ctx: AuthContext, input: Partial<OAuthConfigInput>) {
  const encrypt = (data: string) => symmetricEncrypt({ key: ctx.secretConfig, data });
  const { clientId, clientSecret, options, ...rest } = input;
  return {
    ...rest,
    ...(clientId !== undefined && { clientId: await encrypt(clientId) }),
    ...(clientSecret !== undefined && { clientSecret: await encrypt(clientSecret) }),
    ...(options !== undefined && { options: options && (await encrypt(JSON.stringify(options))) }),
  };
}

/** Unsorted: a sign-in looks for one of them. */
export async function listOAuthConfigs(ctx: AuthContext, tenantId: string) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = clauses({ tenantId });
  return adapter.findMany<StoredOAuthConfig>({ model: MODEL, where, limit: ALL });
}

export const oldestFirst = (a: StoredOAuthConfig, b: StoredOAuthConfig) =>
  Number(a.createdAt) - Number(b.createdAt);

export async function findOAuthConfig(ctx: AuthContext, { tenantId, providerId }: OAuthConfigKey) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = clauses({ tenantId, providerId });
  const row = await adapter.findOne<StoredOAuthConfig>({ model: MODEL, where });
  // MySQL ignores case.
  return row?.providerId === providerId ? row : null;
}

/** Creates the config of a tenant and a provider, or replaces it. */
export function saveOAuthConfig(
  ctx: AuthContext,
  key: OAuthConfigKey,
  input: OAuthConfigInput,
): Promise<StoredOAuthConfig> {
  if (ctx.secret === DEFAULT_SECRET) {
    ctx.logger.warn(
      `${nameOf(key)} is encrypted with better-auth's default secret, which is public. Set BETTER_AUTH_SECRET, and then register the config again: it cannot be read with another secret.`,
    );
  }
  let wasRefused = false;
  return untilSaved(ctx, key, async () => {
    const existing = await findOAuthConfig(ctx, key);
    if (existing) return change(ctx, existing, input);
    const adapter = await getCurrentAdapter(ctx.adapter);
    const now = new Date();
    const stamps = { secretChangedAt: now, createdAt: now, updatedAt: now };
    const data = { ...(await toRow(ctx, input)), ...key, ...stamps };
    // Null if another request deletes it: MySQL reads a row again that it has created.
    const created: Promise<StoredOAuthConfig | null> = adapter.create({ model: MODEL, data });
    // If two requests create the row, the unique index refuses one, which then replaces it.
    return created.catch((error) => {
      if (wasRefused) throw error;
      wasRefused = true;
      return null;
    });
  });
}

/** Changes a part of a config. What `check` allows is written into the row that it has seen. */
export const updateOAuthConfig = (
  ctx: AuthContext,
  key: OAuthConfigKey,
  check: (row: StoredOAuthConfig) => Promise<Partial<OAuthConfigInput>>,
): Promise<StoredOAuthConfig> =>
  untilSaved(ctx, key, async () => {
    const row = await findOAuthConfig(ctx, key);
    if (!row) throw tenantError("OAUTH_CONFIG_NOT_FOUND");
    return change(ctx, row, await check(row));
  });

/** Null if the row is gone, or if the changes have to be checked again. */
async function change(
  ctx: AuthContext,
  existing: StoredOAuthConfig,
  changes: Partial<OAuthConfigInput>,
) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const { clientSecret, options } = changes;
  const updatedAt = new Date();
  const isNewSecret =
    clientSecret !== undefined && (await tryDecrypt(ctx, existing))?.clientSecret !== clientSecret;
  const stamps = { updatedAt, ...(isNewSecret && { secretChangedAt: updatedAt }) };
  const update = { ...(await toRow(ctx, changes)), ...stamps };
  const where = clauses({ id: existing.id });
  if (options === undefined || clientSecret !== undefined) {
    return adapter.update<StoredOAuthConfig>({ model: MODEL, where, update });
  }
  // The options decide where the secret is sent, and were checked for the secret of that moment.
  // A secret that was stored since then must not be sent there.
  const sameSecret = clauses({ clientSecret: existing.clientSecret });
  const count = await adapter.updateMany({
    model: MODEL,
    where: [...where, ...sameSecret],
    update,
  });
  return count > 0 ? adapter.findOne<StoredOAuthConfig>({ model: MODEL, where }) : null;
}

/** How often other requests may change a config while this one saves it. */
const TRIES = 20;

/** Repeats a write that returns null, which is how it says that another request interfered. */
async function untilSaved<T>(
  ctx: AuthContext,
  key: OAuthConfigKey,
  write: () => Promise<T | null>,
): Promise<T> {
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      // Deleting the tenant at the same time can be a deadlock.
      const saved = await despiteDeadlocks(ctx, write);
      if (saved !== null) return saved;
    }
    throw new Error("Other requests keep changing it");
  } catch (error) {
    if (isAPIError(error)) throw error;
    // Drivers put whole rows into their errors, so these are replaced by ours.
    const { name, code } = rootCause(error);
    ctx.logger.error(`${nameOf(key)} could not be saved: ${code ?? name}`);
    throw tenantError("OAUTH_CONFIG_NOT_SAVED");
  }
}

/** False if there was nothing to delete. */
export async function removeOAuthConfig(ctx: AuthContext, key: OAuthConfigKey) {
  const row = await findOAuthConfig(ctx, key);
  if (!row) return false;
  const adapter = await getCurrentAdapter(ctx.adapter);
  return (await adapter.deleteMany({ model: MODEL, where: clauses({ id: row.id }) })) > 0;
}

const nameOf = ({ tenantId, providerId }: OAuthConfigKey) =>
  `The OAuth config of tenant ${tenantId} for ${providerId}`;

/**
 * better-auth's secret outside of production if the application sets none.
 *
 * Guarded by "better-auth's secret of last resort is the one that we know".
 */
export const DEFAULT_SECRET = "better-auth-secret-12345678901234567890";

const BATCH = 100;

type StoredSecrets = OAuthConfigKey & { id: string };
type Outcome = keyof Rotated;

/** Where secrets are stored, and how a row is encrypted again. */
interface Secrets<Row extends StoredSecrets> {
  adapter: DBTransactionAdapter;
  model: string;
  anew(row: Row): Promise<Partial<Row> | Exclude<Outcome, "rotated">>;
}

/**
 * Encrypts every secret again that was not encrypted with the newest of the framework's secrets. It
 * never overwrites a concurrent change, so it can be interrupted, repeated and run in parallel.
 */
export async function rotateOAuthConfigs(ctx: AuthContext): Promise<Rotated> {
  const touched = await isolationOf(ctx)?.identityProviders?.rotateSecrets();
  const secrets: Secrets<StoredOAuthConfig> = {
    adapter: await getCurrentAdapter(ctx.adapter),
    model: MODEL,
    async anew(row) {
      const clear = await tryDecrypt(ctx, row);
      if (!clear) return "unreadable";
      const ciphers = [row.clientId, row.clientSecret, row.options];
      return ciphers.every((cipher) => !cipher || isNewest(ctx, cipher))
        ? "upToDate"
        : toRow(ctx, clear);
    },
  };
  return rotateAll(ctx, secrets, touched);
}

export async function rotateAll<Row extends StoredSecrets>(
  ctx: AuthContext,
  secrets: Secrets<Row>,
  touched: Rotated = { rotated: 0, upToDate: 0, unreadable: 0 },
): Promise<Rotated> {
  for await (const rows of pagesOf<Row>(secrets.adapter, secrets.model, BATCH)) {
    for (const row of rows) touched[await rotate(ctx, row, secrets)]++;
  }
  return touched;
}

async function rotate<Row extends StoredSecrets>(
  ctx: AuthContext,
  found: Row,
  { adapter, model, anew }: Secrets<Row>,
): Promise<Outcome> {
  const where = clauses({ id: found.id });
  let row: Row | null = found;
  return untilSaved(ctx, found, async () => {
    if (!row) return "upToDate";
    const update = await anew(row);
    if (typeof update === "string") return update;
    const seen: object = row;
    const before = (field: string) => Reflect.get(seen, field) ?? null;
    const asItWas = Object.keys(update).map((field) => ({ field, value: before(field) }));
    const count = await adapter.updateMany({ model, where: [...where, ...asItWas], update });
    if (count > 0) return "rotated";
    // Another request changed the row, perhaps only a part of it.
    row = await adapter.findOne<Row>({ model, where });
    return null;
  });
}
