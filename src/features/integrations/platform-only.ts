import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import type { Guard } from "../../core/database";
import { isOutermost } from "../../core/endpoint";
import type { Claim } from "../../core/extension";
import type { BeforeHook } from "../../core/hooks";
import { enteredScope, getTenantId } from "../../core/request";
import { prefixesIn } from "../../core/session-tokens";
import { integrationsError } from "./errors";

/*
 * These plugins work on the platform only. oauthProvider() tells other applications who a user is,
 * but its tokens carry no tenant, and a tenant's administrator decides which emails are verified.
 * oAuthProxy() completes a sign-in that another deployment proved with the platform's client.
 * oauthPopup() and electron() hand the session to another page or app, without its tenant.
 */

const platformOnly = (id: string) =>
  integrationsError(
    "PLATFORM_ONLY",
    `${id} works on the platform only. Leave the tenant out of this request.`,
  );

/** Plugins that ignore a tenant's session in the browser, which is invalid on the platform (R5). */
const IGNORES_TENANT_SESSIONS = ["oauth-provider", "oauth-proxy"];

/** Matches the endpoints of a plugin, and sign-ins that continue a flow of oauthProvider(). */
function isOf({ id, endpoints }: BetterAuthPlugin) {
  const paths = new Set(Object.values(endpoints ?? {}).map(({ path }) => path));
  return ({ path, body }: Pick<HookEndpointContext, "path" | "body">) =>
    paths.has(path ?? "") || (id === "oauth-provider" && body?.oauth_query !== undefined);
}

/**
 * Claims the endpoints of a plugin for the platform, unless the request names a tenant. Refuses
 * sessions of tenants if that plugin would hand them on.
 */
export function claimOfPlatform(plugin: BetterAuthPlugin) {
  const isAbout = isOf(plugin);
  return (ctx: HookEndpointContext): Claim | undefined => {
    if (!isAbout(ctx) || !isOutermost(ctx) || enteredScope()) return undefined;
    const isTenants = prefixesIn(ctx).some((tenantId) => tenantId !== null);
    if (isTenants && !IGNORES_TENANT_SESSIONS.includes(plugin.id)) throw platformOnly(plugin.id);
    return { tenantId: null };
  };
}

/** Refuses the endpoints of a plugin in a tenant. */
export const stayOnPlatform = (plugin: BetterAuthPlugin): BeforeHook => ({
  matcher: isOf(plugin),

  handler: createAuthMiddleware(async () => {
    if (getTenantId() !== null) throw platformOnly(plugin.id);
  }),
});

function emptyResult(method: string) {
  if (method === "findMany") return [];
  return ["count", "updateMany", "deleteMany"].includes(method) ? 0 : null;
}

/** Makes the tables of a plugin empty in a tenant, and refuses new rows there. */
export function emptyInTenants({ id, schema }: BetterAuthPlugin): Guard {
  const models = Object.entries(schema ?? {}).flatMap(([model, { modelName = model }]) => [
    model,
    `${model}s`,
    modelName,
    `${modelName}s`,
  ]);
  return {
    models,
    async run({ method, call }, next) {
      if (getTenantId() === null) return next(call);
      if (method === "create") throw platformOnly(id);
      return emptyResult(method);
    },
  };
}

type Handler = ((ctx: HookEndpointContext) => Promise<unknown>) & { [LEAVES_TENANTS]?: true };

const LEAVES_TENANTS = Symbol.for("better-auth-tenant:leaves-tenants-alone");

/**
 * Keeps a plugin's hooks out of tenants. oAuthProxy() would send the flow through another
 * deployment; oauthPopup() and electron() would hand the tenant's session to the page or app that a
 * cookie names. Changes the hooks in place, once for all instances that share the plugin.
 */
export function leaveTenantsAlone({ hooks }: BetterAuthPlugin): void {
  for (const hook of [...(hooks?.before ?? []), ...(hooks?.after ?? [])]) {
    const run = hook.handler as Handler;
    if (run[LEAVES_TENANTS]) continue;
    const onPlatform = async (ctx: HookEndpointContext) => (getTenantId() ? {} : run(ctx));
    Object.assign(hook, { handler: Object.assign(onPlatform, { [LEAVES_TENANTS]: true }) });
  }
}
