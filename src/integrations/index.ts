import type { Isolation, Part } from "../isolation/isolation";
import { PLATFORM_ONLY } from "../setup/checks";
import { redirectWithPrefix, removePrefixForCookie, resolveAppHost } from "./expo";
import { enterByDeviceCode, enterByKey, prefixDeviceCode } from "./machines";
import { emptyInTenants, leaveTenantsAlone, stayOnPlatform } from "./platform-only";
import { enterByEvent, guardCustomers, isolateSearchAtCheckout, stripeOptions } from "./stripe";

/** Tenants in other official packages of better-auth. */
export function integrations(isolation: Isolation): Part {
  const stripe = stripeOptions(isolation.ctx);
  const { plugins = [] } = isolation.ctx.options;
  const platformOnly = plugins.filter(({ id }) => PLATFORM_ONLY.includes(id));
  for (const plugin of platformOnly) {
    if (plugin.id !== "oauth-provider") leaveTenantsAlone(plugin);
  }
  return {
    guards: [
      ...platformOnly.map(emptyInTenants),
      ...(stripe ? [guardCustomers(isolation, stripe)] : []),
    ],
    hooks: {
      resolve: [
        ...platformOnly.map(stayOnPlatform),
        enterByKey(isolation),
        enterByDeviceCode,
        removePrefixForCookie,
        enterByEvent(isolation),
      ],
      entered: [isolateSearchAtCheckout],
      afterEndpoint: [resolveAppHost],
      afterPlugins: [redirectWithPrefix, prefixDeviceCode],
    },
  };
}
