import type { AuthContext } from "better-auth";
import { instanceKey, isolationOf, seesUncommittedRows } from "../../core/isolation";
import { runInScope, scopeOf } from "../../core/request";
import { boundedMap, oncePerObject } from "../../core/utils";
import { type DomainChange, emit, type TenantActor } from "../management/events";
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

/** Gives the domain to the tenant if the DNS record is there. Returns the new row. */
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

/** Ends a verification once its record has been gone for `recheckAfter`, not at the first miss. */
async function endIfGone(
  ctx: AuthContext,
  { recheckAfter }: ResolvedDomainOptions,
  row: StoredDomain,
) {
  const hasEnded = await store.markGone(ctx, row, new Date(Date.now() - recheckAfter * 1000));
  if (hasEnded) await tell(ctx, "server", row, { type: "domain:lost", reason: "record-gone" });
}

/**
 * Looks for the records of verified domains in the background, when the domains are used. In each
 * process, looks for a record at most seven times in `recheckAfter`.
 */
export function recheck(ctx: AuthContext, options: ResolvedDomainOptions, rows: StoredDomain[]) {
  // Does nothing inside a transaction: its rows may be rolled back, and its connection is gone when
  // DNS answers.
  if (seesUncommittedRows(isolationOf(ctx))) return;
  const interval = (options.recheckAfter * 1000) / 7;
  const checkedAt = checkTimes(instanceKey(ctx));
  for (const row of rows) {
    const last = Math.max(new Date(row.recordSeenAt ?? 0).getTime(), checkedAt.get(row.id) ?? 0);
    if (!store.isVerified(row) || Date.now() < last + interval) continue;
    setCheckTime(checkedAt, row.id, Date.now());
    ctx.runInBackground(lookAgain(ctx, options, row));
  }
}

/** The times at which this process last looked for the records, by id of the row. */
const checkTimes = oncePerObject((_instance: object) => new Map<string, number>());
const setCheckTime = boundedMap<number>(10_000);

async function lookAgain(ctx: AuthContext, options: ResolvedDomainOptions, row: StoredDomain) {
  try {
    if (await hasRecord(ctx, options, recordOf(row))) await store.markSeen(ctx, row);
    else await endIfGone(ctx, options, row);
  } catch (error) {
    // DNS or the database has failed. A later use of the domain looks again.
    ctx.logger.debug(`${row.domain} could not be checked`, error);
  }
}
