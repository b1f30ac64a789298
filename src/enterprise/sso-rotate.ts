import type { Border, Rotated, Row } from "../border/border";
import { rotateAll } from "../oauth/rotate";
import { SSO_PROVIDER } from "./sso-rows";
import { decryptConfigs, encryptConfigs, isUpToDate } from "./sso-secrets";

type StoredProvider = Row & { id: string; tenantId: string; providerId: string };

/**
 * Encrypts the secrets of all identity providers anew that were not encrypted with the newest of
 * the framework's secrets, and those from before that were not encrypted at all.
 */
export const rotateProviders = ({ ctx, raw }: Border): Promise<Rotated> =>
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
