import type { OwnHooks } from "../framework";
import type { Isolation } from "../isolation/isolation";
import type { ResolvedOptions } from "../options";
import { askForApp, redirectWithLabel, takeLabelForCookie } from "./expo";
import {
  emptyInTenants,
  leaveTenantsAlone,
  platformOnlyPlugins,
  stayOnPlatform,
} from "./platform-only";
import { confineSearchAtCheckout, enterByEvent, guardCustomers, stripeOptions } from "./stripe";

/*
 * What other official packages of better-auth need inside tenants. Loaded at start where one of
 * them is installed, and by nobody else.
 */

/** Puts the parts in place, and returns the plugin's hooks with those of this directory. */
export function confinePackages(
  isolation: Isolation,
  options: ResolvedOptions,
  hooks: OwnHooks,
): OwnHooks {
  const stripe = stripeOptions(isolation.ctx);
  if (stripe) guardCustomers(isolation, stripe);
  const platformOnly = platformOnlyPlugins(isolation);
  for (const plugin of platformOnly) {
    emptyInTenants(isolation, plugin);
    if (plugin.id !== "oauth-provider") leaveTenantsAlone(plugin);
  }
  return {
    ...hooks,
    before: [
      ...hooks.before,
      takeLabelForCookie,
      enterByEvent(isolation),
      ...platformOnly.map((plugin) => stayOnPlatform(isolation, plugin)),
    ],
    afterNaming: [...hooks.afterNaming, confineSearchAtCheckout],
    afterEndpoint: [...hooks.afterEndpoint, askForApp(options)],
    afterPlugins: [...hooks.afterPlugins, redirectWithLabel],
  };
}
