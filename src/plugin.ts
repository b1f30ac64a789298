import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { isTenantRoute, PLUGIN_ID } from "./constants";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import { notStarted } from "./errors";
import { type Hooks, silentHook } from "./framework";
import { closeAdminEndpoint, keepForeignCookies, openAdminEndpoint } from "./isolation/cookies";
import { type Part, tenantAuthOptions } from "./isolation/isolation";
import { openSealedToken, sealRedirectedToken } from "./isolation/links";
import { giveTenantProviders } from "./oauth/provider";
import {
  checkOAuthConfigEndpoint,
  deleteOAuthConfigEndpoint,
  listOAuthConfigsEndpoint,
  registerOAuthConfigEndpoint,
  rotateOAuthSecretsEndpoint,
  updateOAuthConfigEndpoint,
} from "./oauth/routes";
import { withholdTokens } from "./oauth/tokens";
import { resolveOptions, type TenantAuthOptions } from "./options";
import { askPolicy } from "./policy/admission";
import {
  answerWithSetup,
  closeEnrollment,
  completeFactors,
  openEnrollment,
} from "./policy/second-factor";
import { refuseAddresses } from "./request/addresses";
import { withDebugLog } from "./request/debug";
import { enterByPrefix, enterNamedTenant } from "./request/enter";
import { warnOfUnreadHeaders } from "./request/resolve";
import {
  answerWithSession,
  callbackTenantOAuth,
  signInEmailTenant,
  signInMethodsEndpoint,
  signInSocialTenant,
  signUpEmailTenant,
} from "./request/tenant-routes";
import { type InferredSchema, storedSchema } from "./schema";
import { install } from "./setup/install";
import { applyOverrides } from "./setup/overrides";
import {
  createTenantEndpoint,
  deleteTenantEndpoint,
  getTenantEndpoint,
  listTenantsEndpoint,
  purgeTenantsEndpoint,
  resetTwoFactorEndpoint,
  updateTenantEndpoint,
} from "./tenants/routes";

/**
 * On the plugin as it is listed, which `install` replaces. If something has prevented that, there is
 * no isolation, and every request is refused.
 */
const refuseAll = async () => {
  throw notStarted();
};

/** Every hook of the plugin, in the order they run. */
function hooksOf(ctx: AuthContext, parts: Part[]): Hooks {
  const ofParts = <Name extends keyof Hooks>(name: Name) =>
    parts.flatMap(({ hooks }): Hooks[Name][number][] => hooks[name] ?? []);
  const hooks: Hooks = {
    resolve: [enterNamedTenant, openSealedToken, ...ofParts("resolve"), enterByPrefix],
    entered: [
      warnOfUnreadHeaders(tenantAuthOptions(ctx)),
      applyOverrides,
      refuseAddresses,
      askPolicy,
      ...ofParts("entered"),
      giveTenantProviders(ctx),
    ],
    beforeEndpoint: [openAdminEndpoint, openEnrollment],
    // First what better-auth did to the cookies, then, after their hooks, what other plugins did.
    afterEndpoint: [
      closeAdminEndpoint,
      closeEnrollment,
      answerWithSetup,
      keepForeignCookies,
      withholdTokens,
      ...ofParts("afterEndpoint"),
    ],
    afterPlugins: [
      completeFactors,
      answerWithSession,
      keepForeignCookies,
      sealRedirectedToken,
      ...ofParts("afterPlugins"),
    ],
  };
  return ctx.logger.level === "debug" ? withDebugLog(hooks) : hooks;
}

declare module "@better-auth/core" {
  interface BetterAuthPluginRegistry<AuthOptions, Options> {
    "tenant-auth": { creator: typeof tenantAuth };
  }
}

/**
 * Tenants for better-auth: each with its own users, sign-in, OAuth credentials and sessions.
 */
export const tenantAuth = (tenantAuthOptions?: TenantAuthOptions) => {
  const options = resolveOptions(tenantAuthOptions);
  const schema = storedSchema(options);
  return {
    id: PLUGIN_ID,
    // Types are inferred from this: users and sessions with their tenant.
    schema: schema as InferredSchema,
    init: (ctx: AuthContext) => install(ctx, schema, options, hooksOf),
    onRequest: refuseAll,
    hooks: { before: [{ matcher: () => true, handler: silentHook(refuseAll) }] },
    endpoints: {
      /** Creates a tenant. For managers. */
      createTenant: createTenantEndpoint,
      /** A tenant, by `id` or by `slug`. For managers. */
      getTenant: getTenantEndpoint,
      /** Lists tenants. For managers. */
      listTenants: listTenantsEndpoint,
      /** Changes the name, slug, metadata, status or policy of a tenant. For managers. */
      updateTenant: updateTenantEndpoint,
      /** Deletes a tenant with everything in it, now or later. For managers. */
      deleteTenant: deleteTenantEndpoint,
      /** Deletes tenants past their deletion date. For server code only. */
      purgeTenants: purgeTenantsEndpoint,
      /** Removes the second factors of a tenant's user. For managers. */
      resetTenantUserTwoFactor: resetTwoFactorEndpoint,
      /** Signs a user up at a tenant, with email and password. */
      signUpEmailTenant,
      /** Signs a user in at a tenant, with email and password. */
      signInEmailTenant,
      /** Starts social sign-in at a tenant. */
      signInSocialTenant,
      /** What a tenant's sign-in page offers, and the tenant's name. For everyone. */
      getTenantSignInMethods: signInMethodsEndpoint,
      /** Where providers redirect back to. */
      callbackTenantOAuth,
      /** Creates or replaces a tenant's config for a provider. For managers. */
      registerTenantOAuthConfig: registerOAuthConfigEndpoint,
      /** Lists a tenant's OAuth configs, without secrets. For managers. */
      listTenantOAuthConfigs: listOAuthConfigsEndpoint,
      /** Changes parts of a tenant's config. For managers. */
      updateTenantOAuthConfig: updateOAuthConfigEndpoint,
      /** Tries a tenant's config, stored or not, without a sign-in. For managers. */
      checkTenantOAuthConfig: checkOAuthConfigEndpoint,
      /** Deletes a tenant's config for a provider. For managers. */
      deleteTenantOAuthConfig: deleteOAuthConfigEndpoint,
      /** Encrypts all OAuth configs again, with the newest secret. For server code only. */
      rotateTenantOAuthSecrets: rotateOAuthSecretsEndpoint,
    },
    // better-auth puts this limit on its own sign-in and sign-up, by path.
    rateLimit: [
      {
        pathMatcher: (path: string) => isTenantRoute(path) && !path.includes("/callback/"),
        window: 10,
        max: 3,
      },
    ],
    options: tenantAuthOptions,
    $ERROR_CODES: TENANT_AUTH_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};
