import type { DBTransactionAdapter, Where } from "better-auth/types";
import { textOf } from "../framework";
import { nullIfInvalidId } from "../isolation/database-errors";
import type { Row } from "../isolation/isolation";

/*
 * What the directories of a tenant say of somebody, each in a row of its own. better-auth keeps the
 * rows of a directory that is decommissioned, and goes by the others. So do we, with one exception:
 * whom the last directory has deactivated stays so after its end, or an application that moves from
 * one directory to the next would let everybody in again who has left.
 */

export const SCIM_USER = "scimUser";

const clauses = (fields: Record<string, string | string[]>): Where[] =>
  Object.entries(fields).map(([field, value]) => ({
    field,
    value,
    operator: Array.isArray(value) ? "in" : "eq",
  }));

const directoryOf = ({ connectionId }: Row) => String(connectionId);

const rowsOf = (adapter: DBTransactionAdapter, tenantId: string, userId: string) =>
  adapter.findMany<Row>({ model: SCIM_USER, where: clauses({ userId, tenantId }) });

/** The directories among those of the rows that are decommissioned, and since when. */
async function endedAmong(
  adapter: DBTransactionAdapter,
  tenantId: string,
  rows: Row[],
): Promise<Map<string, number>> {
  if (!rows.length) return new Map();
  const connectionId = rows.map(directoryOf);
  const where = clauses({ connectionId, tenantId });
  const bindings = await adapter.findMany<Row>({ model: "scimConnectionBinding", where });
  return new Map(
    bindings
      .filter(({ decommissionStatus }) => decommissionStatus !== "active")
      .map((row) => [directoryOf(row), new Date(row.decommissionedAt as Date).getTime()]),
  );
}

/** Somebody by their id, in whichever tenant or on the platform. */
export const findUser = (adapter: DBTransactionAdapter, id: unknown) =>
  adapter
    .findOne<Row>({ model: "user", where: [{ field: "id", value: String(id) }] })
    .catch(nullIfInvalidId);

/**
 * Whether the directory of a tenant has deactivated somebody. better-auth ends the sessions of such
 * a person, and lets them sign in again; here they are barred, by whichever way they come.
 */
export async function isDeactivated(
  adapter: DBTransactionAdapter,
  tenantId: string,
  userId: unknown,
): Promise<boolean> {
  const rows = await rowsOf(adapter, tenantId, String(userId));
  const active = rows.filter((row) => row.active);
  // Mostly there is one, or they agree.
  if (!active.length || active.length === rows.length) return active.length < rows.length;
  const ended = await endedAmong(adapter, tenantId, rows);
  const endOf = (row: Row) => ended.get(directoryOf(row)) ?? Number.POSITIVE_INFINITY;
  const last = Math.max(...rows.map(endOf));
  // Several directories may know somebody: better-auth goes by those that have them as active.
  return !active.some((row) => endOf(row) === last);
}

/** How many directories of the tenant have somebody, without those that are decommissioned. */
export async function countDirectories(
  adapter: DBTransactionAdapter,
  tenantId: string,
  userId: string,
): Promise<number> {
  const rows = await rowsOf(adapter, tenantId, userId);
  const ended = await endedAmong(adapter, tenantId, rows);
  return rows.filter((row) => !ended.has(directoryOf(row))).length;
}

/** Whether a directory of the tenant lets somebody in, once it has lost the row that is deleted. */
export async function isActiveElsewhere(
  adapter: DBTransactionAdapter,
  tenantId: string,
  userId: string,
  deletion: Where[],
): Promise<boolean> {
  const rows = await rowsOf(adapter, tenantId, userId);
  const ended = await endedAmong(adapter, tenantId, rows);
  const deleted = deletion.find(({ field }) => field === "id")?.value;
  return rows.some(
    (row) => row.active && String(row.id) !== String(deleted) && !ended.has(directoryOf(row)),
  );
}

/**
 * Whether a directory of the tenant created a user, with the address that the user has now. A user
 * who signed up and was linked to the directory later may be an attacker. The row says which, because
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

/** Lets somebody in again whom a directory had deactivated that is decommissioned by now. */
export async function liftDeactivation(
  adapter: DBTransactionAdapter,
  tenantId: string,
  userId: string,
): Promise<void> {
  const ended = await endedAmong(adapter, tenantId, await rowsOf(adapter, tenantId, userId));
  if (!ended.size) return;
  const where = clauses({ userId, tenantId, connectionId: [...ended.keys()] });
  await adapter.updateMany({ model: SCIM_USER, where, update: { active: true } });
}
