import type { BetterAuthPlugin, HookEndpointContext } from "better-auth";
import { createAuthMiddleware } from "better-auth/api";
import { tenantError } from "../errors";
import type { BeforeHook } from "../framework";
import type { Guard } from "../isolation/isolation";
import { effectiveScope, isOutermost } from "../request/endpoint";
import { prefixesIn } from "../request/prefix";
import { enter, enteredScope, scopeOf } from "../request/scope";

/*
 * Plugins that work on the platform only. oauthProvider() tells other applications who a user is,
 * but its tokens carry no tenant, and a tenant's administrator decides which emails are verified
 * there. oAuthProxy() completes a sign-in that another deployment proved with the platform's client.
 * oauthPopup() and electron() hand the session to another page or app, without its tenant.
 */

const platformOnly = (id: string) =>
  tenantError(
    "PLATFORM_ONLY",
    `${id} works on the platform only. Leave the tenant out of this request.`,
  );

/** Users come to these in browsers with a tenant's session, which is none on the platform (R5). */
const IGNORES_TENANT_SESSIONS = ["oauth-provider", "oauth-proxy"];

/**
 * Runs the plugin's endpoints on the platform and refuses them in a tenant, together with a sign-in
 * that continues an authorization of oauthProvider().
 */
export function stayOnPlatform({ id, endpoints }: BetterAuthPlugin): BeforeHook {
  const paths = new Set(Object.values(endpoints ?? {}).map(({ path }) => path));
  return {
    matcher: ({ path, body }) =>
      paths.has(path ?? "") || (id === "oauth-provider" && body?.oauth_query !== undefined),

    handler: createAuthMiddleware(async (ctx) => {
      if (isOutermost(ctx) && !enteredScope()) {
        const isTenants = prefixesIn(ctx).some((tenantId) => tenantId !== null);
        if (isTenants && !IGNORES_TENANT_SESSIONS.includes(id)) throw platformOnly(id);
        return void enter(scopeOf(null));
      }
      if (effectiveScope().tenantId !== null) throw platformOnly(id);
    }),
  };
}

/** What an adapter returns for an empty table. */
function emptyResult(method: string) {
  if (method === "findMany") return [];
  return ["count", "updateMany", "deleteMany"].includes(method) ? 0 : null;
}

/** In a tenant, the tables of such a plugin are empty and stay empty. */
export function emptyInTenants({ id, schema }: BetterAuthPlugin): Guard {
  const models = Object.entries(schema ?? {}).flatMap(([model, { modelName = model }]) => [
    model,
    `${model}s`,
    modelName,
    `${modelName}s`,
  ]);
  return ({ method, call }) => {
    if (!models.includes(call.model) || effectiveScope().tenantId === null) return undefined;
    if (method === "create") return Promise.reject(platformOnly(id));
    return Promise.resolve(emptyResult(method));
  };
}

type Handler = ((ctx: HookEndpointContext) => Promise<unknown>) & { [LEAVES_TENANTS]?: true };

const LEAVES_TENANTS = Symbol.for("better-auth-tenant:leaves-tenants-alone");

/**
 * Keeps a plugin's hooks out of tenants. oAuthProxy() would send the flow through another
 * deployment; oauthPopup() and electron() would hand the tenant's session to the page or app that a
 * cookie names. Changed in place, once for all instances that share the plugin.
 */
export function leaveTenantsAlone({ hooks }: BetterAuthPlugin): void {
  for (const hook of [...(hooks?.before ?? []), ...(hooks?.after ?? [])]) {
    const run = hook.handler as Handler;
    if (run[LEAVES_TENANTS]) continue;
    const onPlatform = async (ctx: HookEndpointContext) =>
      effectiveScope().tenantId ? {} : run(ctx);
    Object.assign(hook, { handler: Object.assign(onPlatform, { [LEAVES_TENANTS]: true }) });
  }
}
