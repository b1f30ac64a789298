import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Where } from "better-auth/types";
import { createScope, getTenantId, runInScope } from "../scope/scope";
import { forgetSessions } from "../scope/storage";

export interface Tenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  createdAt: Date;
  updatedAt: Date;
}

export type TenantChanges = Partial<Pick<Tenant, "name" | "slug" | "metadata">>;

// The adapter answers 100 rows unless it is told how many. The largest number that every
// database takes as a limit stands for "all".
const ALL = 2_147_483_647;

export async function findTenantById(ctx: AuthContext, id: string): Promise<Tenant | null> {
  const tenant = couldBeId(ctx, id) ? await findTenant(ctx, { field: "id", value: id }) : null;
  // MySQL compares without regard to case and trailing spaces, and whoever checked one id must
  // not act on another.
  return tenant?.id === id ? tenant : null;
}

export async function findTenantBySlug(ctx: AuthContext, slug: string): Promise<Tenant | null> {
  const tenant = isText(slug) ? await findTenant(ctx, { field: "slug", value: slug }) : null;
  return tenant?.slug === slug ? tenant : null;
}

async function findTenant(ctx: AuthContext, clause: Where): Promise<Tenant | null> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const row = await adapter.findOne<Tenant>({ model: "tenant", where: [clause] });
  return row && toTenant(row);
}

export async function listTenants(ctx: AuthContext): Promise<Tenant[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const rows = await adapter.findMany<Tenant>({
    model: "tenant",
    sortBy: { field: "createdAt", direction: "asc" },
    limit: ALL,
  });
  return rows.map(toTenant);
}

/** null when the slug is taken, also by somebody who was faster. */
export async function insertTenant(
  ctx: AuthContext,
  tenant: Pick<Tenant, "name" | "slug" | "metadata">,
): Promise<Tenant | null> {
  if (await findTenantBySlug(ctx, tenant.slug)) return null;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const now = new Date();
  try {
    const row = await adapter.create<Omit<Tenant, "id">, Tenant>({
      model: "tenant",
      data: { ...tenant, createdAt: now, updatedAt: now },
    });
    return toTenant(row);
  } catch (error) {
    // Adapters have no common word for "not unique", so the question is asked again.
    if (await findTenantBySlug(ctx, tenant.slug)) return null;
    throw error;
  }
}

/** "gone" when there is no such tenant (any more), "taken" when the slug is another one's. */
export async function updateTenant(
  ctx: AuthContext,
  id: string,
  changes: TenantChanges,
): Promise<Tenant | "gone" | "taken"> {
  const slugTaken = async () => {
    const holder = changes.slug !== undefined && (await findTenantBySlug(ctx, changes.slug));
    return holder !== false && holder !== null && holder.id !== id;
  };
  if (await slugTaken()) return "taken";
  const adapter = await getCurrentAdapter(ctx.adapter);
  try {
    const row = await adapter.update<Tenant>({
      model: "tenant",
      where: [{ field: "id", value: id }],
      update: { ...changes, updatedAt: new Date() },
    });
    return row ? toTenant(row) : "gone";
  } catch (error) {
    if (await slugTaken()) return "taken";
    throw error;
  }
}

/**
 * Deletes a tenant with everything in it, all or nothing: inside its scope, "everything" is what
 * the border lets through. The tenant's own row goes first, so that whoever comes late finds no
 * tenant. Those who found it in time but are slower than the deletion look once more after their
 * own commit (`undoIfTenantIsGone`), and the second sweep takes whatever they committed before.
 */
export async function removeTenant(ctx: AuthContext, id: string, models: string[]): Promise<void> {
  await runInScope(createScope(id), async () => {
    const userIds = await runWithTransaction(ctx.adapter, async () => {
      const adapter = await getCurrentAdapter(ctx.adapter);
      await adapter.delete({ model: "tenant", where: [{ field: "id", value: id }] });
      await adapter.deleteMany({
        model: "tenantOauthConfig",
        where: [{ field: "tenantId", value: id }],
      });
      return emptyScope(ctx, models);
    });
    const latecomers = await emptyScope(ctx, models);
    await forgetSessions(ctx, id, [...userIds, ...latecomers]);
  });
}

/** Answers whose sessions may be left in secondary storage. */
async function emptyScope(ctx: AuthContext, models: string[]): Promise<string[]> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const users = ctx.options.secondaryStorage
    ? await adapter.findMany<{ id: string }>({ model: "user", select: ["id"], limit: ALL })
    : [];
  // Users first, as a sign-up creates them first: in the other order the two would wait for each
  // other. Their rows in the other tables go with them where the database knows who refers to whom.
  for (const model of models) {
    if (ctx.tables[model]) await adapter.deleteMany({ model, where: [] });
  }
  return users.map(({ id }) => id);
}

/**
 * Runs after the commit that created a user. A sign-up that saw its tenant, and was overtaken by
 * the deletion of that tenant, must not leave anybody behind in a tenant that is no more.
 */
export async function undoIfTenantIsGone(ctx: AuthContext, userId: string): Promise<boolean> {
  const tenantId = getTenantId();
  if (tenantId === null || (await findTenantById(ctx, tenantId))) return false;
  await ctx.internalAdapter.deleteUser(userId);
  return true;
}

/** An id of the wrong form is the id of nobody; typed columns would answer it with an error. */
function couldBeId(ctx: AuthContext, id: string): boolean {
  const generated = ctx.options.advanced?.database?.generateId;
  if (generated === "serial") return /^[1-9]\d{0,9}$/.test(id) && Number(id) <= ALL;
  if (generated === "uuid") return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id);
  return isText(id);
}

/** PostgreSQL has no NUL in its texts. */
function isText(value: string): boolean {
  return !value.includes("\0");
}

/** The fields that go out, one by one: a column that is added later does not leak by itself. */
function toTenant({ id, name, slug, metadata, createdAt, updatedAt }: Tenant): Tenant {
  return { id, name, slug, metadata: metadata ?? null, createdAt, updatedAt };
}
