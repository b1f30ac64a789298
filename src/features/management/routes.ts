import type { GenericEndpointContext } from "better-auth";
import { createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { tenantError } from "../../core/errors";
import { get, jsonObject, post, tenantId, text } from "../../core/input";
import { runInScope, scopeOf } from "../../core/request";
import { isText } from "../../core/utils";
import { assertNotLockedOut, parsePolicy } from "../policy/input";
import { policySchema, seconds } from "../policy/schema";
import { countRows, deleteTenant, purgeTenants, type Rows } from "./delete";
import { managementError } from "./errors";
import { emit } from "./events";
import { listQuery, listSorts } from "./input";
import {
  assertTarget,
  notAllowed,
  ownTenantOf,
  requireManager,
  requireManagerSession,
  requireTarget,
} from "./management";
import { resetSecondFactor } from "./remove-credentials";
import { changeTenant, createTenant, endSessions, listTenants, scheduleDeletion } from "./store";
import { findTenant, requireTenant } from "./tenant";

/** Names go into the headers of emails, where a line break could add another header. */
const isName = (name: string) => name.trim() !== "" && !/\p{Cc}/u.test(name);

const tenantName = text(255)
  .refine(isName, "must not be blank, or contain control characters")
  .meta({ description: "Display name of the tenant" });

const tenantSlug = z
  .string()
  .meta({ description: "Unique, URL-friendly name: 2 to 63 lowercase letters, digits, hyphens" });

const METADATA_BYTES = 64 * 1024;
// Below the limit of MariaDB, which accepts at most 32 levels.
const METADATA_DEPTH = 30;

const metadata = jsonObject
  .refine((value) => isStorable(value, 1), {
    error: "is nested too deep, or contains characters that cannot be stored",
    abort: true,
  })
  .refine((value) => bytesOf(value) <= METADATA_BYTES, "must not be larger than 64 KiB")
  .meta({ description: "Any JSON object, up to 64 KiB and 30 levels deep" });

const bytesOf = (value: object) => new TextEncoder().encode(JSON.stringify(value)).length;

function isStorable(value: unknown, depth: number): boolean {
  if (typeof value === "string") return isText(value);
  if (typeof value !== "object" || value === null) return true;
  if (depth > METADATA_DEPTH) return false;
  return Object.entries(value).every(([key, item]) => isText(key) && isStorable(item, depth + 1));
}

const createBody = z.object({
  name: tenantName,
  slug: tenantSlug,
  metadata: metadata.nullish(),
  policy: policySchema.nullish(),
});

export const createTenantEndpoint = createAuthEndpoint(
  "/tenant/create",
  post(createBody, "Create a tenant"),
  async (ctx) => {
    const { metadata = null, policy: given = null, ...tenant } = ctx.body;
    const actor = await requireManager(ctx, "tenant:create");
    const policy = given && (await parsePolicy(ctx.context, undefined, given));
    const input = { ...tenant, metadata, policy };
    return ctx.json(await createTenant(ctx.context, actor, input));
  },
);

const getQuery = z.object({
  id: z.string().optional().meta({ description: "Id of the tenant" }),
  slug: z.string().optional().meta({ description: "Slug of the tenant" }),
});

export const getTenantEndpoint = createAuthEndpoint(
  "/tenant/get",
  get(getQuery, "Get a tenant by its id or by its slug"),
  async (ctx) => {
    const { id, slug } = ctx.query;
    const tenant = id
      ? await findTenant(ctx.context, "id", id)
      : slug && (await findTenant(ctx.context, "slug", slug));
    // Callers who may not manage learn nothing, not even whether the tenant exists.
    const target = (tenant || undefined)?.id ?? id;
    const own = ownTenantOf(ctx, await requireManager(ctx, "tenant:get", target));
    if (own && !id && !slug) return ctx.json(await requireTenant(ctx, own));
    // A tenant's administrator must not find out which other slugs exist.
    if (own && target !== own) throw notAllowed();
    if (!id === !slug) throw managementError("TENANT_ID_OR_SLUG_REQUIRED");
    await assertTarget(ctx, target);
    if (!tenant) throw tenantError("TENANT_NOT_FOUND");
    return ctx.json(tenant);
  },
);

export const listTenantsEndpoint = createAuthEndpoint(
  "/tenant/list",
  get(listQuery.optional(), "List all tenants, oldest first, or one page of them", {
    limit: { type: "integer" },
    offset: { type: "integer" },
    search: { type: "string" },
    sort: { type: "string", enum: [...listSorts] },
  }),
  async (ctx) => {
    const own = ownTenantOf(ctx, await requireManager(ctx, "tenant:list"));
    if (own) return ctx.json([await requireTenant(ctx, own)]);
    return ctx.json(await listTenants(ctx.context, ctx.query));
  },
);

const updateBody = z.object({
  tenantId: tenantId.optional(),
  name: tenantName.optional(),
  slug: tenantSlug.optional(),
  metadata: metadata.nullish().meta({ description: "Replaces the metadata; null clears it" }),
  status: z.enum(["active", "suspended"]).optional().meta({
    description: "Suspending ends all sessions. Cancels a deletion that is not due yet",
  }),
  policy: policySchema.nullish().meta({ description: "Replaces the policy; null clears it" }),
  endSessions: z.boolean().optional().meta({ description: "Ends all sessions of the tenant" }),
});

export const updateTenantEndpoint = createAuthEndpoint(
  "/tenant/update",
  post(updateBody, "Update a tenant"),
  async (ctx) => {
    const { tenantId, endSessions: endsSessions, policy: given, ...changes } = ctx.body;
    const { actor, session } = await requireUpdater(ctx, ctx.body);
    await assertTarget(ctx, tenantId || undefined);
    const target = tenantId ?? ownTenantOf(ctx, actor);
    const tenant = await requireTenant(ctx, target || undefined);
    const policy = given && (await parsePolicy(ctx.context, tenant.id, given));
    if (policy && actor !== "server" && actor.userId && actor.tenantId === tenant.id) {
      const caller = { userId: actor.userId, session };
      await assertNotLockedOut(ctx.context, tenant.id, policy, caller);
    }
    const changed = await changeTenant(ctx.context, actor, tenant, { ...changes, policy });
    if (policy !== undefined) {
      const change = { type: "policy:changed", before: tenant.policy, after: policy } as const;
      await emit(ctx.context, actor, tenant.id, change);
    }
    if (endsSessions) await endSessions(ctx.context, tenant.id);
    return ctx.json(changed);
  },
);

/**
 * Requires `policy:update` for the policy and sessions, and `tenant:update` for the rest. Refuses a
 * tenant's administrator who changes the slug or the status.
 */
async function requireUpdater(
  ctx: GenericEndpointContext,
  { tenantId, policy, endSessions, ...changes }: z.infer<typeof updateBody>,
): ReturnType<typeof requireManagerSession> {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  const ofPolicy = policy !== undefined || endSessions;
  const actions = [
    ...(ofPolicy ? (["policy:update"] as const) : []),
    ...(given.length || !ofPolicy ? (["tenant:update"] as const) : []),
  ];
  let manager: Awaited<ReturnType<typeof requireManagerSession>> = { actor: "server" };
  for (const action of actions) manager = await requireManagerSession(ctx, action, tenantId);
  const isBeyond = given.some(([name]) => name !== "name" && name !== "metadata");
  if (isBeyond && ownTenantOf(ctx, manager.actor)) throw notAllowed();
  return manager;
}

const NINETY_DAYS = 90 * 24 * 60 * 60;

const deleteBody = z.object({
  tenantId,
  dryRun: z.boolean().optional().meta({ description: "Only counts what would be deleted" }),
  after: seconds({ min: 0, max: NINETY_DAYS }).optional().meta({
    description: "Seconds until it may be deleted; suspended until then, and can be restored",
  }),
});

export interface TenantDeletion {
  success: true;
  /** Set if nothing was deleted, and `rows` counts the rows of each model that would be. */
  dryRun?: true;
  rows?: Rows;
  /** The tenant will be deleted when `auth.api.purgeTenants()` runs after this time. */
  deleteAt?: Date;
}

export const deleteTenantEndpoint = createAuthEndpoint(
  "/tenant/delete",
  post(deleteBody, "Delete a tenant with its users, sessions and OAuth configs"),
  async (ctx): Promise<TenantDeletion> => {
    const { context } = ctx;
    const { dryRun, after } = ctx.body;
    const tenantId = ctx.body.tenantId || undefined;
    const actor = await requireManager(ctx, "tenant:delete", ctx.body.tenantId);
    await assertTarget(ctx, tenantId);
    const tenant = await requireTenant(ctx, tenantId);
    const success = true;
    if (dryRun) return ctx.json({ success, dryRun, rows: await countRows(context, tenant.id) });
    if (after !== undefined) {
      const deleteAt = await scheduleDeletion(context, actor, tenant, after);
      return ctx.json({ success, deleteAt });
    }
    await deleteTenant(context, actor, tenant.id);
    return ctx.json({ success });
  },
);

const resetBody = z.object({ tenantId: tenantId.optional(), userId: text(255) });

export const resetTwoFactorEndpoint = createAuthEndpoint(
  "/tenant/user/reset-two-factor",
  post(resetBody, "Remove a user's second factors and passkeys, and end their sessions"),
  async (ctx) => {
    const { userId } = ctx.body;
    const { tenantId, actor } = await requireTarget(ctx, "user:reset-two-factor");
    const isOwn = actor !== "server" && ownTenantOf(ctx, actor) !== undefined;
    const callerId = (isOwn && actor.userId) || undefined;
    await runInScope(scopeOf(tenantId), () => resetSecondFactor(ctx.context, userId, callerId));
    await emit(ctx.context, actor, tenantId, { type: "user:two-factor-reset", userId });
    return ctx.json({ success: true });
  },
);

/** Has no path, so that only server code can call it. */
export const purgeTenantsEndpoint = createAuthEndpoint.serverOnly(
  { method: "POST" },
  async ({ context }) => purgeTenants(context),
);
