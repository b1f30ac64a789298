import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { createEnterScope } from "./context";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import { enterNamedTenant, isOwnSignIn } from "./hooks";
import { PLUGIN_ID, start } from "./init";
import {
  checkOAuthConfigEndpoint,
  deleteOAuthConfigEndpoint,
  listOAuthConfigsEndpoint,
  registerOAuthConfigEndpoint,
  rotateOAuthSecretsEndpoint,
  updateOAuthConfigEndpoint,
} from "./oauth/endpoints";
import { keepCallbackOnPlatform } from "./oauth/providers";
import { resolveOptions, type TenantAuthOptions } from "./options";
import { type InferredSchema, storedSchema } from "./schema";
import { keepCookiesOfElsewhere } from "./scope/cookies";
import { openSealedToken, sealRedirectedToken } from "./scope/links";
import { callbackTenantOAuth } from "./sign-in/callback";
import { signInEmailTenant, signUpEmailTenant } from "./sign-in/email";
import { signInMethodsEndpoint } from "./sign-in/methods";
import { signInSocialTenant } from "./sign-in/social";
import {
  createTenantEndpoint,
  deleteTenantEndpoint,
  getTenantEndpoint,
  listTenantsEndpoint,
  updateTenantEndpoint,
} from "./tenants/endpoints";

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
  const enter = createEnterScope(options);
  return {
    id: PLUGIN_ID,
    // What is inferred from the schema is what people see: users and sessions with their tenant.
    schema: schema as unknown as InferredSchema,
    init: (ctx: AuthContext) => start(ctx, schema, options, enter),
    endpoints: {
      /** Creates a tenant. For managers. */
      createTenant: createTenantEndpoint(options),
      /** A tenant, by `id` or by `slug`. For managers. */
      getTenant: getTenantEndpoint(options),
      /** Lists tenants. For managers. */
      listTenants: listTenantsEndpoint(options),
      /** Changes the name, the slug or the metadata of a tenant. For managers. */
      updateTenant: updateTenantEndpoint(options),
      /** Deletes a tenant with its users, sessions and OAuth configs. For managers. */
      deleteTenant: deleteTenantEndpoint(options),
      /** Signs somebody up under a tenant, with e-mail and password. */
      signUpEmailTenant: signUpEmailTenant(options),
      /** Signs somebody in under a tenant, with e-mail and password. */
      signInEmailTenant: signInEmailTenant(options),
      /** Starts social sign-in under a tenant. */
      signInSocialTenant: signInSocialTenant(options),
      /** What a tenant's sign-in page offers, and the tenant's name. For everybody. */
      getTenantSignInMethods: signInMethodsEndpoint(options),
      /** Where providers send people back to. */
      callbackTenantOAuth: callbackTenantOAuth(options, enter),
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
    hooks: {
      before: [keepCallbackOnPlatform, enterNamedTenant(options, enter), openSealedToken(enter)],
      after: [keepCookiesOfElsewhere, sealRedirectedToken],
    },
    // better-auth puts this limit on its own sign-in and sign-up, by path.
    rateLimit: [
      {
        pathMatcher: isOwnSignIn,
        window: 10,
        max: 3,
      },
    ],
    options: tenantAuthOptions,
    $ERROR_CODES: TENANT_AUTH_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};
