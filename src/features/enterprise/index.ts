import type { Extension } from "../../core/extension";
import type { Isolation } from "../../core/isolation";
import { assertOwnCallbacks, models } from "./checks";
import { claimOfProvider } from "./resolve";
import { directoryOf, followAdministrator, followDirectory, guardDirectory } from "./scim";
import { linkDirectoryUsers, markCreatedUsers } from "./scim-linking";
import { SCIM_USER } from "./scim-rows";
import { refuseChangedAddresses } from "./sso-addresses";
import {
  guardLookups,
  guardProviders,
  identityProvidersOf,
  SSO_PROVIDER,
  shareMarks,
} from "./sso-providers";
import { addPolicyFindings, requireSecretForNewAddress, requireSSOManager } from "./sso-rights";
import * as state from "./sso-state";
import * as trust from "./sso-trust";

/** Adds tenant support to `sso()` and `scim()`. */
export function enterprise(isolation: Isolation): Extension {
  const hasProviders = isolation.isolatedModel(SSO_PROVIDER) !== undefined;
  const hasDirectories = isolation.isolatedModel(SCIM_USER) !== undefined;
  const directory = hasDirectories ? directoryOf(isolation) : undefined;
  return {
    name: "enterprise",
    claim: async (ctx, phase) =>
      phase === "credential" ? claimOfProvider(isolation, ctx) : undefined,
    ...(directory && {
      admitSession: directory.admitSession,
      acceptsSession: directory.acceptsSession,
    }),
    provides: {
      ...(hasProviders && { identityProviders: identityProvidersOf(isolation) }),
      ...(directory && { directory: directory.service }),
    },
    models,
    check: assertOwnCallbacks,
    guards: [
      ...(hasDirectories
        ? [...guardDirectory(isolation), linkDirectoryUsers(isolation), markCreatedUsers]
        : []),
      state.guardEndOfFlow,
      guardLookups,
      ...(hasProviders ? [shareMarks(isolation), guardProviders(isolation)] : []),
      trust.resolveStoredHosts,
    ],
    hooks: {
      entered: [
        state.refuseSharedCallback,
        state.bindStartedFlow,
        requireSSOManager,
        requireSecretForNewAddress,
        refuseChangedAddresses,
        trust.resolveGivenHosts,
      ],
      afterPlugins: [
        trust.explainRefusedProvider,
        addPolicyFindings,
        trust.refuseScriptAddress,
        trust.sandboxMetadata,
        state.prefixStartedFlow,
        ...(hasDirectories ? [followDirectory(isolation), followAdministrator(isolation)] : []),
      ],
    },
    ...(hasProviders && { install: () => trust.trustProviderHosts(isolation) }),
  };
}
