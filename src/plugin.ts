import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { isTenantRoute, PLUGIN_ID } from "./constants";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import { notStarted } from "./errors";
import { silentHook } from "./framework";
import { closeEndpoint, keepForeignCookies, openEndpoint } from "./isolation/cookies";
import { openSealedToken, sealRedirectedToken } from "./isolation/links";
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
import { askPolicy, enterByPrefix, enterNamedTenant, refuseAddresses } from "./request/enter";
import { requireTenantId } from "./request/resolve";
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
  updateTenantEndpoint,
} from "./tenants/routes";

/**
 * On the plugin as it is listed, in whose place `start.ts` puts another one. Where something has
 * kept it from that, there is no isolation, and nobody gets an answer.
 */
const refuse = async () => {
  throw notStarted();
};

declare module "@better-auth/core" {
  interface BetterAuthPluginRegistry<AuthOptions, Options> {
    "tenant-auth": { creator: typeof tenantAuth };
  }
}

/**
 * Tenants for better-auth: each with its own users, its own sign-in, its own OAuth credentials
 * and its own sessions.
 */
export const tenantAuth = (tenantAuthOptions?: TenantAuthOptions) => {
  const options = resolveOptions(tenantAuthOptions);
  const schema = storedSchema(options);
  const hooks = {
    before: [enterNamedTenant(options), openSealedToken(requireTenantId)],
    afterNaming: [enterByPrefix, applyOverrides, refuseAddresses(options), askPolicy],
    beforeEndpoint: [openEndpoint],
    // What better-auth has done to the cookies is looked at first, what plugins have done last.
    afterEndpoint: [closeEndpoint, keepForeignCookies, withholdTokens],
    afterPlugins: [answerWithSession, keepForeignCookies, sealRedirectedToken],
  };
  return {
    id: PLUGIN_ID,
    // What is inferred from the schema is what people see: users and sessions with their tenant.
    schema: schema as InferredSchema,
    init: async (ctx: AuthContext) => install(ctx, schema, options, hooks),
    onRequest: refuse,
    hooks: { before: [{ matcher: () => true, handler: silentHook(refuse) }] },
    endpoints: {
      /** Creates a tenant. For managers. */
      createTenant: createTenantEndpoint(options),
      /** A tenant, by `id` or by `slug`. For managers. */
      getTenant: getTenantEndpoint(options),
      /** Lists tenants. For managers. */
      listTenants: listTenantsEndpoint(options),
      /** Changes the name, the slug, the metadata or the status of a tenant. For managers. */
      updateTenant: updateTenantEndpoint(options),
      /** Deletes a tenant with all that is in it, at once or later. For managers. */
      deleteTenant: deleteTenantEndpoint(options),
      /** Deletes the tenants whose time has come. For server code only. */
      purgeTenants: purgeTenantsEndpoint(options),
      /** Signs somebody up under a tenant, with e-mail and password. */
      signUpEmailTenant,
      /** Signs somebody in under a tenant, with e-mail and password. */
      signInEmailTenant,
      /** Starts social sign-in under a tenant. */
      signInSocialTenant,
      /** What a tenant's sign-in page offers, and the tenant's name. For everybody. */
      getTenantSignInMethods: signInMethodsEndpoint(options),
      /** Where providers send people back to. */
      callbackTenantOAuth,
      /** Creates or replaces a tenant's config for a provider. For managers. */
      registerTenantOAuthConfig: registerOAuthConfigEndpoint(options),
      /** Lists a tenant's OAuth configs, without secrets. For managers. */
      listTenantOAuthConfigs: listOAuthConfigsEndpoint(options),
      /** Changes some of a tenant's config and leaves the rest. For managers. */
      updateTenantOAuthConfig: updateOAuthConfigEndpoint(options),
      /** Tries a tenant's config, stored or not, without signing anybody in. For managers. */
      checkTenantOAuthConfig: checkOAuthConfigEndpoint(options),
      /** Deletes a tenant's config for a provider. For managers. */
      deleteTenantOAuthConfig: deleteOAuthConfigEndpoint(options),
      /** Encrypts all OAuth configs anew with the newest secret. For server code only. */
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
