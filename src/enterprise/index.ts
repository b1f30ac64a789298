import type { OwnHooks } from "../framework";
import type { Border } from "../isolation/isolation";
import type { ResolvedOptions } from "../options";
import { isSharedMark } from "./exact";
import { enterByProvider } from "./resolve";
import { refuseAmbiguousResponse } from "./saml-response";
import { barDeactivated, followAdministrator, followDirectory } from "./scim";
import { linkDirectoryUsers, markCreatedUsers } from "./scim-linking";
import { SCIM_USER } from "./scim-rows";
import { askForGivenHosts, askForWrittenHosts, hostsAskedFor } from "./sso-addresses";
import { requireSecretForNewAddress, requireSSOManager } from "./sso-rights";
import { guardProviders, offeredProviders, SSO_PROVIDER, usableProviders } from "./sso-rows";
import { rotateProviders } from "./sso-secrets";
import { labelStartedFlow, nameStartedFlow, refuseSharedCallback } from "./sso-state";
import {
  explainRefusedProvider,
  refuseScriptAddress,
  sandboxMetadata,
  trustProviderHosts,
} from "./sso-trust";

/*
 * What better-auth's packages for identity providers of customers need inside tenants: sso() and
 * scim(). Loaded at start where one of them is installed, and by nobody else.
 */

/** Puts the parts in place, and returns the plugin's hooks with those of this directory. */
export function confineEnterprise(
  border: Border,
  options: ResolvedOptions,
  hooks: OwnHooks,
): OwnHooks {
  guardProviders(border, hostsAskedFor(options), Object.keys(options.tenantRoles));
  if (border.confinedModel(SSO_PROVIDER)) {
    trustProviderHosts(border.ctx, options);
    border.identityProviders = {
      offered: (tenantId) => offeredProviders(border, tenantId),
      usable: (tenantId) => usableProviders(border, tenantId),
      isSharedMark: (value) => isSharedMark(border.ctx, value),
      rotateSecrets: async () => rotateProviders(border),
    };
  }
  const hasDirectories = border.confinedModel(SCIM_USER) !== undefined;
  if (hasDirectories) markCreatedUsers(border);
  if (hasDirectories && border.confinedModel(SSO_PROVIDER)) linkDirectoryUsers(border);
  // Last, so that it is asked first: nothing is written for a user who is barred.
  if (hasDirectories) barDeactivated(border);
  return {
    ...hooks,
    before: [
      ...hooks.before,
      refuseSharedCallback,
      refuseAmbiguousResponse,
      enterByProvider(border),
    ],
    afterNaming: [
      ...hooks.afterNaming,
      nameStartedFlow(border),
      requireSSOManager(border, options),
      requireSecretForNewAddress,
      askForWrittenHosts(options),
      askForGivenHosts(options),
    ],
    afterPlugins: [
      ...hooks.afterPlugins,
      explainRefusedProvider,
      refuseScriptAddress,
      sandboxMetadata,
      labelStartedFlow,
      ...(hasDirectories ? [followDirectory(border), followAdministrator(border)] : []),
    ],
  };
}
