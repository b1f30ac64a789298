import type { HookEndpointContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { CALLBACK_PATH, isManagement } from "../constants";
import { type BeforeHook, type Hooks, silentHook } from "../framework";
import { isOutermost, tenantRouteOf } from "./endpoint";
import { claimedTenantId, resolvedTenantId } from "./resolve";
import { around, getTenantId } from "./scope";

/*
 * At log level "debug", one line per request: the tenant that it runs in, and what resolved it.
 */

export function withDebugLog(hooks: Hooks): Hooks {
  const [enter, ...others] = hooks.resolve as [BeforeHook, ...BeforeHook[]];
  return {
    ...hooks,
    resolve: [{ ...enter, handler: tracingRefusal(enter.handler) }, ...others],
    entered: [...hooks.entered, { matcher: isOutermost, handler: silentHook(writeLine) }],
  };
}

function tracingRefusal(handler: BeforeHook["handler"]) {
  const run = handler as (ctx: HookEndpointContext) => Promise<{ response: unknown }>;
  return silentHook(async (ctx) => {
    try {
      return (await run(ctx)).response;
    } catch (error) {
      const code = isAPIError(error) ? error.body?.code : (error as Error | undefined)?.name;
      if (isOutermost(ctx)) ctx.context.logger.debug(`${titleOf(ctx)} is refused: ${code}`);
      throw error;
    }
  });
}

async function writeLine(ctx: HookEndpointContext): Promise<void> {
  const tenantId = getTenantId();
  const by = await resolvedBy(ctx, tenantId);
  // A caller may have sent the id: on one line, and cut off.
  const place =
    tenantId === null ? "on the platform" : `in tenant ${JSON.stringify(tenantId.slice(0, 64))}`;
  ctx.context.logger.debug(`${titleOf(ctx)} runs ${place}${by ? `, resolved by ${by}` : ""}`);
}

async function resolvedBy(ctx: HookEndpointContext, tenantId: string | null) {
  if (around()?.scope) return "runInTenant()";
  const route = tenantRouteOf(ctx);
  if (route?.callback) return "its credential";
  if (isManagement(ctx.path) || ctx.path === CALLBACK_PATH) return undefined;
  const resolved = await resolvedTenantId(ctx);
  if (resolved === (tenantId ?? false)) return "resolveTenantId";
  if (tenantId === null) return undefined;
  const isClaimed = route || (await claimedTenantId(ctx));
  return isClaimed ? "its body, query or header" : "its credential";
}

const titleOf = (ctx: HookEndpointContext) =>
  `${ctx.request?.method ?? "auth.api"} ${tenantRouteOf(ctx)?.path ?? ctx.path}`;
