import type { AuthContext } from "better-auth";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import type { Row } from "../../core/database";
import { isNewest } from "../../core/keys";
import { parseJSON } from "../../core/utils";
import { oauthError } from "../oauth/errors";

/** The columns that hold a config, as JSON. */
const CONFIG_COLUMNS = ["oidcConfig", "samlConfig"];

/** Names of secrets in a config, at any depth. */
const SECRETS = [
  "clientSecret",
  "privateKey",
  "privateKeyPass",
  "encPrivateKey",
  "encPrivateKeyPass",
  "decryptionPvk",
];

/**
 * Precedes each encrypted secret. A secret without this mark was stored before the plugin was
 * installed, and is plain text.
 */
const MARK = "better-auth-tenant:encrypted:";

type Change = (secret: string) => string | undefined | Promise<string | undefined>;

/** Changes every secret in a config, and removes a secret if `change` returns undefined. */
async function changeSecrets(value: unknown, change: Change): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((item) => changeSecrets(item, change)));
  if (typeof value !== "object" || value === null) return value;
  const entries = await Promise.all(
    Object.entries(value).map(async ([key, item]) => {
      const isSecret = SECRETS.includes(key) && typeof item === "string" && item !== "";
      return [key, isSecret ? await change(item) : await changeSecrets(item, change)] as const;
    }),
  );
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}

async function changeRow(row: Row, change: Change): Promise<Row> {
  const changed = { ...row };
  for (const column of CONFIG_COLUMNS) {
    const config = parseJSON(changed[column]);
    if (typeof config === "object" && config)
      changed[column] = JSON.stringify(await changeSecrets(config, change));
  }
  return changed;
}

export const encryptConfigs = (ctx: AuthContext, row: Row): Promise<Row> =>
  changeRow(row, async (data) => MARK + (await symmetricEncrypt({ key: ctx.secretConfig, data })));

/**
 * Decrypts the secrets of a provider. For managers (`mayLack`), leaves out a secret that cannot be
 * decrypted. For other callers, throws.
 */
export const decryptConfigs = (ctx: AuthContext, row: Row, mayLack = false): Promise<Row> =>
  changeRow(row, async (stored) => {
    if (!stored.startsWith(MARK)) return stored;
    try {
      return await symmetricDecrypt({ key: ctx.secretConfig, data: stored.slice(MARK.length) });
    } catch {
      // Logged and thrown without the cause, which may contain ciphertext.
      ctx.logger.error(
        `A secret of the SSO provider ${row.providerId} cannot be decrypted. Is an old auth secret missing in \`secrets\`?`,
      );
      if (mayLack) return undefined;
      throw oauthError("OAUTH_CREDENTIAL_DECRYPT_FAILED");
    }
  });

export const withoutSecrets = (row: Row): Promise<Row> => changeRow(row, () => undefined);

/** Returns whether every secret of a stored row was encrypted with the newest auth secret. */
export async function isUpToDate(ctx: AuthContext, row: Row): Promise<boolean> {
  let upToDate = true;
  await changeRow(row, (stored) => {
    upToDate &&= stored.startsWith(MARK) && isNewest(ctx, stored.slice(MARK.length));
    return stored;
  });
  return upToDate;
}
