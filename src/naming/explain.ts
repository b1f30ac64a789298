import type { AuthContext, HookEndpointContext } from "better-auth";
import { BetterAuthError } from "better-auth";
import { PLUGIN_ID } from "../constants";
import { tenantError } from "../errors";
import { resolveOptions } from "../options";
import { cameTo } from "../scope/endpoint";
import { findTenantById, findTenantBySlug, hasNumericIds } from "../tenants/find";

/*
 * What is wrong with the name of a tenant, and what the operator can do about it. Loaded with the
 * first mistake.
 */

/** The error for an answer of the application's resolver that says nothing about a tenant. */
export function notUnderstood({ context, path }: HookEndpointContext, answer: unknown) {
  const number = hasNumericIds(context) ? " or a whole number" : "";
  const message = `tenantAuth(): resolveTenantId answered ${describe(answer)} for ${path}. It may answer the id of a tenant (a string${number}), { slug }, false for no tenant, or nothing.`;
  context.logger.error(message);
  return new BetterAuthError(message);
}

/** A value in words, for messages about what was not understood. */
function describe(value: unknown): string {
  if (typeof value === "number") return String(value);
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}

/** What a caller has sent, on one line and not too long. */
export const quoted = (value: string) => JSON.stringify(value.slice(0, 64));

/** Most ids do not look like one: nobody pays for a second look then. */
const LIKE_A_SLUG = /^[a-z0-9-]{2,63}$/;

/** 404 for an id. The likeliest mistake is a slug in its place. */
export async function noSuchId(ctx: HookEndpointContext, id: string) {
  const tenant = LIKE_A_SLUG.test(id) ? await findTenantBySlug(ctx.context, id) : null;
  if (tenant) {
    ctx.context.logger.warn(
      `${pathOf(ctx)}: no tenant has the id ${quoted(id)}, but one has it as its slug (its id is ${tenant.id}). To name tenants by slug, set resolveTenantId: bySlug() in tenantAuth() and tenantSlug in tenantAuthClient().`,
    );
  }
  return tenantError("TENANT_NOT_FOUND");
}

/** 404 for a slug, or for the id that was taken for one. */
export async function noSuchSlug(ctx: HookEndpointContext, slug: string) {
  const { bySlug } = optionsOf(ctx.context);
  // As it was sent: ids have letters of both cases.
  const sent = bySlug && (ctx.headers ?? ctx.request?.headers)?.get(bySlug.slugHeader);
  const id = sent?.toLowerCase() === slug ? sent : slug;
  const tenant = await findTenantById(ctx.context, id);
  if (tenant) {
    ctx.context.logger.warn(
      `${pathOf(ctx)}: no tenant has the slug ${quoted(id)}, but one has it as its id (its slug is ${tenant.slug}). Set tenantId in tenantAuthClient(), not tenantSlug.`,
    );
  }
  return tenantError("TENANT_NOT_FOUND");
}

/** 400 where nothing names a tenant. Perhaps the client sends one that the server does not read. */
export async function notNamed(ctx: HookEndpointContext) {
  const { tenantHeader, bySlug } = optionsOf(ctx.context);
  const found = await findUnreadHeader(ctx, [tenantHeader, bySlug?.slugHeader]);
  if (found?.has === "id") {
    ctx.context.logger.warn(
      `${pathOf(ctx)}: no tenant is named. The header ${quoted(found.header)} has the id of a tenant in it, but the server reads ${quoted(tenantHeader)}: set the same tenantHeader in tenantAuth() and in tenantAuthClient().`,
    );
  }
  if (found?.has === "slug") {
    const given = found.header === "x-tenant-slug" ? "" : `{ header: ${quoted(found.header)} }`;
    ctx.context.logger.warn(
      `${pathOf(ctx)}: no tenant is named. The header ${quoted(found.header)} has the slug of a tenant in it, which the server does not read: set resolveTenantId: bySlug(${given}) in tenantAuth().`,
    );
  }
  return tenantError("TENANT_ID_REQUIRED");
}

/** Callers choose their headers, and each is looked up: a few are enough for a mistake. */
const LOOKED_AT = 3;
const NEVER_A_TENANT = /^x-(forwarded|real|request|requested|amz|amzn|vercel|correlation)\b/;

/** A header of the application's own that has a tenant in it, and that nobody reads. */
async function findUnreadHeader(
  { headers, request, context }: HookEndpointContext,
  read: (string | undefined)[],
) {
  const known = read.map((name) => name?.toLowerCase());
  const candidates = [...(headers ?? request?.headers ?? [])].filter(
    ([name, value]) =>
      name.startsWith("x-") && value && !NEVER_A_TENANT.test(name) && !known.includes(name),
  );
  for (const [header, value] of candidates.slice(0, LOOKED_AT)) {
    if (await findTenantById(context, value)) return { header, has: "id" };
    if (await findTenantBySlug(context, value)) return { header, has: "slug" };
  }
  return undefined;
}

/** The options of the plugin, as it was made. */
const optionsOf = ({ options }: AuthContext) =>
  resolveOptions(options.plugins?.find(({ id }) => id === PLUGIN_ID)?.options);

const pathOf = (ctx: HookEndpointContext) => cameTo(ctx) ?? ctx.path;
