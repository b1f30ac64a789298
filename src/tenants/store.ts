import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { Where } from "better-auth/types";
import { tenantError } from "../errors";
import type { ResolvedOptions } from "../options";
import { parseStoredPolicy } from "../policy/schema";
import { ALL, findTenantBySlug, forgetTenant, type Tenant, toTenant } from "./cache";
import { emit, type TenantActor, type TenantChange } from "./events";
import { assertNotDue, changeStatus } from "./status";

export async function createTenant(
  ctx: AuthContext,
  options: ResolvedOptions,
  actor: TenantActor,
  input: Pick<Tenant, "name" | "slug" | "metadata" | "policy">,
): Promise<Tenant> {
  assertSlug(input.slug, options.reservedSlugs);
  const tenant = await insertTenant(ctx, input);
  if (!tenant) throw tenantError("TENANT_ALREADY_EXISTS");
  await emit(ctx, options, actor, tenant.id, { type: "tenant:created", tenant });
  return tenant;
}

/** Undefined values stay as they are. The status goes last: a slug that is taken changes nothing. */
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

/** null if the slug is taken, also by a concurrent request. */
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
    await forgetTenant(ctx, row.id, row.slug);
    return toTenant(row);
  } catch (error) {
    // Adapters have no common error for a value that is taken, so look again.
    if (await findTenantBySlug(ctx, tenant.slug)) return null;
    throw error;
  }
}

/** "gone" if the tenant no longer exists, "taken" if the slug belongs to another one. */
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
    await forgetTenant(ctx, row.id, row.slug);
    return readTenant(row);
  } catch (error) {
    if (await slugTaken()) return "taken";
    throw error;
  }
}

// What DNS takes as a label, so that every slug can be a subdomain.
const SLUG = /^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/;

/** Hosts below every domain that browsers and mail programs ask for their configuration. */
const CONFIGURES_CLIENTS = ["autoconfig", "autodiscover", "mta-sts", "wpad"];

function assertSlug(slug: string, reserved: readonly string[]): void {
  if (!SLUG.test(slug)) throw tenantError("INVALID_SLUG");
  if (reserved.includes(slug) || CONFIGURES_CLIENTS.includes(slug))
    throw tenantError("SLUG_RESERVED");
}

/** The part of the list of tenants that is asked for. */
export interface TenantListQuery {
  limit?: number | undefined;
  offset?: number | undefined;
  search?: string | undefined;
  sort?: "createdAt" | "-createdAt" | "slug" | "-slug" | undefined;
}

/** All tenants, oldest first, or the part of them that is asked for. */
export async function listTenants(
  ctx: AuthContext,
  query: TenantListQuery = {},
): Promise<Tenant[]> {
  const { limit = ALL, offset = 0, search = "", sort = "createdAt" } = query;
  const adapter = await getCurrentAdapter(ctx.adapter);
  const find = async (part: { where?: Where[]; offset?: number; limit: number }) => {
    const field = sort.replace("-", "");
    const sortBy = { field, direction: sort === field ? "asc" : "desc" } as const;
    return (await adapter.findMany<Tenant>({ model: "tenant", sortBy, ...part })).map(readTenant);
  };
  if (!WILDCARD.test(search)) {
    return find({ ...(search && { where: containing(search) }), offset, limit });
  }
  const text = search.toLowerCase();
  const isMatch = ({ name, slug }: Tenant) => `${name}\0${slug}`.toLowerCase().includes(text);
  return (await find({ limit: ALL })).filter(isMatch).slice(offset, offset + limit);
}

/** Adapters treat these differently in `contains`, and none can escape them: we compare ourselves. */
const WILDCARD = /[%_\\]/;

const containing = (value: string): Where[] =>
  ["name", "slug"].map((field) => ({
    field,
    operator: "contains",
    value,
    mode: "insensitive",
    connector: "OR",
  }));

const readTenant = (row: Tenant): Tenant =>
  toTenant({ ...row, policy: parseStoredPolicy(row.policy) });
