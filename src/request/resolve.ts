import type { HookEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import { DEFAULT_SLUG_HEADER, DEFAULT_TENANT_HEADER, isManagement, isOwnPath } from "../constants";
import { tenantError } from "../errors";
import { type BeforeHook, silentHook } from "../framework";
import { requireVisitor } from "../isolation/cross-tenant";
import { tenantAuthOptions } from "../isolation/isolation";
import type { ResolvedOptions, ResolveTenant } from "../options";
import { findTenant, hasNumericIds, isText, lookUpTenant, tenantIdOfSlug } from "../tenants/cache";
import { type Endpoint, tenantRouteOf } from "./endpoint";
import { asHostResolver } from "./resolvers";
import { around, enteredBy, getTenantId, runAsResolver } from "./scope";

/**
 * R1 for a request: the resolver, else the body's `tenantId`, else the query's, else the header. The
 * first one that answers wins.
 */
export async function requestedTenantId(ctx: HookEndpointContext): Promise<string | undefined> {
  const resolved = await resolvedTenantId(ctx);
  // A mistake in a claim is an error, whatever the resolver says.
  const claimed = resolved === false ? undefined : await claimedTenantId(ctx);
  const named = resolved || claimed;
  // A call from inside a tenant's request, or from `runInTenant`, need not say it again.
  return named || (enteredBy.get() === "credential" ? undefined : (getTenantId() ?? undefined));
}

/**
 * Warns once if a request names its tenant in a header that nothing reads. It runs on the platform,
 * where a sign-up would create a user.
 */
export function warnOfUnreadHeaders(options: ResolvedOptions): BeforeHook {
  const unread = unreadHeaders(options);
  const isByHost = asHostResolver(options.resolveTenantId);
  return {
    // With a host resolver, headers still name the target of management.
    matcher: ({ path }) =>
      unread.size > 0 && getTenantId() === null && !(isByHost && isManagement(path)),

    handler: silentHook(({ headers, request, context }) => {
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

/** Headers that a client may name a tenant in, and what to do if nothing reads them. */
function unreadHeaders({ resolveTenantId, bySlug, tenantHeader }: ResolvedOptions) {
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
  // A function of the application's own may read any header.
  return resolveTenantId ? new Map<string, string>() : unread;
}

/** R1 without the resolver: what the request itself claims. */
export async function claimedTenantId(ctx: HookEndpointContext): Promise<string | undefined> {
  const { body, query, header } = claimedNames(ctx);
  return body ?? query ?? header ?? claimedBySlug(ctx);
}

/** The last of the claims, because it has to be looked up: see `bySlug()`. */
export const claimedBySlug = async (ctx: HookEndpointContext) =>
  (await tenantOfAnswer(ctx, await tenantAuthOptions(ctx.context).bySlug?.(ctx))) || undefined;

/**
 * The body names a tenant on this plugin's endpoints only: elsewhere `tenantId` is not ours. A page
 * that adds its slug to the headers of a caller must not get the caller's id instead.
 */
export function claimedNames(ctx: HookEndpointContext) {
  const { bySlug, tenantHeader } = tenantAuthOptions(ctx.context);
  const headers = ctx.headers ?? ctx.request?.headers;
  const isOurs = isOwnPath(ctx.path) || tenantRouteOf(ctx) !== undefined;
  return {
    body: isOurs ? tenantIdIn("body", ctx.body) : undefined,
    query: tenantIdIn("query", ctx.query),
    header: (!bySlug?.(ctx) && headers?.get(tenantHeader)) || undefined,
  };
}

/**
 * An empty string is no answer; anything else that is no string is a mistake, and does not fall
 * through to the next place.
 */
function tenantIdIn(place: string, input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !Object.hasOwn(input, "tenantId")) return;
  const { tenantId } = input as { tenantId: unknown };
  if (tenantId === undefined || typeof tenantId === "string") return tenantId || undefined;
  const message = `[${place}.tenantId] Invalid input: expected one string`;
  throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
}

/** What a resolver answered, in one form: a tenant's id, false for the platform, or nothing. */
type Resolved = string | false | undefined;

const answers = new WeakMap<object, Promise<Resolved>>();

/** What the resolver says of a call. It may be slow: hook and endpoint of one call share its answer. */
export function resolvedTenantId(ctx: HookEndpointContext): Promise<Resolved> | undefined {
  const { resolveTenantId } = tenantAuthOptions(ctx.context);
  if (!resolveTenantId) return undefined;
  const known = answers.get(ctx.context);
  if (known) return known;
  const answer = ask(ctx, resolveTenantId);
  answers.set(ctx.context, answer);
  return answer;
}

async function ask(ctx: HookEndpointContext, resolve: ResolveTenant): Promise<Resolved> {
  if (around()?.resolving) return undefined;
  const asked = { ...ctx, path: tenantRouteOf(ctx)?.path ?? ctx.path };
  return tenantOfAnswer(ctx, await runAsResolver(() => resolve(asked)));
}

/** What is not understood is a mistake in the resolver: no request may speak in its place. */
export async function tenantOfAnswer(ctx: HookEndpointContext, answer: unknown): Promise<Resolved> {
  if (answer === undefined || answer === null || answer === "") return undefined;
  if (answer === false) return answer;
  if (typeof answer === "string") {
    // Not every scope is looked up before it is entered.
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

/** R2: the tenant has to be named, and has to exist. */
export async function requireTenant(ctx: HookEndpointContext, tenantId: string | undefined) {
  if (tenantId === undefined) throw tenantError("TENANT_ID_REQUIRED");
  const tenant = await findTenant(ctx.context, "id", tenantId);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  return tenant;
}

/** The same for what is about to run in the tenant, which has to be active. */
export async function requireTenantId(ctx: HookEndpointContext, tenantId: string | undefined) {
  if (tenantId === undefined) throw tenantError("TENANT_ID_REQUIRED");
  const tenant = await lookUpTenant(ctx.context, tenantId);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  if (tenant.status !== "active") requireVisitor(ctx as Endpoint);
  return tenantId;
}
