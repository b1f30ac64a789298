import type { Isolation, Part } from "../isolation/isolation";
import { enterByProvider, refuseAmbiguousResponse } from "./resolve";
import { directoryOf, followAdministrator, followDirectory, guardDirectory } from "./scim";
import { linkDirectoryUsers, markCreatedUsers } from "./scim-linking";
import { SCIM_USER } from "./scim-rows";
import { guardLookups, guardProviders, identityProvidersOf, SSO_PROVIDER } from "./sso-providers";
import { requireSecretForNewAddress, requireSSOManager } from "./sso-rights";
import {
  bindStartedFlow,
  guardEndOfFlow,
  prefixStartedFlow,
  refuseSharedCallback,
} from "./sso-state";
import {
  explainRefusedProvider,
  refuseScriptAddress,
  resolveGivenHosts,
  resolveStoredHosts,
  sandboxMetadata,
  trustProviderHosts,
} from "./sso-trust";

/** Tenants in better-auth's packages for identity providers of customers: sso() and scim(). */
export function enterprise(isolation: Isolation): Part {
  const { ctx, options } = isolation;
  const hasProviders = isolation.isolatedModel(SSO_PROVIDER) !== undefined;
  const hasDirectories = isolation.isolatedModel(SCIM_USER) !== undefined;
  if (hasProviders) trustProviderHosts(ctx, options);
  return {
    identityProviders: hasProviders ? identityProvidersOf(isolation) : undefined,
    directory: hasDirectories ? directoryOf(isolation) : undefined,
    guards: [
      ...(hasDirectories ? guardDirectory(isolation) : []),
      ...(hasDirectories && hasProviders ? [linkDirectoryUsers(isolation)] : []),
      ...(hasDirectories ? [markCreatedUsers] : []),
      guardEndOfFlow,
      guardLookups,
      guardProviders(isolation),
      resolveStoredHosts(options),
    ],
    hooks: {
      resolve: [refuseSharedCallback, refuseAmbiguousResponse, enterByProvider(isolation)],
      entered: [
        bindStartedFlow,
        requireSSOManager,
        requireSecretForNewAddress,
        resolveGivenHosts(options),
      ],
      afterPlugins: [
        explainRefusedProvider,
        refuseScriptAddress,
        sandboxMetadata,
        prefixStartedFlow,
        ...(hasDirectories ? [followDirectory(isolation), followAdministrator(isolation)] : []),
      ],
    },
  };
}
