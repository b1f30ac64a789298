import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { boundedMap } from "../framework";

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
  return (await tenantSince(ctx, id)) !== undefined;
}

/** When the tenant was created: tells two tenants apart that were given the same number. */
async function tenantSince(
  ctx: AuthContext,
  id: string,
  given?: DBTransactionAdapter,
): Promise<string | undefined> {
  if (!couldBeId(ctx, id)) return undefined;
  const adapter = given ?? (await getCurrentAdapter(ctx.adapter));
  const where = [{ field: "id", value: id }];
  const select = ["id", "createdAt"];
  const row = await adapter.findOne<Tenant>({ model: "tenant", where, select });
  // Not so on MySQL, see above.
  return row?.id === id ? sinceOf(row) : undefined;
}

/**
 * The same for every request of a tenant, remembered for ten seconds: a session is good only while
 * its tenant is there, in this process and in the others.
 */
export async function recentlySeen(
  ctx: AuthContext,
  id: string,
  adapter?: DBTransactionAdapter,
): Promise<string | undefined> {
  const known = seenTenants(ctx).get(id);
  if (known && known.until > Date.now() && !known.isDeleted) return known.since;
  const since = await tenantSince(ctx, id, adapter);
  if (since !== undefined) noteSighting(ctx, id, since);
  return since;
}

function noteSighting(ctx: AuthContext, id: string, since: string): void {
  // Somebody may have deleted it here while it was looked up.
  if (wasDeleted(ctx, id)) return;
  note(seenTenants(ctx), id, { since, until: Date.now() + KEPT_MS });
}

/** What tells two tenants apart that were given the same number. */
export const sinceOf = ({ createdAt }: Pick<Tenant, "createdAt">) =>
  String(new Date(createdAt).getTime());

/**
 * Whether this process has deleted the tenant a moment ago. Whoever found a user of it before that
 * must not get a session after it; not every database would refuse.
 */
export function wasDeleted(ctx: AuthContext, id: string): boolean {
  const { isDeleted, until = 0 } = seenTenants(ctx).get(id) ?? {};
  return isDeleted === true && until > Date.now();
}

export function noteDeletion(ctx: AuthContext, id: string): void {
  note(seenTenants(ctx), id, { until: Date.now() + KEPT_MS, isDeleted: true });
}

/** Numeric ids may be given again. */
export function noteCreation(ctx: AuthContext, id: string): void {
  seenTenants(ctx).delete(id);
}

interface Sighting {
  until: number;
  since?: string;
  isDeleted?: boolean;
}

type Seen = Map<string, Sighting>;
const KEPT_MS = 10_000;
const note = boundedMap<Sighting>(10_000);
const seenBy = new WeakMap<AuthContext["adapter"], Seen>();

function seenTenants({ adapter }: AuthContext): Seen {
  const seen = seenBy.get(adapter) ?? new Map();
  seenBy.set(adapter, seen);
  return seen;
}

export async function findTenantBySlug(ctx: AuthContext, slug: string): Promise<Tenant | null> {
  const tenant = isText(slug) ? await findTenant(ctx, { field: "slug", value: slug }) : null;
  if (tenant?.slug !== slug) return null;
  noteSighting(ctx, tenant.id, sinceOf(tenant));
  return tenant;
}

async function findTenant(ctx: AuthContext, clause: Where): Promise<Tenant | null> {
  const adapter = await getCurrentAdapter(ctx.adapter);
  const row = await adapter.findOne<Tenant>({ model: "tenant", where: [clause] });
  return row && toTenant(row);
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
