import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../../core/database";
import { clauses } from "../../core/database";
import { textOf } from "../../core/utils";

/*
 * Each directory of a tenant has a row for each of its users. better-auth keeps the rows of a
 * decommissioned directory, but ignores them. So does the plugin, except that a user deactivated by
 * the last directory stays deactivated. Otherwise, users who have left could sign in again when the
 * tenant changes directories.
 */

export const SCIM_USER = "scimUser";

type OfUser<T> = (adapter: DBTransactionAdapter, tenantId: string, userId: string) => Promise<T>;

const rowsOf: OfUser<Row[]> = (adapter, tenantId, userId) =>
  adapter.findMany<Row>({ model: SCIM_USER, where: clauses({ userId, tenantId }) });

/** A directory's row for a user, and when the directory was decommissioned. */
type Entry = Row & { endedAt: number };

const IN_USE = Number.POSITIVE_INFINITY;

const connectionsOf = (rows: Row[]) => rows.map(({ connectionId }) => String(connectionId));

/** Returns the rows of all directories of the tenant for a user. */
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
 * Returns whether the tenant's directory deactivated a user. better-auth ends the sessions of the
 * user but lets them sign in again. The plugin also refuses every sign-in method.
 */
export const isDeactivated: OfUser<boolean> = async (adapter, tenantId, userId) => {
  const entries = await entriesOf(adapter, tenantId, userId);
  const last = Math.max(...entries.map(({ endedAt }) => endedAt));
  // With several directories in use, one active row is enough, as in better-auth.
  return entries.length > 0 && !entries.some((entry) => entry.active && entry.endedAt === last);
};

/**
 * Returns whether a directory of the tenant created a user with their current email. A user who
 * signed up and was linked to the directory later may be an attacker. Only the row shows the
 * difference, because the attacker can change everything else.
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

/** Lets a user sign in again if the directory that deactivated the user is decommissioned. */
export const liftDeactivation: OfUser<void> = async (adapter, tenantId, userId) => {
  const ended = (await entriesOf(adapter, tenantId, userId)).filter((entry) => !isInUse(entry));
  if (!ended.length) return;
  const where = clauses({ userId, tenantId, connectionId: connectionsOf(ended) });
  await adapter.updateMany({ model: SCIM_USER, where, update: { active: true } });
};
