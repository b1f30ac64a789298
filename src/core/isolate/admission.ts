import { getCurrentAdapter } from "@better-auth/core/context";
import type { DBTransactionAdapter } from "better-auth/types";
import { adminTarget } from "../admin-endpoints";
import type { Row } from "../database";
import { currentEndpoint, isServerCall } from "../endpoint";
import { tenantError } from "../errors";
import type { Admission, AdmittedSession, Candidate } from "../extension";
import { extensionsWith } from "../extensions";
import { type Isolation, isolationOf } from "../isolation";
import { currentRequest } from "../request";
import { lookUpTenant } from "../tenants/tenants";

/*
 * The extensions decide who becomes a user (R13), and which sessions are created and kept (R14).
 * They are asked where the row of a user is written, and in `internalAdapter` for sessions, so
 * their decisions hold for every endpoint that creates them there.
 */

/**
 * Returns whether a call may create and change any user: server code, admin endpoints, and the
 * tenant's directory.
 */
export const isTrustedWithUsers = (): boolean =>
  isServerCall() || adminTarget(currentEndpoint()) !== undefined || currentRequest().isTenantItself;

/** R13: refuses a new user whom an extension does not admit. Extensions may change the row. */
export async function askAboutUser(
  isolation: Isolation,
  tenantId: string | null,
  row: Row,
  adapter?: DBTransactionAdapter,
): Promise<Admission | undefined> {
  const context = currentEndpoint()?.context;
  // The endpoint may belong to another instance, which uses this instance's adapter.
  const ctx = context && isolationOf(context) === isolation ? context : isolation.ctx;
  // The tenant was deleted meanwhile, or `runInTenant` got a wrong id.
  if (tenantId !== null && !(await lookUpTenant(ctx, tenantId, adapter))) {
    throw tenantError("TENANT_NOT_FOUND");
  }
  let asked: Promise<Admission | undefined> | undefined;
  const candidate: Candidate = {
    ctx,
    tenantId,
    row,
    isTrusted: isTrustedWithUsers(),
    adapter,
    findAdmission: () => {
      asked ??= findExpected(isolation, candidate);
      return asked;
    },
  };
  for (const { admitUser } of extensionsWith(isolation, "admitUser")) await admitUser(candidate);
  const admission = await candidate.findAdmission();
  Object.assign(row, admission?.data);
  return admission;
}

async function findExpected(isolation: Isolation, candidate: Candidate) {
  for (const extension of extensionsWith(isolation, "findAdmission")) {
    const admission = await extension.findAdmission(candidate);
    if (admission) return admission;
  }
  return undefined;
}

/** Columns of a session that no extension may change. */
const FIXED = ["id", "token", "tenantId", "userId", "generation"];

/** R14: returns what the extensions change in a session; undefined if they change nothing. */
export async function askAboutSession(
  isolation: Isolation,
  admitted: AdmittedSession,
): Promise<Row | undefined> {
  let changes: Row | undefined;
  for (const extension of extensionsWith(isolation, "admitSession")) {
    const session = { ...admitted.session, ...changes };
    const changed = await extension.admitSession({ ...admitted, session });
    if (!changed) continue;
    const fixed = FIXED.find((column) => column in changed);
    if (fixed) throw new Error(`${extension.name}: admitSession cannot change ${fixed}`);
    const ends = isEarlier(changed.expiresAt, session.expiresAt) ? {} : endOf(session);
    changes = { ...changes, ...changed, ...("expiresAt" in changed && ends) };
  }
  return changes;
}

const endOf = ({ expiresAt }: Row) => (expiresAt === undefined ? {} : { expiresAt });

/** Returns whether a date is valid and earlier than another one, which may be invalid. */
function isEarlier(end: unknown, than: unknown): boolean {
  const time = new Date(end as Date).getTime();
  return Number.isFinite(time) && !(new Date(than as Date).getTime() <= time);
}

/**
 * Asks the extensions about a session's new `expiresAt`, and returns the fields that they change.
 */
export async function capExpiry(
  isolation: Isolation,
  tenantId: string | null,
  session: Row,
  given?: DBTransactionAdapter,
): Promise<Row | undefined> {
  if (!("expiresAt" in session)) return undefined;
  const adapter = given ?? (await getCurrentAdapter(isolation.ctx.adapter));
  const { expiresAt } = session;
  return askAboutSession(isolation, { tenantId, session: { expiresAt }, isNew: false, adapter });
}
