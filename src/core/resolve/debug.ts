import type { HookEndpointContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { CALLBACK_PATH } from "../constants";
import { isOutermost, tenantRouteOf } from "../endpoint";
import { type BeforeHook, type Hooks, plainHook } from "../hooks";
import { isManagement } from "../management-calls";
import { getTenantId, surroundingScope } from "../request";
import { namedTenantId, resolvedTenantId } from "./resolve";

/*
 * At log level "debug", one line for each request that gets a scope or is refused by
 * `enterNamedTenant`: the tenant that it runs in, and what resolved it.
 */

export function withDebugLog(hooks: Hooks): Hooks {
  const [enter, ...others] = hooks.resolve as [BeforeHook, ...BeforeHook[]];
  return {
    ...hooks,
    resolve: [{ ...enter, handler: tracingRefusal(enter.handler) }, ...others],
    entered: [...hooks.entered, { matcher: isOutermost, handler: plainHook(writeLine) }],
  };
}

function tracingRefusal(handler: BeforeHook["handler"]) {
  const run = handler as (ctx: HookEndpointContext) => Promise<{ response: unknown }>;
  return plainHook(async (ctx) => {
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
  // A caller may have chosen the id: it is escaped and cut off, so that it cannot forge log lines.
  const place =
    tenantId === null ? "on the platform" : `in tenant ${JSON.stringify(tenantId.slice(0, 64))}`;
  ctx.context.logger.debug(`${titleOf(ctx)} runs ${place}${by ? `, resolved by ${by}` : ""}`);
}

async function resolvedBy(ctx: HookEndpointContext, tenantId: string | null) {
  if (surroundingScope()) return "runInTenant()";
  const route = tenantRouteOf(ctx);
  if (route?.extracted) return "its credential";
  if (isManagement(ctx) || ctx.path === CALLBACK_PATH) return undefined;
  const resolved = await resolvedTenantId(ctx);
  if (resolved === (tenantId ?? false)) return "resolveTenantId";
  if (tenantId === null) return undefined;
  const isClaimed = route || (await namedTenantId(ctx));
  return isClaimed ? "its body, query or header" : "its credential";
}

const titleOf = (ctx: HookEndpointContext) =>
  `${ctx.request?.method ?? "auth.api"} ${tenantRouteOf(ctx)?.path ?? ctx.path}`;
