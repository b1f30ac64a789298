import type { HookEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import { APIError } from "better-auth/api";
import { isOwnPath } from "../constants";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";
import { lazy } from "../framework";
import type { ResolvedOptions } from "../options";
import { adminTarget, cameTo, type Endpoint } from "../scope/endpoint";
import { getTenantId, notes, runAsResolver } from "../scope/scope";
import { findTenantById, findTenantBySlug, recentlySeen, type Tenant } from "../tenants/find";

/** The places a request can name its tenant in. */
export interface TenantNames {
  /** What the `resolveTenantId` option answered. */
  resolved?: string | undefined;
  body?: unknown;
  query?: unknown;
  header?: string | null | undefined;
}

/**
 * R1: the resolver, else the body's `tenantId`, else the query's, else the header. The first one
 * that answers wins. An empty string is no answer; anything else that is no string is a mistake,
 * and does not fall through to the next.
 */
export function nameTenant({ resolved, body, query, header }: TenantNames): string | undefined {
  return [resolved, tenantIdIn("body", body), tenantIdIn("query", query), header].find(
    (name): name is string => typeof name === "string" && name !== "",
  );
}

function tenantIdIn(place: string, input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !Object.hasOwn(input, "tenantId")) return;
  const { tenantId } = input as { tenantId: unknown };
  if (tenantId === undefined || typeof tenantId === "string") return tenantId;
  const message = `[${place}.tenantId] Invalid input: expected one string`;
  throw new APIError("BAD_REQUEST", { code: "VALIDATION_ERROR", message });
}

/** R1 for a request: what the resolver says, else what the request says. */
export async function namedTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  bodyCounts = isOwnPath(ctx.path),
): Promise<string | undefined> {
  const resolved = await resolvedTenantId(ctx, options);
  const claimed = claimedNames(ctx, options, bodyCounts);
  const named = resolved === false ? undefined : nameTenant({ resolved, ...claimed });
  // A call from inside a tenant's request, or from `runInTenant`, need not say it again.
  return named ?? getTenantId() ?? undefined;
}

/**
 * Whether a request says anything about a tenant, be it right or wrong. Without a resolver, a
 * request that does not is not asked any further: every place of `claimedNames` has to be in here.
 */
export function claimsTenant(ctx: HookEndpointContext, { tenantHeader }: ResolvedOptions): boolean {
  const { query } = ctx;
  const headers = ctx.headers ?? ctx.request?.headers;
  return Boolean(headers?.has(tenantHeader) || (query && Object.hasOwn(query, "tenantId")));
}

/** R1 without the resolver: what the request itself claims. */
export function claimedTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  bodyCounts = isOwnPath(ctx.path),
): string | undefined {
  return nameTenant(claimedNames(ctx, options, bodyCounts));
}

/** The body names a tenant on this plugin's endpoints only: elsewhere `tenantId` is not ours. */
export function claimedNames(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  bodyCounts: boolean,
) {
  return {
    body: bodyCounts ? ctx.body : undefined,
    query: ctx.query,
    header: (ctx.headers ?? ctx.request?.headers)?.get(options.tenantHeader),
  };
}

/** What a resolver answered, in one form: a tenant's id, false for the platform, or nothing. */
type Resolved = string | false | undefined;

// The application's resolver may be slow. The hook and the endpoint of one call share its answer,
// and the tenant that was looked up for it.
const answers = new WeakMap<object, Promise<Resolved>>();
const found = new WeakMap<object, Tenant>();

/** What the resolver says of a call: it is asked once. False is the platform, whatever else is said. */
export function resolvedTenantId(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
): Promise<Resolved> {
  const known = answers.get(ctx.context);
  if (known) return known;
  const answer = ask(ctx, options);
  answers.set(ctx.context, answer);
  return answer;
}

