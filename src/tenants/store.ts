import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { tenantError } from "../errors";
import type { ResolvedOptions } from "../options";
import { confinedModels } from "../schema";
import { runInScope, settled } from "../scope/scope";
import { emit, type TenantActor, type TenantChange } from "./events";
import { ALL, findTenantBySlug, hasNumericIds, noteChange, type Tenant, toTenant } from "./find";
import { assertNotDue, changeStatus } from "./status";
import { understood } from "./stored-policy";
import { emptyScope } from "./sweep";

export async function createTenant(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  input: Pick<Tenant, "name" | "slug" | "metadata" | "policy">,
): Promise<Tenant> {
  assertSlug(input.slug, options.reservedSlugs);
  const tenant = await insertTenant(ctx, input);
  if (!tenant) throw tenantError("TENANT_ALREADY_EXISTS");
  // A number may have been another tenant's, of which a process that was killed has left something.
  if (hasNumericIds(ctx)) {
    const models = confinedModels(options);
    await runInScope(settled(tenant.id), () => emptyScope(ctx, models, {}));
  }
  await emit(ctx, options, actor, tenant.id, { type: "tenant:created", tenant });
  return tenant;
}

/** What is undefined stays as it is. The status goes last: a slug that is taken changes nothing. */
export async function changeTenant(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  tenant: Tenant,
  { status, ...input }: TenantChanges & { status?: "active" | "suspended" | undefined },
): Promise<Tenant> {
  if (status) assertNotDue(tenant);
  const changed = await changeFields(ctx, options, tenant, input);
  if (changed !== tenant) {
    const names = FIELDS.filter((name) => input[name] !== undefined);
    const change: TenantChange = { type: "tenant:updated", tenant: changed, changed: names };
    if (names.length) await emit(ctx, options, actor, tenant.id, change);
  }
  return status ? changeStatus(ctx, options, actor, changed, status) : changed;
}

const FIELDS = ["name", "slug", "metadata"] as const;

async function changeFields(
  ctx: AuthContext,
  { reservedSlugs }: ResolvedOptions,
  tenant: Tenant,
  input: TenantChanges,
): Promise<Tenant> {
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  const changes: TenantChanges = Object.fromEntries(given);
  if (given.length === 0) return tenant;
  if (changes.slug !== undefined && changes.slug !== tenant.slug) {
    assertSlug(changes.slug, reservedSlugs);
  }
  const changed = await updateTenant(ctx, tenant.id, changes);
  if (changed === "taken") throw tenantError("TENANT_ALREADY_EXISTS");
  if (changed === "gone") throw tenantError("TENANT_NOT_FOUND");
  return changed;
}

export type TenantChanges = Partial<Pick<Tenant, "name" | "slug" | "metadata" | "policy">>;

/** null when the slug is taken, also by somebody who was faster. */
async function insertTenant(
  ctx: AuthContext,
  { metadata, policy, ...tenant }: Pick<Tenant, "name" | "slug" | "metadata" | "policy">,
): Promise<Tenant | null> {
  if (await findTenantBySlug(ctx, tenant.slug)) return null;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const now = new Date();
  try {
    const row = await adapter.create<Partial<Tenant>, Tenant>({
      model: "tenant",
      data: {
        ...tenant,
        // better-auth stores null as JSON in a text, which not every adapter reads as null.
        ...(metadata && { metadata }),
        ...(policy && { policy }),
        status: "active",
        deleteAt: null,
        createdAt: now,
        updatedAt: now,
      },
    });
    await forget(ctx, row);
    return toTenant(row);
  } catch (error) {
    // Adapters have no common word for "not unique", so the question is asked again.
    if (await findTenantBySlug(ctx, tenant.slug)) return null;
    throw error;
  }
}

/** "gone" when there is no such tenant (any more), "taken" when the slug is another one's. */
async function updateTenant(
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
    if (!row) return "gone";
    await forget(ctx, row);
    return readTenant(row);
  } catch (error) {
    if (await slugTaken()) return "taken";
    throw error;
  }
}

/**
 * What was changed counts in this process at once: for the rest of a transaction that the application
 * has around this, and for everybody after it. Meanwhile others may have read what was before.
 */
async function forget(ctx: AuthContext, { id, slug }: Tenant): Promise<void> {
  noteChange(ctx, id, slug);
  await queueAfterTransactionHook(async () => noteChange(ctx, id, slug));
}

// What DNS takes as a label, so that every slug can be a subdomain.
const SLUG = /^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/;

/** Hosts that browsers and mail programs look for below every domain, and do as they say. */
const LOOKED_FOR = ["autoconfig", "autodiscover", "mta-sts", "wpad"];

function assertSlug(slug: string, reserved: readonly string[]): void {
  if (!SLUG.test(slug)) throw tenantError("INVALID_SLUG");
  if (reserved.includes(slug) || LOOKED_FOR.includes(slug)) throw tenantError("SLUG_RESERVED");
}

interface Order {
  field: "createdAt" | "name" | "slug";
  direction: "asc" | "desc";
}

