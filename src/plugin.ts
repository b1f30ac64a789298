import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { createEnterScope } from "./context";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import { enterNamedTenant, isOwnSignIn } from "./hooks";
import { PLUGIN_ID, start } from "./init";
import {
  deleteOAuthConfigEndpoint,
  listOAuthConfigsEndpoint,
  registerOAuthConfigEndpoint,
} from "./oauth/endpoints";
import { keepCallbackOnPlatform } from "./oauth/providers";
import { resolveOptions, type TenantAuthOptions } from "./options";
import { type InferredSchema, storedSchema } from "./schema";
import { keepCookiesOfElsewhere } from "./scope/cookies";
import { openSealedToken, sealRedirectedToken } from "./scope/links";
import { callbackTenantOAuth } from "./sign-in/callback";
import { signInEmailTenant, signUpEmailTenant } from "./sign-in/email";
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
      createTenant: createTenantEndpoint(options),
      getTenant: getTenantEndpoint(options),
      listTenants: listTenantsEndpoint(options),
      updateTenant: updateTenantEndpoint(options),
      deleteTenant: deleteTenantEndpoint(options),
      signUpEmailTenant: signUpEmailTenant(options),
      signInEmailTenant: signInEmailTenant(options),
      signInSocialTenant: signInSocialTenant(options),
      callbackTenantOAuth: callbackTenantOAuth(enter),
      registerTenantOAuthConfig: registerOAuthConfigEndpoint(options),
      listTenantOAuthConfigs: listOAuthConfigsEndpoint(options),
      deleteTenantOAuthConfig: deleteOAuthConfigEndpoint(options),
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
