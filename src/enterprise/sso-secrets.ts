import type { AuthContext } from "better-auth";
import { parseEnvelope, symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { tenantError } from "../errors";
import { parseJSON } from "../framework";
import type { Isolation, Rotated, Row } from "../isolation/isolation";
import { rotateAll } from "../oauth/rotate";
import { SSO_PROVIDER } from "./sso-rows";

/** The columns that hold a config, as JSON. */
const COLUMNS = ["oidcConfig", "samlConfig"];

/** The names that secrets have in them, at any depth. */
const SECRETS = [
  "clientSecret",
  "privateKey",
  "privateKeyPass",
  "encPrivateKey",
  "encPrivateKeyPass",
  "decryptionPvk",
];

/** In front of cipher text: what was stored before the plugin was there is plain text. */
const MARK = "better-auth-tenant:encrypted:";

type Change = (secret: string) => string | undefined | Promise<string | undefined>;

/** A config with every secret in it changed; one that is undefined is left out. */
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

/** A row with the secrets in its columns changed. What is no JSON stays as it is. */
async function changeRow(row: Row, change: Change): Promise<Row> {
  const changed = { ...row };
  for (const column of COLUMNS) {
    const config = parseJSON(changed[column]);
    if (typeof config === "object" && config)
      changed[column] = JSON.stringify(await changeSecrets(config, change));
  }
  return changed;
}

export const encryptConfigs = (ctx: AuthContext, row: Row): Promise<Row> =>
  changeRow(row, async (data) => MARK + (await symmetricEncrypt({ key: ctx.secretConfig, data })));

/** A secret that cannot be decrypted is left out for whoever manages it, and fails everybody else. */
export const decryptConfigs = (ctx: AuthContext, row: Row, mayLack = false): Promise<Row> =>
  changeRow(row, async (stored) => {
    if (!stored.startsWith(MARK)) return stored;
    try {
      return await symmetricDecrypt({ key: ctx.secretConfig, data: stored.slice(MARK.length) });
    } catch {
      // The cause is left out on purpose: it must not carry cipher text into an answer or a log.
      ctx.logger.error(
        `A secret of the SSO provider ${row.providerId} cannot be decrypted. Is an old auth secret missing in \`secrets\`?`,
      );
      if (mayLack) return undefined;
      throw tenantError("OAUTH_CREDENTIAL_DECRYPT_FAILED");
    }
  });

export const withoutSecrets = (row: Row): Promise<Row> => changeRow(row, () => undefined);

/** Whether every secret of a stored row was encrypted with the newest of the framework's secrets. */
export async function isUpToDate({ secretConfig }: AuthContext, row: Row): Promise<boolean> {
  const newest = typeof secretConfig === "string" ? undefined : secretConfig.currentVersion;
  let upToDate = true;
  await changeRow(row, (stored) => {
    const isNew =
      stored.startsWith(MARK) && parseEnvelope(stored.slice(MARK.length))?.version === newest;
    upToDate &&= isNew;
    return stored;
  });
  return upToDate;
}

type StoredProvider = Row & { id: string; tenantId: string; providerId: string };

/**
 * Encrypts the secrets of all identity providers anew that were not encrypted with the newest of
 * the framework's secrets, and those from before that were not encrypted at all.
 */
export const rotateProviders = ({ ctx, raw }: Isolation): Promise<Rotated> =>
  rotateAll<StoredProvider>(ctx, {
    adapter: raw,
    model: SSO_PROVIDER,
    columns: ["oidcConfig", "samlConfig"],
    async anew(row) {
      if (await isUpToDate(ctx, row)) return "upToDate";
      const clear = await decryptConfigs(ctx, row).catch(() => null);
      if (!clear) return "unreadable";
      const { oidcConfig, samlConfig } = await encryptConfigs(ctx, clear);
      return { oidcConfig, samlConfig };
    },
  });
