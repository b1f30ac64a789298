import type { AuthContext } from "better-auth";
import { boundedMap, oncePerObject } from "../framework";
import { instanceKey, isOfTransaction, isolationOf } from "../isolation/isolation";
import { runInScope, scopeOf } from "../request/scope";
import { type DomainChange, emit, type TenantActor } from "../tenants/events";
import { hasRecord } from "./dns";
import { recordNameOf } from "./name";
import type { ResolvedDomainOptions, StoredDomain } from "./options";
import * as store from "./store";

/** The DNS record that proves a domain. */
export type DomainRecord = { type: "TXT"; name: string; value: string };

export const recordOf = ({ domain, token }: StoredDomain): DomainRecord => ({
  type: "TXT",
  name: recordNameOf(domain),
  value: token,
});

export const tell = (
  ctx: AuthContext,
  actor: TenantActor,
  { tenantId, domain, host }: StoredDomain,
  change: DomainChange,
) => runInScope(scopeOf(tenantId), () => emit(ctx, actor, tenantId, { ...change, domain, host }));

/** Looks for the record, and gives the domain to the tenant if it is there. Returns the row after it. */
export async function verify(
  ctx: AuthContext,
  options: ResolvedDomainOptions,
  actor: TenantActor,
  row: StoredDomain,
): Promise<StoredDomain> {
  if (await hasRecord(ctx, options, recordOf(row))) {
    const taken = await store.markVerified(ctx, row);
    if (taken?.loser) {
      await tell(ctx, "server", taken.loser, { type: "domain:lost", reason: "claimed" });
    }
    if (taken) await tell(ctx, actor, row, { type: "domain:verified" });
  } else if (store.isVerified(row)) await endIfGone(ctx, options, row);
  return store.requireRow(ctx, row.domain);
}

/** A record that has just disappeared may be a mistake that is repaired soon. */
async function endIfGone(
  ctx: AuthContext,
  { recheckAfter }: ResolvedDomainOptions,
  row: StoredDomain,
) {
  const hasEnded = await store.markGone(ctx, row, new Date(Date.now() - recheckAfter * 1000));
  if (hasEnded) await tell(ctx, "server", row, { type: "domain:lost", reason: "record-gone" });
}

/**
 * Looks for the records of verified domains that are in use, without keeping the request: seven times
 * in `recheckAfter`, and at most so often in each process.
 */
export function recheck(ctx: AuthContext, options: ResolvedDomainOptions, rows: StoredDomain[]) {
  // What a transaction reads may be rolled back, and its connection is gone when DNS answers.
  if (isOfTransaction(isolationOf(ctx))) return;
  const interval = (options.recheckAfter * 1000) / 7;
  const checkedAt = checkTimes(instanceKey(ctx));
  for (const row of rows) {
    const last = Math.max(new Date(row.recordSeenAt ?? 0).getTime(), checkedAt.get(row.id) ?? 0);
    if (!store.isVerified(row) || Date.now() < last + interval) continue;
    setCheckTime(checkedAt, row.id, Date.now());
    ctx.runInBackground(lookAgain(ctx, options, row));
  }
}

/** When the record of a row was last looked for, in this process. */
const checkTimes = oncePerObject((_instance: object) => new Map<string, number>());
const setCheckTime = boundedMap<number>(10_000);

async function lookAgain(ctx: AuthContext, options: ResolvedDomainOptions, row: StoredDomain) {
  try {
    if (await hasRecord(ctx, options, recordOf(row))) await store.markSeen(ctx, row);
    else await endIfGone(ctx, options, row);
  } catch (error) {
    // DNS has failed, which is logged, or the database has. The next use looks again.
    ctx.logger.debug(`${row.domain} could not be checked`, error);
  }
}
