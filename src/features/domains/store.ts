import {
  getCurrentAdapter,
  queueAfterTransactionHook,
  runWithTransaction,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { isAPIError } from "better-auth/api";
import { generateRandomString } from "better-auth/crypto";
import type { DBTransactionAdapter } from "better-auth/types";
import { clauses } from "../../core/database";
import { tenantError } from "../../core/errors";
import {
  type Isolation,
  instanceKey,
  isolationOf,
  seesUncommittedRows,
  unscopedAdapter,
} from "../../core/isolation";
import { ALL, forgetTenant } from "../../core/tenants/tenants";
import { expiringMap, oncePerObject } from "../../core/utils";
import { despiteDeadlocks } from "../management/delete";
import { oneAtATime } from "../management/one-at-a-time";
import { findTenant } from "../management/tenant";
import { domainError } from "./errors";
import type { StoredDomain } from "./options";

const model = "tenantDomain";
/** Returns the adapter that sees the rows of the current tenant. */
const adapterOf = ({ adapter }: AuthContext) => getCurrentAdapter(adapter);
/** Returns the adapter that sees all tenants, to find the tenant that has verified a domain. */
const anywhere = (ctx: AuthContext) => unscopedAdapter(isolationOf(ctx) as Isolation);

/** Creates a random value, so that one DNS record cannot prove a domain for two tenants. */
const createToken = () => `tenant-verification=${generateRandomString(32)}`;

const find = async (ctx: AuthContext, domain: string) =>
  (await adapterOf(ctx)).findOne<StoredDomain>({ model, where: clauses({ domain }) });

export async function requireRow(ctx: AuthContext, domain: string): Promise<StoredDomain> {
  const row = await find(ctx, domain);
  if (!row) throw domainError("DOMAIN_NOT_FOUND");
  return row;
}

/** Adds a domain to a tenant. If the tenant already has the domain, returns the row unchanged. */
export async function add(
  ctx: AuthContext,
  tenantId: string,
  domain: string,
  host: boolean,
  most: number,
) {
  const tenant = await findTenant(ctx, "id", tenantId);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  return oneAtATime(ctx, tenant, () => addLocked(ctx, domain, host, most));
}

async function addLocked(ctx: AuthContext, domain: string, host: boolean, most: number) {
  const known = await find(ctx, domain);
  if (known) return { row: known, isNew: false };
  const adapter = await adapterOf(ctx);
  if ((await adapter.count({ model })) >= most) throw domainError("DOMAIN_LIMIT_REACHED");
  const [token, now] = [createToken(), new Date()];
  const state = { token, verifiedDomain: token, discoverable: true, host };
  const data = { domain, ...state, createdAt: now, updatedAt: now };
  let row: StoredDomain;
  try {
    row = await adapter.create<typeof data, StoredDomain>({ model, data });
  } catch (error) {
    // Another request may have added the domain first. Adapters have no common error for that, so
    // this looks for its row.
    const faster = await find(ctx, domain);
    if (!faster) throw error;
    return { row: faster, isNew: false };
  }
  return { row, isNew: true };
}

/** Lists the domains of the current tenant, by name. */
export const list = async (ctx: AuthContext): Promise<StoredDomain[]> =>
  (await adapterOf(ctx)).findMany<StoredDomain>({
    model,
    sortBy: { field: "domain", direction: "asc" },
    limit: ALL,
  });

export async function update(
  ctx: AuthContext,
  row: StoredDomain,
  changes: Pick<StoredDomain, "discoverable" | "host">,
): Promise<StoredDomain> {
  const update = { ...changes, updatedAt: new Date() };
  await (await adapterOf(ctx)).updateMany({ model, where: clauses({ id: row.id }), update });
  await forget(ctx, row);
  return requireRow(ctx, row.domain);
}

export async function remove(ctx: AuthContext, row: StoredDomain): Promise<void> {
  const where = clauses({ id: row.id });
  if (!(await (await adapterOf(ctx)).deleteMany({ model, where }))) {
    throw domainError("DOMAIN_NOT_FOUND");
  }
  await forget(ctx, row);
}

export const isVerified = ({ verifiedDomain, domain }: StoredDomain) => verifiedDomain === domain;

/**
 * Gives a domain to the tenant that has just proven it, and takes it from the tenant that had it.
 * Returns undefined if the token has changed since the record was looked up. If two tenants prove
 * the domain at the same moment, the first locks the rows of both, and the second finds its token
 * changed.
 */
export async function markVerified(ctx: AuthContext, row: StoredDomain) {
  const attempt = () =>
    despiteDeadlocks(ctx, () => runWithTransaction(ctx.adapter, () => takeOver(ctx, row)));
  // In MySQL, a transaction sees rows as they were at its first read, before it got the locks. If
  // they changed in between, the attempt fails. A second transaction sees the changes.
  const taken = await attempt().catch((error) => {
    if (isAPIError(error) && error.body?.code === "DOMAIN_NOT_FOUND") return attempt();
    throw error;
  });
  for (const one of [taken?.row, taken?.loser]) if (one) await forget(ctx, one);
  return taken;
}

async function takeOver(ctx: AuthContext, { id, token, domain }: StoredDomain) {
  const adapter = await anywhere(ctx);
  const where = clauses({ domain });
  // Locks every row with this domain, in one statement and so in one order. If each of two tenants
  // locked its own row first, and then the other's, they would deadlock.
  await adapter.updateMany({ model, where, update: { updatedAt: new Date() } });
  const rows = await adapter.findMany<StoredDomain>({ model, where, limit: ALL });
  const row = rows.find((one) => one.id === id && one.token === token);
  if (!row) return undefined;
  // If the tenant has verified the domain before, no other tenant loses it: their tokens stay
  // valid.
  const others = isVerified(row) ? [] : rows.filter((one) => one !== row);
  for (const other of others) {
    await adapter.updateMany({ model, where: clauses({ id: other.id }), update: lost() });
  }
  const now = new Date();
  const verifiedAt = (isVerified(row) && row.verifiedAt) || now;
  const seen = { recordSeenAt: now, recordGoneAt: null };
  const update = { verifiedDomain: domain, verifiedAt, ...seen, updatedAt: now };
  const count = await adapter.updateMany({ model, where: clauses({ id, token }), update });
  // Another request has removed the row or changed its token meanwhile. The error rolls back the
  // changes to the other rows.
  if (!count) throw domainError("DOMAIN_NOT_FOUND");
  return { row, loser: others.find(isVerified) };
}

/**
 * Returns the changes to a row that loses its domain. The row gets a new token: its old record may
 * still be in DNS, and must not take the domain from the tenant that has proven it since.
 */
function lost() {
  const token = createToken();
  const changes = { verifiedAt: null, recordSeenAt: null, recordGoneAt: null };
  return { token, verifiedDomain: token, ...changes, updatedAt: new Date() };
}

/** Stores that the record of a verified domain is still there. */
export const markSeen = async (ctx: AuthContext, { id, token }: StoredDomain) =>
  (await anywhere(ctx)).updateMany({
    model,
    where: clauses({ id, token }),
    update: { recordSeenAt: new Date(), recordGoneAt: null },
  });

/**
 * Stores that a record was not found. If the record was already gone before the given time, ends
 * the verification and returns true.
 */
export async function markGone(ctx: AuthContext, row: StoredDomain, before: Date) {
  const { id, token, recordGoneAt } = row;
  const where = clauses({ id, token });
  if (recordGoneAt) where.push({ field: "recordGoneAt", operator: "lt", value: before });
  const update = recordGoneAt ? lost() : { recordGoneAt: new Date() };
  const count = await (await anywhere(ctx)).updateMany({ model, where, update });
  await forget(ctx, row);
  return Boolean(recordGoneAt) && count > 0;
}

/** Finds the row of the tenant that has verified a domain. Cached for ten seconds, like tenants. */
export async function verifiedRow(ctx: AuthContext, domain: string) {
  const cache = cacheOf(ctx);
  const known = cache.get(domain);
  if (known) return known;
  const keep = cache.startRead();
  const where = clauses({ verifiedDomain: domain });
  const row = await (await anywhere(ctx)).findOne<StoredDomain>({ model, where });
  if (row && !seesUncommittedRows(isolationOf(ctx))) keep(domain, row);
  return row;
}

export async function verifiedRows(
  ctx: AuthContext,
  tenantId: string,
  adapter?: DBTransactionAdapter,
): Promise<StoredDomain[]> {
  const reader = adapter ?? (await anywhere(ctx));
  const where = clauses({ tenantId });
  return (await reader.findMany<StoredDomain>({ model, where, limit: ALL })).filter(isVerified);
}

const caches = oncePerObject((_instance: object) => expiringMap<StoredDomain>(10_000, 10_000));

const cacheOf = (ctx: AuthContext) => caches(instanceKey(ctx));

/**
 * Removes a domain from the cache, at once and after the commit. Also removes its tenant, whose
 * cached policy may contain the domain.
 */
async function forget(ctx: AuthContext, { domain, tenantId }: StoredDomain): Promise<void> {
  const forgetDomain = async () => cacheOf(ctx).delete(domain);
  await forgetDomain();
  await queueAfterTransactionHook(forgetDomain);
  await forgetTenant(ctx, tenantId);
}