/** The part of the list of tenants that is asked for. */
export interface TenantListQuery {
  limit?: number | undefined;
  offset?: number | undefined;
  search?: string | undefined;
  sort?: TenantSort | undefined;
}

type TenantSort = "createdAt" | "-createdAt" | "name" | "-name" | "slug" | "-slug";

/** All tenants, oldest first, or the part of them that is asked for. */
export async function listTenants(
  ctx: AuthContext,
  query: TenantListQuery = {},
): Promise<Tenant[]> {
  const { limit = ALL, offset = 0, search = "", sort = "createdAt" } = query;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const order: Order = {
    field: sort.replace("-", "") as Order["field"],
    direction: sort.startsWith("-") ? "desc" : "asc",
  };
  const text = longestPlainPart(search);
  const where = text ? containing(text) : [];
  if (text === search) return findPage(adapter, where, order, offset, limit);
  const rows = await find(adapter, { where, sortBy: order });
  return rows.filter((tenant) => contains(tenant, search)).slice(offset, offset + limit);
}

type FindOptions = { where: Where[]; sortBy: Find["sortBy"]; offset?: number; limit?: number };
type Find = Parameters<DBTransactionAdapter["findMany"]>[0];

async function find(adapter: DBTransactionAdapter, options: FindOptions): Promise<Tenant[]> {
  const rows = await adapter.findMany<Tenant>({ model: "tenant", limit: ALL, ...options });
  return rows.map(readTenant);
}

const readTenant = (row: Tenant): Tenant => toTenant({ ...row, policy: understood(row.policy) });

const containing = (value: string): Where[] =>
  ["name", "slug"].map((field) => ({
    field,
    operator: "contains",
    value,
    mode: "insensitive",
    connector: "OR",
  }));

/**
 * What `%`, `_` and `\` mean to `contains` is different in every adapter, and none has a way to
 * escape them that works in all. So the database looks for the rest, and they are looked for here.
 */
function longestPlainPart(search: string): string {
  return search.split(/[%_\\]/).reduce((a, b) => (b.length > a.length ? b : a));
}

const contains = ({ name, slug }: Tenant, search: string) =>
  [name, slug].some((text) => text.toLowerCase().includes(search.toLowerCase()));

/**
 * A page of a sorted list; every tenant stands on one. Adapters sort by one field, and the database
 * puts equals in any order, another one for each page. That matters where a page begins or ends
 * among equals: one row more on each side tells, and then those equals are taken by their ids.
 */
async function findPage(
  adapter: DBTransactionAdapter,
  where: Where[],
  order: Order,
  offset: number,
  limit: number,
): Promise<Tenant[]> {
  const before = offset > 0 ? 1 : 0;
  const seen = await find(adapter, {
    where,
    sortBy: order,
    offset: offset - before,
    limit: Math.min(limit + before + 1, ALL),
  });
  const page = seen.slice(before, before + limit);
  const [first, last, next] = [page[0], page.at(-1), seen[before + limit]];
  if (!first || !last) return [];
  const beginsAmongEquals = before > 0 && isSame(seen[0] as Tenant, first, order);
  const endsAmongEquals = next !== undefined && isSame(last, next, order);
  if (!beginsAmongEquals && !endsAmongEquals) return page;

  const [start, end] = [around(first, order), around(last, order)];
  const sortBy = { field: "id", direction: "asc" } as const;
  const earlier = await adapter.count({ model: "tenant", where: [...where, ...start.before] });
  const head = await find(adapter, {
    where: [...where, ...start.same],
    sortBy,
    offset: offset - earlier,
    limit: page.length,
  });
  if (head.length === page.length) return head;
  const inner = await find(adapter, {
    where: [...where, ...start.after, ...end.before],
    sortBy: order,
    limit: page.length,
  });
  const tail = await find(adapter, {
    where: [...where, ...end.same],
    sortBy,
    limit: page.length,
  });
  return [...head, ...inner, ...tail].slice(0, page.length);
}

/** Whether a database may take two tenants for equal: some compare without case and accents. */
function isSame(a: Tenant, b: Tenant, { field }: Order): boolean {
  if (field === "createdAt") return a.createdAt.getTime() === b.createdAt.getTime();
  return a[field].localeCompare(b[field], "en", { sensitivity: "base" }) === 0;
}

/** The tenants that stand before and after this one, and those that are equal to it. */
function around(tenant: Tenant, { field, direction }: Order) {
  const value = tenant[field];
  // Databases may know more of a time than its milliseconds.
  const end = value instanceof Date ? new Date(value.getTime() + 1) : undefined;
  const clause = (operator: "eq" | "lt" | "gt" | "gte", value: string | Date): Where => ({
    field,
    operator,
    value,
  });
  const smaller = [clause("lt", value)];
  const larger = [end ? clause("gte", end) : clause("gt", value)];
  const same = end ? [clause("gte", value), clause("lt", end)] : [clause("eq", value)];
  return direction === "asc"
    ? { before: smaller, same, after: larger }
    : { before: larger, same, after: smaller };
}
