import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { DBTransactionAdapter } from "better-auth/types";
import { clauses, pagesOf } from "../../core/database";
import { rootCause } from "../../core/database-errors";
import { serviceOf } from "../../core/extensions";
import { isolationOf } from "../../core/isolation";
import { isNewest } from "../../core/keys";
import { ALL } from "../../core/tenants/tenants";
import { despiteDeadlocks } from "../management/delete";
import { oauthError } from "./errors";

/** Identifies a config: each tenant has at most one for each provider. */
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

/** A row of the table. The client id, the secret and the options are encrypted. */
export interface StoredOAuthConfig extends OAuthConfigKey, Omit<OAuthConfigInput, "options"> {
  id: string;
  options?: string | null;
  secretChangedAt?: Date | null;
  createdAt: Date;
  updatedAt: Date;
}

const MODEL = "tenantOauthConfig";

/** Decrypts a config with the auth secret that encrypted it, which may be an older one. */
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
    // Logged without the cause, which may contain ciphertext.
    ctx.logger.error(
      `${nameOf(stored)} cannot be decrypted. Add the auth secret that it was stored with to the option secrets, or register the config again.`,
    );
    throw oauthError("OAUTH_CREDENTIAL_DECRYPT_FAILED");
  }
}

export const tryDecrypt = (ctx: AuthContext, row: StoredOAuthConfig) =>
  decrypt(ctx, row).catch(() => null);

/** Encrypts the confidential part of a config with the newest auth secret. */
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

/** Returns a tenant's configs, unsorted. */
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
  // MySQL compares without case, so the row may be the config for another provider.
  return row?.providerId === providerId ? row : null;
}

/** Creates or replaces the config of a tenant for a provider. */
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
    // On MySQL, the adapter reads the created row back. It returns null if another request has
    // deleted the row meanwhile. `untilSaved` then creates it again.
    const created: Promise<StoredOAuthConfig | null> = adapter.create({ model: MODEL, data });
    // If two requests create the row, the unique index refuses one of them. That request tries
    // again and replaces the row. A second error has another cause, and is thrown.
    return created.catch((error) => {
      if (wasRefused) throw error;
      wasRefused = true;
      return null;
    });
  });
}

/** Changes a part of a config. `check` gets the stored row and returns the changes to write. */
export const updateOAuthConfig = (
  ctx: AuthContext,
  key: OAuthConfigKey,
  check: (row: StoredOAuthConfig) => Promise<Partial<OAuthConfigInput>>,
): Promise<StoredOAuthConfig> =>
  untilSaved(ctx, key, async () => {
    const row = await findOAuthConfig(ctx, key);
    if (!row) throw oauthError("OAUTH_CONFIG_NOT_FOUND");
    return change(ctx, row, await check(row));
  });

/** Writes changes. Returns null if the row is gone, or if the changes must be checked again. */
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
  // The options decide where the secret is sent, and `check` approved them for the secret in the
  // row that it read. If another request has stored a newer secret since, nothing is updated: that
  // secret must not be sent there.
  const sameSecret = clauses({ clientSecret: existing.clientSecret });
  const count = await adapter.updateMany({
    model: MODEL,
    where: [...where, ...sameSecret],
    update,
  });
  return count > 0 ? adapter.findOne<StoredOAuthConfig>({ model: MODEL, where }) : null;
}

/** How many times a write is tried while other requests change the config. */
const TRIES = 20;

/** Repeats a write until it returns a value. Null means that another request interfered. */
async function untilSaved<T>(
  ctx: AuthContext,
  key: OAuthConfigKey,
  write: () => Promise<T | null>,
): Promise<T> {
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      // The write may deadlock with a request that deletes the tenant, and is then repeated.
      const saved = await despiteDeadlocks(ctx, write);
      if (saved !== null) return saved;
    }
    throw new Error("Other requests keep changing it");
  } catch (error) {
    if (isAPIError(error)) throw error;
    // The driver's error is not passed on: it may contain the whole row.
    const { name, code } = rootCause(error);
    ctx.logger.error(`${nameOf(key)} could not be saved: ${code ?? name}`);
    throw oauthError("OAUTH_CONFIG_NOT_SAVED");
  }
}

/** Deletes a config. Returns false if there was none. */
export async function removeOAuthConfig(ctx: AuthContext, key: OAuthConfigKey) {
  const row = await findOAuthConfig(ctx, key);
  if (!row) return false;
  const adapter = await getCurrentAdapter(ctx.adapter);
  return (await adapter.deleteMany({ model: MODEL, where: clauses({ id: row.id }) })) > 0;
}

const nameOf = ({ tenantId, providerId }: OAuthConfigKey) =>
  `The OAuth config of tenant ${tenantId} for ${providerId}`;

/**
 * The secret that better-auth uses outside production if the application sets none.
 *
 * Guarded by "better-auth's secret of last resort is the one that we know".
 */
export const DEFAULT_SECRET = "better-auth-secret-12345678901234567890";

const BATCH = 100;

/** How many rows were encrypted again, were up to date already, or could not be decrypted. */
export interface Rotated {
  rotated: number;
  upToDate: number;
  unreadable: number;
}

type StoredSecrets = OAuthConfigKey & { id: string };
type Outcome = keyof Rotated;

/**
 * A model with secrets. `anew` returns the columns of a row, encrypted again, or why there are
 * none.
 */
interface Secrets<Row extends StoredSecrets> {
  adapter: DBTransactionAdapter;
  model: string;
  anew(row: Row): Promise<Partial<Row> | Exclude<Outcome, "rotated">>;
}

/**
 * Encrypts secrets with the newest auth secret if an older one encrypted them. Never overwrites a
 * concurrent change, so it can be interrupted, repeated and run in parallel.
 */
export async function rotateOAuthConfigs(ctx: AuthContext): Promise<Rotated> {
  const touched = await serviceOf(isolationOf(ctx), "identityProviders")?.rotateSecrets();
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
    // Another request changed the row, so the next try uses its new values.
    row = await adapter.findOne<Row>({ model, where });
    return null;
  });
}
