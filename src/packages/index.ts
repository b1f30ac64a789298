import type { Border } from "../border/border";
import type { OwnHooks } from "../framework";
import type { ResolvedOptions } from "../options";
import { nameTenantInHeaders } from "./electron";
import { askForApp, redirectWithLabel, takeLabelForCookie } from "./expo";
import { sayInPopupState } from "./oauth-popup";
import { leaveTenantsAlone } from "./oauth-proxy";
import { emptyInTenants, platformOnlyPlugins, stayOnPlatform } from "./platform-only";
import { confineSearchAtCheckout, enterByEvent, guardCustomers, stripeOptions } from "./stripe";

/*
 * What other official packages of better-auth need inside tenants. Loaded at start where one of
 * them is installed, and by nobody else.
 */

/** Puts the parts in place, and returns the plugin's hooks with those of this directory. */
export function confinePackages(
  border: Border,
  options: ResolvedOptions,
  hooks: OwnHooks,
): OwnHooks {
  const stripe = stripeOptions(border.ctx);
  if (stripe) guardCustomers(border, stripe);
  for (const plugin of border.ctx.options.plugins ?? []) {
    if (plugin.id === "oauth-proxy") leaveTenantsAlone(plugin);
  }
  const platformOnly = platformOnlyPlugins(border);
  for (const plugin of platformOnly) emptyInTenants(border, plugin);
  return {
    ...hooks,
    before: [
      ...hooks.before,
      takeLabelForCookie,
      nameTenantInHeaders(options),
      sayInPopupState(border),
      enterByEvent(border),
      confineSearchAtCheckout,
      ...platformOnly.map((plugin) => stayOnPlatform(border, plugin)),
    ],
    afterEndpoint: [...hooks.afterEndpoint, askForApp(options)],
    afterPlugins: [...hooks.afterPlugins, redirectWithLabel],
  };
}
