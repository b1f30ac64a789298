import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Where } from "better-auth/types";
import { keepNewest } from "../newest";
import { getTenantId } from "../scope/scope";

/** A tenant, as managers see it. */
export interface Tenant {
  id: string;
  name: string;
  slug: string;
  metadata: Record<string, unknown> | null;
  createdAt: Date;
  updatedAt: Date;
}

// The adapter answers 100 rows unless it is told how many. The largest number that every
// database takes as a limit stands for "all".
export const ALL = 2_147_483_647;

export async function findTenantById(ctx: AuthContext, id: string): Promise<Tenant | null> {
  const tenant = couldBeId(ctx, id) ? await findTenant(ctx, { field: "id", value: id }) : null;
  // MySQL compares without regard to case and trailing spaces, and whoever checked one id must
  // not act on another.
  return tenant?.id === id ? tenant : null;
}

/** For those who need nothing else of the tenant: reading the whole of it takes twice as long. */
export async function tenantExists(ctx: AuthContext, id: string): Promise<boolean> {
  if (!couldBeId(ctx, id)) return false;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const where = [{ field: "id", value: id }];
  const row = await adapter.findOne<{ id: string }>({ model: "tenant", where, select: ["id"] });
  return row?.id === id; // Not so on MySQL, see above.
}

/**
 * The same for sign-in, which would ask with every request. Another instance may have deleted the
 * tenant a moment ago: then its rows are gone and nobody is found in it, and whoever signs up is
 * looked at once more (`undoIfTenantIsGone`).
 */
export async function tenantWasThere(ctx: AuthContext, id: string): Promise<boolean> {
  const seen = seenTenants(ctx);
  if ((seen.get(id) ?? 0) > Date.now()) return true;
  const exists = await tenantExists(ctx, id);
  // Somebody may have deleted it here while it was looked up.
  if (exists && !wasDeleted(ctx, id)) note(seen, id, Date.now() + KEPT_MS);
  return exists;
}

/**
 * Whether this process has deleted the tenant a moment ago. Whoever found a user of it before that
 * must not get a session after it; not every database would refuse.
 */
export function wasDeleted(ctx: AuthContext, id: string): boolean {
  return -(seenTenants(ctx).get(id) ?? 0) > Date.now();
}

export function noteDeletion(ctx: AuthContext, id: string): void {
  note(seenTenants(ctx), id, -(Date.now() + KEPT_MS));
}

/** Numeric ids may be given again. */
export function noteCreation(ctx: AuthContext, id: string): void {
  seenTenants(ctx).delete(id);
}

/** Until when a tenant counts as there, or below zero as deleted. */
type Seen = Map<string, number>;
const KEPT_MS = 10_000;
const note = keepNewest<number>(10_000);
const seenBy = new WeakMap<AuthContext["adapter"], Seen>();

function seenTenants({ adapter }: AuthContext): Seen {
  const seen = seenBy.get(adapter) ?? new Map();
  seenBy.set(adapter, seen);
  return seen;
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

/**
 * Runs after the commit that created a user. A sign-up that saw its tenant, and was overtaken by
 * the deletion of that tenant, must not leave anybody behind in a tenant that is no more.
 */
export async function undoIfTenantIsGone(ctx: AuthContext, userId: string): Promise<boolean> {
  const tenantId = getTenantId();
  if (tenantId === null || (await tenantExists(ctx, tenantId))) return false;
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
export function toTenant({ id, name, slug, metadata, createdAt, updatedAt }: Tenant): Tenant {
  return { id, name, slug, metadata: metadata ?? null, createdAt, updatedAt };
}
