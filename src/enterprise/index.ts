import type { Isolation, Part } from "../isolation/isolation";
import { isSharedMark } from "./exact";
import { enterByProvider } from "./resolve";
import { refuseAmbiguousResponse } from "./saml-response";
import { directoryOf, followAdministrator, followDirectory, guardDirectory } from "./scim";
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

/** What better-auth's packages for customers' identity providers, sso() and scim(), need in tenants. */
export function enterprise(isolation: Isolation): Part {
  const { ctx, options } = isolation;
  const hasProviders = isolation.isolatedModel(SSO_PROVIDER) !== undefined;
  const hasDirectories = isolation.isolatedModel(SCIM_USER) !== undefined;
  if (hasProviders) trustProviderHosts(ctx, options);
  return {
    identityProviders: hasProviders
      ? {
          offered: (tenantId) => offeredProviders(isolation, tenantId),
          usable: (tenantId) => usableProviders(isolation, tenantId),
          isSharedMark: (value) => isSharedMark(ctx, value),
          rotateSecrets: () => rotateProviders(isolation),
        }
      : undefined,
    directory: hasDirectories ? directoryOf(isolation) : undefined,
    guards: [
      ...(hasDirectories ? guardDirectory(isolation) : []),
      ...(hasDirectories && hasProviders ? [linkDirectoryUsers(isolation)] : []),
      ...(hasDirectories ? [markCreatedUsers] : []),
      ...guardProviders(isolation, hostsAskedFor(options)),
    ],
    hooks: {
      resolve: [refuseSharedCallback, refuseAmbiguousResponse, enterByProvider(isolation)],
      entered: [
        nameStartedFlow,
        requireSSOManager(options),
        requireSecretForNewAddress,
        askForWrittenHosts(options),
        askForGivenHosts(options),
      ],
      afterPlugins: [
        explainRefusedProvider,
        refuseScriptAddress,
        sandboxMetadata,
        labelStartedFlow,
        ...(hasDirectories ? [followDirectory(isolation), followAdministrator(isolation)] : []),
      ],
    },
  };
}
