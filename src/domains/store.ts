import {
  getCurrentAdapter,
  queueAfterTransactionHook,
  runWithTransaction,
} from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { generateRandomString } from "better-auth/crypto";
import type { DBTransactionAdapter } from "better-auth/types";
import { clauses, expiringMap, oncePerObject } from "../framework";
import {
  type Isolation,
  instanceKey,
  isOfTransaction,
  isolationOf,
  unscopedAdapter,
} from "../isolation/isolation";
import { ALL, forgetTenant } from "../tenants/cache";
import { domainError } from "./errors";
import type { StoredDomain } from "./options";

const model = "tenantDomain";
/** Shows the rows of the tenant that a manager's call runs in. */
const adapterOf = ({ adapter }: AuthContext) => getCurrentAdapter(adapter);
/** Who has verified a domain is asked across tenants. */
const anywhere = (ctx: AuthContext) => unscopedAdapter(isolationOf(ctx) as Isolation);

/** No other tenant can have this value, so no record proves a domain for two of them. */
const createToken = () => `tenant-verification=${generateRandomString(32)}`;

const find = async (ctx: AuthContext, domain: string) =>
  (await adapterOf(ctx)).findOne<StoredDomain>({ model, where: clauses({ domain }) });

export async function requireRow(ctx: AuthContext, domain: string): Promise<StoredDomain> {
  const row = await find(ctx, domain);
  if (!row) throw domainError("DOMAIN_NOT_FOUND");
  return row;
}

/** Adds a domain. One that is there already stays as it is. */
export async function add(ctx: AuthContext, domain: string, host: boolean, most: number) {
  const known = await find(ctx, domain);
  if (known) return { row: known, isNew: false };
  const adapter = await adapterOf(ctx);
  const [token, now] = [createToken(), new Date()];
  const state = { token, verifiedDomain: token, discoverable: true, host };
  const data = { domain, ...state, createdAt: now, updatedAt: now };
  let row: StoredDomain;
  try {
    row = await adapter.create<typeof data, StoredDomain>({ model, data });
  } catch (error) {
    // Adapters have no common error for "not unique": another request may have been faster.
    const faster = await find(ctx, domain);
    if (!faster) throw error;
    return { row: faster, isNew: false };
  }
  // Afterwards: requests that come at once would all count too few.
  if ((await adapter.count({ model })) > most) {
    await remove(ctx, row);
    throw domainError("DOMAIN_LIMIT_REACHED");
  }
  return { row, isNew: true };
}

/** The domains of the current tenant, by name. */
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
 * Gives a domain to the tenant that has just proven it, and takes it from the one that had it.
 * Undefined if the record that was looked up is no longer the one to look for. If two tenants prove
 * it in the same moment, the unique index lets one of them through.
 */
export async function markVerified(ctx: AuthContext, row: StoredDomain) {
  const taken = await runWithTransaction(ctx.adapter, () => takeOver(ctx, row));
  for (const one of [taken?.row, taken?.loser]) if (one) await forget(ctx, one);
  return taken;
}

async function takeOver(ctx: AuthContext, { id, token, domain }: StoredDomain) {
  const adapter = await anywhere(ctx);
  const where = clauses({ domain });
  const rows = await adapter.findMany<StoredDomain>({ model, where, limit: ALL });
  const row = rows.find((one) => one.id === id && one.token === token);
  if (!row) return undefined;
  // Verified again, nothing changes hands: the records of others stay good.
  const others = isVerified(row) ? [] : rows.filter((one) => one !== row);
  for (const other of others) {
    await adapter.updateMany({ model, where: clauses({ id: other.id }), update: lost() });
  }
  const now = new Date();
  const verifiedAt = (isVerified(row) && row.verifiedAt) || now;
  const seen = { recordSeenAt: now, recordGoneAt: null };
  const update = { verifiedDomain: domain, verifiedAt, ...seen, updatedAt: now };
  const count = await adapter.updateMany({ model, where: clauses({ id, token }), update });
  // Removed meanwhile: rolls back what the others have lost.
  if (!count) throw domainError("DOMAIN_NOT_FOUND");
  return { row, loser: others.find(isVerified) };
}

/**
 * What a row is without its domain. It gets a new token: a record that is still in DNS, of a tenant
 * that had the domain or never asked for it, must not take it from the one that has proven it since.
 */
function lost() {
  const token = createToken();
  const changes = { verifiedAt: null, recordSeenAt: null, recordGoneAt: null };
  return { token, verifiedDomain: token, ...changes, updatedAt: new Date() };
}

/** The record of a verified domain is still there. */
export const markSeen = async (ctx: AuthContext, { id, token }: StoredDomain) =>
  (await anywhere(ctx)).updateMany({
    model,
    where: clauses({ id, token }),
    update: { recordSeenAt: new Date(), recordGoneAt: null },
  });

/** The record was not found. True if it was gone before the given time: the verification has ended. */
export async function markGone(ctx: AuthContext, row: StoredDomain, before: Date) {
  const { id, token, recordGoneAt } = row;
  const where = clauses({ id, token });
  if (recordGoneAt) where.push({ field: "recordGoneAt", operator: "lt", value: before });
  const update = recordGoneAt ? lost() : { recordGoneAt: new Date() };
  const count = await (await anywhere(ctx)).updateMany({ model, where, update });
  await forget(ctx, row);
  return Boolean(recordGoneAt) && count > 0;
}

/** The row of the tenant that has verified a domain. Kept for ten seconds, as tenants are. */
export async function verifiedRow(ctx: AuthContext, domain: string) {
  const cache = cacheOf(ctx);
  const known = cache.get(domain);
  if (known) return known;
  const keep = cache.startRead();
  const where = clauses({ verifiedDomain: domain });
  const row = await (await anywhere(ctx)).findOne<StoredDomain>({ model, where });
  if (row && !isOfTransaction(isolationOf(ctx))) keep(domain, row);
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

/** Forgets who has a domain, at once and after the commit, and the policy that may follow it. */
async function forget(ctx: AuthContext, { domain, tenantId }: StoredDomain): Promise<void> {
  const forgetDomain = async () => cacheOf(ctx).delete(domain);
  await forgetDomain();
  await queueAfterTransactionHook(forgetDomain);
  await forgetTenant(ctx, tenantId);
}
