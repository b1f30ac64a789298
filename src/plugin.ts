import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { isTenantRoute, PLUGIN_ID } from "./core/constants";
import { notStarted } from "./core/errors";
import type { Extension } from "./core/extension";
import { type Hooks, plainHook } from "./core/hooks";
import { install } from "./core/install/install";
import { keepForeignCookies, undoCookies } from "./core/isolate/cookies";
import { closeAdminEndpoint, openAdminEndpoint } from "./core/isolate/cross-tenant";
import { openSealedToken, sealRedirectedToken } from "./core/isolate/links";
import type { Isolation } from "./core/isolation";
import { refuseAddresses } from "./core/resolve/addresses";
import { withDebugLog } from "./core/resolve/debug";
import { enterByPrefix, enterClaimed, enterNamedTenant } from "./core/resolve/enter";
import { warnOfUnreadHeaders } from "./core/resolve/resolve";
import { type InferredSchema, refuse } from "./core/schema";
import { TENANT_AUTH_ERROR_CODES } from "./error-codes";
import { credentials } from "./features/credentials";
import { email } from "./features/email";
import { signInEmailTenant, signUpEmailTenant } from "./features/email/routes";
import { management } from "./features/management";
import {
  createTenantEndpoint,
  deleteTenantEndpoint,
  getTenantEndpoint,
  listTenantsEndpoint,
  purgeTenantsEndpoint,
  resetTwoFactorEndpoint,
  updateTenantEndpoint,
} from "./features/management/routes";
import { oauth } from "./features/oauth";
import {
  checkOAuthConfigEndpoint,
  deleteOAuthConfigEndpoint,
  listOAuthConfigsEndpoint,
  registerOAuthConfigEndpoint,
  rotateOAuthSecretsEndpoint,
  updateOAuthConfigEndpoint,
} from "./features/oauth/routes";
import { callbackTenantOAuth, signInSocialTenant } from "./features/oauth/tenant-routes";
import { policy, secondFactors } from "./features/policy";
import type { InferredPolicyColumns } from "./features/policy/tables";
import { signInMethodsEndpoint } from "./features/sign-in-page/routes";
import { resolveOptions, type TenantAuthOptions } from "./options";
import { schemaFor } from "./schema";

/** Refuses every request until `install` keeps tenants apart and replaces this hook. */
const refuseAll = async () => {
  throw notStarted();
};

/** The ids of plugins that `features/enterprise` and `features/integrations` support. */
const ENTERPRISE = ["sso", "scim"];
const INTEGRATED = [
  ...["expo", "electron", "stripe", "oauth-provider", "oauth-proxy", "oauth-popup"],
  ...["api-key", "device-authorization"],
];

/**
 * Returns the features, in the order in which the core asks them. `tenantInvitations()` and
 * `tenantDomains()` come before these: an invitation must be found before the policy decides.
 * `enterprise` comes before the policy: a directory must refuse a session before the policy deletes
 * rows for it.
 */
async function featuresOf(isolation: Isolation): Promise<Extension[]> {
  const installed = isolation.ctx.options.plugins ?? [];
  const has = (ids: string[]) => installed.some(({ id }) => ids.includes(id));
  return [
    refuseLatePlugins([...installed]),
    credentials(isolation),
    // Loaded only if needed, because few applications have these plugins.
    ...(has(ENTERPRISE) ? [(await import("./features/enterprise")).enterprise(isolation)] : []),
    ...(has(INTEGRATED)
      ? await (await import("./features/integrations")).integrations(isolation)
      : []),
    policy(isolation),
    secondFactors(isolation),
    management(isolation),
    email(isolation),
    await oauth(isolation),
  ];
}

/**
 * Refuses a plugin that needs tenant support, if another plugin adds it in `init`: support is
 * loaded only for the plugins that the application lists.
 */
const refuseLatePlugins = (listed: BetterAuthPlugin[]): Extension => ({
  name: "late plugins",
  check(_ctx, plugins) {
    const needSupport = [...ENTERPRISE, ...INTEGRATED];
    const late = plugins.find(
      (plugin) => needSupport.includes(plugin.id) && !listed.includes(plugin),
    );
    if (!late) return;
    refuse(
      `another plugin adds ${late.id} when better-auth starts, which is too late to keep its data apart.`,
      `List ${late.id} directly in the plugins of better-auth.`,
    );
  },
});

/** Returns every hook of the plugin, in the order they run. */
function hooksOf({ ctx, options, extensions }: Isolation): Hooks {
  const ofFeatures = <Name extends Exclude<keyof Hooks, "resolve">>(name: Name) =>
    extensions.flatMap(({ hooks }): Hooks[Name][number][] => hooks?.[name] ?? []);
  const hooks: Hooks = {
    resolve: [enterNamedTenant, openSealedToken, enterClaimed, enterByPrefix],
    entered: [warnOfUnreadHeaders(options), refuseAddresses, ...ofFeatures("entered")],
    beforeEndpoint: [openAdminEndpoint, ...ofFeatures("beforeEndpoint")],
    // Cookies are corrected twice: here after better-auth's endpoint, and in `afterPlugins` after
    // the hooks of other plugins.
    afterEndpoint: [
      closeAdminEndpoint,
      ...ofFeatures("afterEndpoint"),
      keepForeignCookies,
      undoCookies,
    ],
    afterPlugins: [
      ...ofFeatures("afterPlugins"),
      keepForeignCookies,
      undoCookies,
      sealRedirectedToken,
    ],
  };
  return ctx.logger.level === "debug" ? withDebugLog(hooks) : hooks;
}

declare module "@better-auth/core" {
  interface BetterAuthPluginRegistry<AuthOptions, Options> {
    "tenant-auth": { creator: typeof tenantAuth };
  }
}

/** Adds tenants to better-auth, with their own users, sign-in, OAuth credentials and sessions. */
export const tenantAuth = (tenantAuthOptions?: TenantAuthOptions) => {
  const options = resolveOptions(tenantAuthOptions);
  const schema = schemaFor(options);
  return {
    id: PLUGIN_ID,
    // better-auth infers the types of users and sessions, with `tenantId`, from this schema.
    schema: schema as InferredSchema & InferredPolicyColumns,
    init: (ctx: AuthContext) => install(ctx, schema, options, hooksOf, featuresOf),
    onRequest: refuseAll,
    hooks: { before: [{ matcher: () => true, handler: plainHook(refuseAll) }] },
    endpoints: {
      /** Creates a tenant. For managers. */
      createTenant: createTenantEndpoint,
      /** Returns a tenant, by `id` or by `slug`. For managers. */
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
      /** Returns the tenant's name and sign-in methods. Public. */
      getTenantSignInMethods: signInMethodsEndpoint,
      /** The callback that OAuth providers redirect to. */
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
    // The limit that better-auth has on the paths of its own sign-in and sign-up.
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
