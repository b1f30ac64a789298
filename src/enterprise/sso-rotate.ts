import { APIError } from "better-auth/api";
import type { Border, Rotated, Row } from "../border/border";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { rowsOf } from "../oauth/rotate";
import { SSO_PROVIDER } from "./sso-rows";
import { decryptConfigs, encryptConfigs, isUpToDate } from "./sso-secrets";

const TRIES = 10;

/**
 * Encrypts the secrets of all identity providers anew that were not encrypted with the newest of
 * the framework's secrets, and those from before that were not encrypted at all. What somebody else
 * writes in between is never undone.
 */
export async function rotateProviders(border: Border): Promise<Rotated> {
  const touched = { rotated: 0, upToDate: 0, unreadable: 0 };
  for await (const row of rowsOf<Row>(border.raw, SSO_PROVIDER)) {
    touched[await rotate(border, row)]++;
  }
  return touched;
}

async function rotate({ ctx, raw }: Border, found: Row) {
  const where = [{ field: "id", value: String(found.id) }];
  let row: Row | null = found;
  for (let tries = 0; row && tries < TRIES; tries++) {
    if (await isUpToDate(ctx, row)) return "upToDate";
    const clear = await decryptConfigs(ctx, row).catch(() => null);
    if (!clear) return "unreadable";
    const { oidcConfig, samlConfig } = await encryptConfigs(ctx, clear);
    const asItWas = ["oidcConfig", "samlConfig"].map((field) => ({
      field,
      value: (row?.[field] as string | null | undefined) ?? null,
    }));
    const count = await raw.updateMany({
      model: SSO_PROVIDER,
      where: [...where, ...asItWas],
      update: { oidcConfig, samlConfig },
    });
    if (count > 0) return "rotated";
    row = await raw.findOne<Row>({ model: SSO_PROVIDER, where });
  }
  if (!row) return "upToDate";
  throw APIError.from("INTERNAL_SERVER_ERROR", TENANT_AUTH_ERROR_CODES.OAUTH_CONFIG_NOT_SAVED);
}
