import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { parseEnvelope } from "better-auth/crypto";
import type { DBTransactionAdapter } from "better-auth/types";
import { clauses, pagesOf } from "../framework";
import { isolationOf, type Rotated } from "../isolation/isolation";
import {
  MODEL,
  type OAuthConfigKey,
  type StoredOAuthConfig,
  toRow,
  tryDecrypt,
  untilSaved,
} from "./config-store";

const BATCH = 100;

type StoredSecrets = OAuthConfigKey & { id: string };
type Outcome = keyof Rotated;

/** Where secrets are stored, and how a row is encrypted again. */
interface Secrets<Row extends StoredSecrets> {
  adapter: DBTransactionAdapter;
  model: string;
  columns: (keyof Row & string)[];
  anew(row: Row): Promise<Partial<Row> | Exclude<Outcome, "rotated">>;
}

/**
 * Encrypts every secret again that was not encrypted with the newest of the framework's secrets. It
 * never overwrites a concurrent change, so it can be interrupted, repeated and run in parallel.
 */
export async function rotateOAuthConfigs(ctx: AuthContext): Promise<Rotated> {
  const touched = await isolationOf(ctx)?.identityProviders?.rotateSecrets();
  const { secretConfig } = ctx;
  const newest = typeof secretConfig === "string" ? undefined : secretConfig.currentVersion;
  const isUpToDate = (cipher?: string | null) =>
    !cipher || parseEnvelope(cipher)?.version === newest;
  const secrets: Secrets<StoredOAuthConfig> = {
    adapter: await getCurrentAdapter(ctx.adapter),
    model: MODEL,
    columns: ["clientId", "clientSecret", "options"],
    async anew(row) {
      const clear = await tryDecrypt(ctx, row);
      if (!clear) return "unreadable";
      const ciphers = [row.clientId, row.clientSecret, row.options];
      return ciphers.every(isUpToDate) ? "upToDate" : toRow(ctx, clear);
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
  { adapter, model, columns, anew }: Secrets<Row>,
): Promise<Outcome> {
  const where = clauses({ id: found.id });
  let row: Row | null = found;
  return untilSaved(ctx, found, async () => {
    if (!row) return "upToDate";
    const update = await anew(row);
    if (typeof update === "string") return update;
    const asItWas = columns.map((field) => ({ field, value: (row?.[field] ?? null) as string }));
    const count = await adapter.updateMany({ model, where: [...where, ...asItWas], update });
    if (count > 0) return "rotated";
    // Another request changed the row, perhaps only a part of it.
    row = await adapter.findOne<Row>({ model, where });
    return null;
  });
}
