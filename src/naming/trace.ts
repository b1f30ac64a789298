import type { HookEndpointContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { CALLBACK_PATH, isManagement, isOwnPath } from "../constants";
import { type AfterHook, type BeforeHook, silentHook } from "../framework";
import type { ResolvedOptions } from "../options";
import { cameTo, isOutermost, standInOf } from "../scope/endpoint";
import { currentScope, notes } from "../scope/scope";
import { quoted } from "./explain";
import { nameTenant, resolvedTenantId } from "./request";

/*
 * At log level "debug", one line for each request: the tenant that it runs in, and what named it.
 * At every other level none of this is loaded.
 */

/** The plugin's hooks, which write that line as soon as the tenant is known. */
export function traced<Hooks extends { before: BeforeHook[]; afterPlugins: AfterHook[] }>(
  hooks: Hooks,
  options: ResolvedOptions,
): Hooks {
  const [enter, ...others] = hooks.before as [BeforeHook, ...BeforeHook[]];
  return {
    ...hooks,
    before: [
      { ...enter, handler: watchingNames(enter.handler, options) },
      ...others,
      { matcher: isKnown, handler: writeLine },
    ],
    afterPlugins: [...hooks.afterPlugins, { matcher: () => true, handler: writeLine }],
  };
}

/** Nothing more can name a tenant: one is known, or there is no credential that could. */
function isKnown({ headers }: HookEndpointContext): boolean {
  if (currentScope().kind === "settled") return true;
  return !["cookie", "authorization", "x-api-key"].some((name) => headers?.has(name));
}

function watchingNames(handler: BeforeHook["handler"], options: ResolvedOptions) {
  const run = handler as (ctx: HookEndpointContext) => Promise<{ response: unknown }>;
  return silentHook(async (ctx) => {
    const isInside = currentScope().kind === "settled";
    const claimed = claimIn(ctx, options);
    try {
      const { response } = await run(ctx);
      if (isOutermost(ctx)) notes().namedBy = await namedBy(ctx, options, isInside, claimed);
      return response;
    } catch (error) {
      const code = isAPIError(error) ? error.body?.code : (error as Error | undefined)?.name;
      const said = claimed ? `named by ${claimed}` : "nothing in the request names a tenant";
      if (isOutermost(ctx))
        ctx.context.logger.debug(`${titleOf(ctx)} is refused, ${code}: ${said}`);
      throw error;
    }
  });
}

/** What the request itself says, in the order of R1: the place, and the name. */
function claimIn(ctx: HookEndpointContext, { tenantHeader, bySlug }: ResolvedOptions) {
  const headers = ctx.headers ?? ctx.request?.headers;
  const bodyCounts = isOwnPath(ctx.path) || standInOf(ctx) !== undefined;
  const places = {
    "the body": bodyCounts ? idIn(ctx.body) : undefined,
    "the query": idIn(ctx.query),
    [`the header ${tenantHeader}`]: headers?.get(tenantHeader),
    [`the header ${bySlug?.slugHeader}`]: bySlug && headers?.get(bySlug.slugHeader),
  };
  const [place, name] = Object.entries(places).find(([, value]) => value) ?? [];
  return place && name ? `${place} (${quoted(name)})` : undefined;
}

/** What is no name is refused where it is looked at in earnest. */
function idIn(input: unknown): string | undefined {
  try {
    return nameTenant({ query: input });
  } catch {
    return undefined;
  }
}

async function namedBy(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  isInside: boolean,
  claimed: string | undefined,
): Promise<string | undefined> {
  if (isInside) return "runInTenant()";
  if (standInOf(ctx)?.callback) return "the state of the OAuth flow";
  if (ctx.path === CALLBACK_PATH) return "the path, which is the platform's own";
  // Management names a target. The caller stays in its own scope.
  if (isManagement(ctx.path)) return undefined;
  const resolved = await resolvedTenantId(ctx, options);
  return resolved === undefined ? claimed : "resolveTenantId";
}

const writeLine = silentHook(async (ctx) => {
  const note = notes();
  if (note.traced || !isOutermost(ctx)) return;
  note.traced = true;
  const scope = currentScope();
  const tenantId = scope.kind === "settled" ? scope.tenantId : null;
  const place = tenantId === null ? "on the platform" : `in tenant ${quoted(tenantId)}`;
  const token = note.openedToken && "the token of a link";
  const session = tenantId === null ? undefined : "its session";
  const by = token ?? note.namedBy ?? session;
  ctx.context.logger.debug(
    `${titleOf(ctx)} runs ${place}, ${by ? `named by ${by}` : "nothing names a tenant"}`,
  );
});

const titleOf = (ctx: HookEndpointContext) =>
  `${ctx.request?.method ?? "auth.api"} ${cameTo(ctx) ?? ctx.path}`;
