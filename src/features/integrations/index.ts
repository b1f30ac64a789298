import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { assertKeysIsolated, findKeyStorages, sessionsOfKeys, whyKeysAreScoped } from "./api-key";
import { redirectWithPrefix, removePrefixForCookie, resolveAppHost } from "./expo";
import { guardKeyOwners, guardStoredKeys } from "./key-owners";
import { claimOfDeviceCode, claimOfKey, prefixDeviceCode } from "./machines";
import {
  claimOfPlatform,
  emptyInTenants,
  leaveTenantsAlone,
  stayOnPlatform,
} from "./platform-only";
import { claimOfEvent, guardCustomers, isolateSearchAtCheckout, stripeOptions } from "./stripe";

/**
 * Ids of plugins that work on the platform only. Includes mcp(), which has the id of
 * oauthProvider().
 */
const PLATFORM_ONLY = ["oauth-provider", "oauth-proxy", "oauth-popup", "electron"];

/** Adds tenant support to other official packages of better-auth. */
export async function integrations(isolation: Isolation): Promise<Extension[]> {
  const stripe = stripeOptions(isolation.ctx);
  const { plugins = [] } = isolation.ctx.options;
  const platformOnly = plugins.filter(({ id }) => PLATFORM_ONLY.includes(id));
  for (const plugin of platformOnly) {
    if (plugin.id !== "oauth-provider") leaveTenantsAlone(plugin);
  }
  await findKeyStorages(plugins);
  const claims = [
    ...platformOnly.map(claimOfPlatform),
    claimOfKey(isolation),
    claimOfDeviceCode,
    claimOfEvent(isolation),
  ];
  // A request may carry an API key and a device code, and an extension returns only one claim. So
  // each claim has its own extension.
  const claiming = claims.map(
    (find): Extension => ({
      name: "integrations",
      claim: async (ctx, phase) => (phase === "credential" ? find(ctx) : undefined),
    }),
  );
  const integration: Extension = {
    name: "integrations",
    models: {
      platformOnly: PLATFORM_ONLY,
      neverShared: { stripe: { models: ["subscription"], because: "would outlive the tenant" } },
      whyScoped: whyKeysAreScoped,
    },
    check: (_ctx, added) => assertKeysIsolated(added),
    install(options) {
      guardStoredKeys(isolation);
      options.plugins = options.plugins?.map(sessionsOfKeys);
    },
    guards: [
      ...platformOnly.map(emptyInTenants),
      guardKeyOwners(isolation),
      ...(stripe ? [guardCustomers(isolation, stripe)] : []),
    ],
    hooks: {
      entered: [
        ...platformOnly.map(stayOnPlatform),
        removePrefixForCookie,
        isolateSearchAtCheckout,
      ],
      afterEndpoint: [resolveAppHost],
      afterPlugins: [redirectWithPrefix, prefixDeviceCode],
    },
  };
  return [...claiming, integration];
}
