import type { OwnHooks } from "../framework";
import type { Isolation } from "../isolation/isolation";
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
  isolation: Isolation,
  options: ResolvedOptions,
  hooks: OwnHooks,
): OwnHooks {
  guardProviders(isolation, hostsAskedFor(options), Object.keys(options.tenantRoles));
  if (isolation.isolatedModel(SSO_PROVIDER)) {
    trustProviderHosts(isolation.ctx, options);
    isolation.identityProviders = {
      offered: (tenantId) => offeredProviders(isolation, tenantId),
      usable: (tenantId) => usableProviders(isolation, tenantId),
      isSharedMark: (value) => isSharedMark(isolation.ctx, value),
      rotateSecrets: async () => rotateProviders(isolation),
    };
  }
  const hasDirectories = isolation.isolatedModel(SCIM_USER) !== undefined;
  if (hasDirectories) markCreatedUsers(isolation);
  if (hasDirectories && isolation.isolatedModel(SSO_PROVIDER)) linkDirectoryUsers(isolation);
  // Last, so that it is asked first: nothing is written for a user who is barred.
  if (hasDirectories) barDeactivated(isolation);
  return {
    ...hooks,
    before: [
      ...hooks.before,
      refuseSharedCallback,
      refuseAmbiguousResponse,
      enterByProvider(isolation),
    ],
    afterNaming: [
      ...hooks.afterNaming,
      nameStartedFlow(isolation),
      requireSSOManager(isolation, options),
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
      ...(hasDirectories ? [followDirectory(isolation), followAdministrator(isolation)] : []),
    ],
  };
}
