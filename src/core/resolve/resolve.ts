import type { HookEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import { DEFAULT_SLUG_HEADER, DEFAULT_TENANT_HEADER, isTenantRoute } from "../constants";
import { tenantRouteOf } from "../endpoint";
import { tenantError } from "../errors";
import { type BeforeHook, plainHook } from "../hooks";
import { coreOptions } from "../isolation";
import { isManagement } from "../management-calls";
import type { ResolvedCoreOptions, ResolveTenant } from "../options";
import { currentRequest, getTenantId, isResolving, runAsResolver } from "../request";
import { hasNumericIds, tenantIdOfSlug } from "../tenants/tenants";
import { isText } from "../utils";
import { asHostResolver } from "./resolvers";

/**
 * R1: returns the tenant of a request: from the resolver, else from `tenantId` in the body or the
 * query, else from a header, else the tenant that the calling code runs in.
 */
export async function requestedTenantId(ctx: HookEndpointContext): Promise<string | undefined> {
  const resolved = await resolvedTenantId(ctx);
  // An invalid name is an error, even if the resolver has found the tenant.
  const claimed = resolved === false ? undefined : await namedTenantId(ctx);
  const named = resolved || claimed;
  // A call from inside a tenant's request, or from `runInTenant`, need not name the tenant again.
  return (
    named ||
    (currentRequest().enteredBy === "credential" ? undefined : (getTenantId() ?? undefined))
  );
}

/**
 * Warns once if a request names its tenant in a header that nothing reads. This request runs on the
 * platform, where a sign-up would create a user of the platform.
 */
export function warnOfUnreadHeaders(options: ResolvedCoreOptions): BeforeHook {
  const unread = unreadHeaders(options);
  const isByHost = asHostResolver(options.resolveTenantId);
  return {
    // With a host resolver, headers still name the target of management calls.
    matcher: (ctx) => unread.size > 0 && getTenantId() === null && !(isByHost && isManagement(ctx)),

    handler: plainHook(({ headers, request, context }) => {
      const sent = headers ?? request?.headers;
      const name = [...unread.keys()].find((name) => sent?.has(name));
      if (!name) return;
      context.logger.warn(
        `tenantAuth(): a request names its tenant in the header ${name}, which nothing reads. It runs on the platform. ${unread.get(name)}`,
      );
      unread.clear();
    }),
  };
}

/**
 * Returns headers in which clients name a tenant, but which these options do not read, with advice
 * for each header.
 */
function unreadHeaders({ resolveTenantId, bySlug, tenantHeader }: ResolvedCoreOptions) {
  const goesByHost = "resolveTenantId goes by the host: send the request to the tenant's own host.";
  if (asHostResolver(resolveTenantId)) {
    return new Map([
      [DEFAULT_SLUG_HEADER, goesByHost],
      [tenantHeader, goesByHost],
    ]);
  }
  const unread = new Map([
    [DEFAULT_SLUG_HEADER, "Add resolveTenantId: bySlug() to tenantAuth()."],
    [DEFAULT_TENANT_HEADER, `The client has to send ${tenantHeader}: see its option tenantHeader.`],
  ]);
  unread.delete(tenantHeader.toLowerCase());
  unread.delete(bySlug?.slugHeader.toLowerCase() ?? "");
  // The application's resolver may read any header.
  return resolveTenantId ? new Map<string, string>() : unread;
}

/** R1 without the resolver: returns the tenant that the request itself names. */
export async function namedTenantId(ctx: HookEndpointContext): Promise<string | undefined> {
  const { body, query, header } = namesInRequest(ctx);
  return body ?? query ?? header ?? namedBySlug(ctx);
}

/**
 * Returns the tenant that the request names by slug. Asked last, because a slug must be looked up.
 */
export const namedBySlug = async (ctx: HookEndpointContext) =>
  (await tenantOfAnswer(ctx, await coreOptions(ctx.context).bySlug?.(ctx))) || undefined;

/**
 * Returns the tenants that a request names by id. The body counts only on this plugin's endpoints:
 * elsewhere, its `tenantId` is not ours. With `bySlug()`, a slug header overrides the id header: a
 * page that adds its slug must not get the tenant of the caller's id.
 */
export function namesInRequest(ctx: HookEndpointContext) {
  const { bySlug, tenantHeader } = coreOptions(ctx.context);
  const headers = ctx.headers ?? ctx.request?.headers;
  const isOurs = isManagement(ctx) || isTenantRoute(ctx.path) || tenantRouteOf(ctx) !== undefined;
  return {
    body: isOurs ? tenantIdIn("body", ctx.body) : undefined,
    query: tenantIdIn("query", ctx.query),
    header: (!bySlug?.(ctx) && headers?.get(tenantHeader)) || undefined,
  };
}

/**
 * Returns `tenantId` from the body or query. An empty string counts as absent. Refuses any other
 * value that is not a string with 400, instead of trying the next place.
 */
function tenantIdIn(place: string, input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !Object.hasOwn(input, "tenantId")) return;
  const { tenantId } = input as { tenantId: unknown };
  if (tenantId === undefined || typeof tenantId === "string") return tenantId || undefined;
  const message = `[${place}.tenantId] Invalid input: expected one string`;
  throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
}

/** The result of a resolver: a tenant's id, false for the platform, or undefined. */
type Resolved = string | false | undefined;

/**
 * Results by the context of the call. If a hook returns the call, as those of API keys do, the
 * endpoint gets a copy of the context, and the resolver is asked once more.
 *
 * Guarded by "all hooks of a call and its endpoint get one context, or its copy after a hook returned the call".
 */
const answers = new WeakMap<object, Promise<Resolved>>();

/**
 * Returns the resolver's result for a call. The resolver may be slow, so results are kept: see
 * `answers`.
 */
export async function resolvedTenantId(ctx: HookEndpointContext): Promise<Resolved> {
  const { resolveTenantId } = coreOptions(ctx.context);
  if (!resolveTenantId) return undefined;
  const answer = answers.get(ctx.context) ?? ask(ctx, resolveTenantId);
  answers.set(ctx.context, answer);
  return answer;
}

async function ask(ctx: HookEndpointContext, resolve: ResolveTenant): Promise<Resolved> {
  if (isResolving()) return undefined;
  const asked = { ...ctx, path: tenantRouteOf(ctx)?.path ?? ctx.path };
  return tenantOfAnswer(ctx, await runAsResolver(() => resolve(asked)));
}

/**
 * Turns the result of a resolver into a tenant's id. Throws for an unexpected value, which is a
 * mistake in the resolver. Otherwise the caller could choose the tenant instead.
 */
export async function tenantOfAnswer(ctx: HookEndpointContext, answer: unknown): Promise<Resolved> {
  if (answer === undefined || answer === null || answer === "") return undefined;
  if (answer === false) return answer;
  if (typeof answer === "string") {
    // Checked here, because some scopes are entered without a lookup of the tenant.
    if (!isText(answer)) throw tenantError("TENANT_NOT_FOUND");
    return answer;
  }
  if (Number.isSafeInteger(answer) && hasNumericIds(ctx.context)) return String(answer);
  const { slug } = answer as { slug?: unknown };
  if (typeof slug !== "string" || slug === "") {
    const message = `tenantAuth(): resolveTenantId returned a value of type ${typeof answer} for ${ctx.path}. Return the id of a tenant (a string), { slug }, false for the platform, or undefined.`;
    ctx.context.logger.error(message);
    throw new BetterAuthError(message);
  }
  const id = await tenantIdOfSlug(ctx.context, slug);
  if (!id) throw tenantError("TENANT_NOT_FOUND");
  return id;
}
