import type { DBTransactionAdapter } from "better-auth/types";
import { clauses, textOf } from "../framework";
import type { Row } from "../isolation/isolation";

/*
 * Each directory of a tenant has a row for each of its users. better-auth keeps the rows of a
 * decommissioned directory, and ignores them. So do we, with one exception: users that the last
 * directory deactivated stay deactivated. Otherwise, moving to another directory would let users in
 * again who have left.
 */

export const SCIM_USER = "scimUser";

type OfUser<T> = (adapter: DBTransactionAdapter, tenantId: string, userId: string) => Promise<T>;

const rowsOf: OfUser<Row[]> = (adapter, tenantId, userId) =>
  adapter.findMany<Row>({ model: SCIM_USER, where: clauses({ userId, tenantId }) });

/** A directory's row for a user, and when the directory was decommissioned. */
type Entry = Row & { endedAt: number };

const IN_USE = Number.POSITIVE_INFINITY;

const connectionsOf = (rows: Row[]) => rows.map(({ connectionId }) => String(connectionId));

/** What the tenant's directories say about a user. */
export const entriesOf: OfUser<Entry[]> = async (adapter, tenantId, userId) => {
  const rows = await rowsOf(adapter, tenantId, userId);
  if (!rows.length) return [];
  const where = clauses({ connectionId: connectionsOf(rows), tenantId });
  const bindings = await adapter.findMany<Row>({ model: "scimConnectionBinding", where });
  const ends = new Map(
    bindings
      .filter(({ decommissionStatus }) => decommissionStatus !== "active")
      .map((row) => [String(row.connectionId), new Date(row.decommissionedAt as Date).getTime()]),
  );
  return rows.map((row) => ({ ...row, endedAt: ends.get(String(row.connectionId)) ?? IN_USE }));
};

export const isInUse = ({ endedAt }: Entry) => endedAt === IN_USE;

/**
 * Whether the tenant's directory deactivated a user. better-auth ends the sessions of such a user but
 * lets them sign in again; here no sign-in method works for them.
 */
export const isDeactivated: OfUser<boolean> = async (adapter, tenantId, userId) => {
  const entries = await entriesOf(adapter, tenantId, userId);
  const last = Math.max(...entries.map(({ endedAt }) => endedAt));
  // Of several directories in use, one that has the user as active is enough, as in better-auth.
  return entries.length > 0 && !entries.some((entry) => entry.active && entry.endedAt === last);
};

/**
 * Whether a directory of the tenant created a user, with the email that the user has now. A user who
 * signed up and was linked to the directory later may be an attacker. The row says which, because
 * the attacker can change everything that it could be inferred from.
 */
export async function isCreatedByDirectory(
  adapter: DBTransactionAdapter,
  tenantId: string,
  { id, email }: Row,
): Promise<boolean> {
  const rows = await rowsOf(adapter, tenantId, String(id));
  return rows.some(
    (row) => row.createdUser === true && textOf(row.primaryEmail).toLowerCase() === email,
  );
}

/** Lets a user in again that a directory deactivated before it was decommissioned. */
export const liftDeactivation: OfUser<void> = async (adapter, tenantId, userId) => {
  const ended = (await entriesOf(adapter, tenantId, userId)).filter((entry) => !isInUse(entry));
  if (!ended.length) return;
  const where = clauses({ userId, tenantId, connectionId: connectionsOf(ended) });
  await adapter.updateMany({ model: SCIM_USER, where, update: { active: true } });
};