async function ask(ctx: HookEndpointContext, options: ResolvedOptions): Promise<Resolved> {
  const { resolveTenantId } = options;
  if (!resolveTenantId || notes().resolving) return undefined;
  const asked = { ...ctx, path: cameTo(ctx) ?? ctx.path };
  const tenant = await tenantOfAnswer(ctx, await runAsResolver(() => resolveTenantId(asked)));
  if (typeof tenant !== "object") return tenant;
  found.set(ctx.context, tenant);
  return tenant.id;
}

/** What is not understood is a mistake in the resolver: no request may speak in its place. */
export async function tenantOfAnswer(
  ctx: HookEndpointContext,
  answer: unknown,
): Promise<Tenant | Resolved> {
  if (answer === undefined || answer === null || answer === "") return undefined;
  if (answer === false || typeof answer === "string") return answer;
  if (Number.isSafeInteger(answer) && hasNumericIds(ctx)) return String(answer);
  const slug = typeof answer === "object" && (answer as { slug?: unknown }).slug;
  if (typeof slug !== "string" || slug === "") {
    throw notUnderstood(ctx, answer);
  }
  const tenant = await findTenantBySlug(ctx.context, slug);
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return tenant;
}

const hasNumericIds = ({ context }: HookEndpointContext) =>
  context.options.advanced?.database?.generateId === "serial";

/** R2: the tenant has to be named, and has to exist. */
export async function requireTenant(
  ctx: HookEndpointContext,
  tenantId: string | undefined,
): Promise<Tenant> {
  const id = assertNamed(tenantId);
  const tenant = foundBefore(ctx, id) ?? (await findTenantById(ctx.context, id));
  if (!tenant) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  return tenant;
}

/**
 * The same for whatever is about to run in the tenant, which has to be active; and for what was made
 * for this very tenant.
 */
export async function requireTenantId(
  ctx: HookEndpointContext,
  tenantId: string | undefined,
  madeSince?: string,
): Promise<string> {
  const id = assertNamed(tenantId);
  const status = await statusOf(ctx, id, madeSince);
  if (!status) throw APIError.from("NOT_FOUND", TENANT_AUTH_ERROR_CODES.TENANT_NOT_FOUND);
  if (status !== "active" && !(await mayVisit(ctx))) {
    throw APIError.from("FORBIDDEN", TENANT_AUTH_ERROR_CODES.TENANT_SUSPENDED);
  }
  return id;
}

/** Undefined where there is no such tenant; else the request is about this one from here on. */
export async function statusOf(ctx: HookEndpointContext, id: string, madeSince?: string) {
  const tenant = await recentlySeen(ctx.context, id);
  if (!tenant || tenant.since !== (madeSince ?? tenant.since)) return undefined;
  notes().since ??= tenant.since;
  return tenant.status;
}

/** Operators go on managing the people of a suspended tenant. */
const mayVisit = async (ctx: HookEndpointContext) =>
  adminTarget(ctx as Endpoint) !== undefined && (await reach()).mayVisit(ctx as Endpoint);

const reach = lazy(() => import("../border/reach"));

function assertNamed(tenantId: string | undefined): string {
  if (tenantId !== undefined) return tenantId;
  throw APIError.from("BAD_REQUEST", TENANT_AUTH_ERROR_CODES.TENANT_ID_REQUIRED);
}

function foundBefore({ context }: HookEndpointContext, id: string): Tenant | undefined {
  const tenant = found.get(context);
  return tenant?.id === id ? tenant : undefined;
}

/** The error for an answer of the application's resolver that says nothing about a tenant. */
function notUnderstood({ context, path }: HookEndpointContext, answer: unknown) {
  const message = `tenantAuth(): resolveTenantId answered ${describe(answer)} for ${path}. It may answer the id of a tenant (a string${
    context.options.advanced?.database?.generateId === "serial" ? " or a whole number" : ""
  }), { slug }, false for no tenant, or nothing.`;
  context.logger.error(message);
  return new BetterAuthError(message);
}

/** A value in words, for messages about what was not understood. */
function describe(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value.slice(0, 64));
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}
