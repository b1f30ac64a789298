import type { Isolation, Part } from "../isolation/isolation";
import { enterByProvider, refuseAmbiguousResponse } from "./resolve";
import { directoryOf, followAdministrator, followDirectory, guardDirectory } from "./scim";
import { linkDirectoryUsers, markCreatedUsers } from "./scim-linking";
import { SCIM_USER } from "./scim-rows";
import { guardLookups, guardProviders, identityProvidersOf, SSO_PROVIDER } from "./sso-providers";
import { requireSecretForNewAddress, requireSSOManager } from "./sso-rights";
import * as state from "./sso-state";
import * as trust from "./sso-trust";

/** Tenants in better-auth's packages for identity providers of customers: sso() and scim(). */
export function enterprise(isolation: Isolation): Part {
  const hasProviders = isolation.isolatedModel(SSO_PROVIDER) !== undefined;
  const hasDirectories = isolation.isolatedModel(SCIM_USER) !== undefined;
  return {
    identityProviders: hasProviders ? identityProvidersOf(isolation) : undefined,
    directory: hasDirectories ? directoryOf(isolation) : undefined,
    guards: [
      ...(hasDirectories
        ? [...guardDirectory(isolation), linkDirectoryUsers(isolation), markCreatedUsers]
        : []),
      state.guardEndOfFlow,
      guardLookups,
      guardProviders(isolation),
      trust.resolveStoredHosts,
    ],
    hooks: {
      resolve: [state.refuseSharedCallback, refuseAmbiguousResponse, enterByProvider(isolation)],
      entered: [
        state.bindStartedFlow,
        requireSSOManager,
        requireSecretForNewAddress,
        trust.resolveGivenHosts,
      ],
      afterPlugins: [
        trust.explainRefusedProvider,
        trust.refuseScriptAddress,
        trust.sandboxMetadata,
        state.prefixStartedFlow,
        ...(hasDirectories ? [followDirectory(isolation), followAdministrator(isolation)] : []),
      ],
    },
    finish: hasProviders ? () => trust.trustProviderHosts(isolation) : undefined,
  };
}
