import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { parseEnvelope } from "better-auth/crypto";
import type { DBTransactionAdapter } from "better-auth/types";
import { borderOf, type Rotated } from "../border/border";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { pagesOf } from "../pages";
import {
  type Confidential,
  type Encrypted,
  MODEL,
  type StoredOAuthConfig,
  toRow,
  tryDecrypt,
  withoutDriverErrors,
} from "./config-store";

const BATCH = 100;

/** All rows of a table, one by one. */
export async function* rowsOf<Stored extends { id?: string }>(
  adapter: Pick<DBTransactionAdapter, "findMany">,
  model: string,
): AsyncGenerator<Stored> {
  for await (const rows of pagesOf<Stored>(adapter, model, BATCH)) yield* rows;
}

/**
 * Encrypts everything anew that was not encrypted with the newest of the framework's secrets. What
 * somebody else writes in between is never undone, so this can be interrupted, and run twice or
 * side by side.
 */
export async function rotateOAuthConfigs(ctx: AuthContext): Promise<Rotated> {
  const others = await borderOf(ctx)?.identityProviders?.rotateSecrets();
  const touched = others ?? { rotated: 0, upToDate: 0, unreadable: 0 };
  for await (const row of rowsOf<StoredOAuthConfig>(ctx.adapter, MODEL)) {
    touched[await rotate(ctx, row)]++;
  }
  return touched;
}

async function rotate(ctx: AuthContext, row: StoredOAuthConfig) {
  const adapter = await getCurrentAdapter(ctx.adapter);
  let current: StoredOAuthConfig | null = row;
  for (let tries = 0; current && tries < 10; tries++) {
    const clear = await tryDecrypt(ctx, current);
    if (!clear) return "unreadable";
    if (isUpToDate(ctx, current)) return "upToDate";
    if (await replaceCipher(ctx, current, clear)) return "rotated";
    // Changed in between: that may have been a part of it only.
    const where = [{ field: "id", value: row.id }];
    current = await adapter.findOne<StoredOAuthConfig>({ model: MODEL, where });
  }
  if (!current) return "upToDate";
  throw APIError.from("INTERNAL_SERVER_ERROR", TENANT_AUTH_ERROR_CODES.OAUTH_CONFIG_NOT_SAVED);
}

/** Whether all of it was encrypted with the newest of the framework's secrets. */
function isUpToDate({ secretConfig }: AuthContext, stored: Encrypted): boolean {
  const newest = typeof secretConfig === "string" ? undefined : secretConfig.currentVersion;
  return [stored.clientId, stored.clientSecret, stored.options].every(
    (cipher) => !cipher || parseEnvelope(cipher)?.version === newest,
  );
}

async function replaceCipher(ctx: AuthContext, row: StoredOAuthConfig, clear: Confidential) {
  const update = await toRow(ctx, clear);
  const where = [
    { field: "id", value: row.id },
    { field: "clientId", value: row.clientId },
    { field: "clientSecret", value: row.clientSecret },
    { field: "options", value: row.options ?? null },
  ];
  const count = await withoutDriverErrors(ctx, row, () =>
    ctx.adapter.updateMany({ model: MODEL, where, update }),
  );
  return count > 0;
}
