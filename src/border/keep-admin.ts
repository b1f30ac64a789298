import type { DBTransactionAdapter, Where } from "better-auth/types";
import { lazy } from "../framework";
import { notes } from "../scope/scope";
import type { Border, Row } from "./border";

export type Call = {
  model: string;
  where: Where[];
  join?: Row;
  data?: Row;
  update?: Row;
  set?: Row;
};
type Method = (call: Call) => Promise<unknown>;

/** Loaded by the first tenant that might lose its administrator. */
export const administrators = lazy(() => import("./administrators"));

/** Every method that can change a user, and those that take one away. */
const CHANGES = ["update", "updateMany", "incrementOne"];
const DELETIONS = ["delete", "deleteMany", "consumeOne"];

/** On a call that was looked at already. */
const SEEN = Symbol("seen");

/** What a call of the adapter changes, if that is what it is there for. */
export const changeOf = (name: string, { update, set }: Call): Row | undefined =>
  CHANGES.includes(name) ? (update ?? set) : undefined;

/** Whether a call about users may take an administrator away. */
export function mayTakeAdmin(name: string, call: Call): boolean {
  const mayTake = DELETIONS.includes(name) || takesAway(changeOf(name, call));
  return mayTake && !(SEEN in call) && !isLeaving(call);
}

/**
 * Runs a call that may take the last administrator of a tenant away: here, where users are changed,
 * whichever endpoint asks for it.
 */
export async function keepAdmins(
  roles: string[],
  border: Border,
  name: string,
  call: Call,
  transaction: DBTransactionAdapter | undefined,
): Promise<unknown> {
  const { keepAdmin } = await administrators();
  const change = { where: call.where, update: changeOf(name, call) };
  const run = (adapter: DBTransactionAdapter) => {
    const method = adapter[name as keyof DBTransactionAdapter] as unknown as Method;
    return method({ ...call, [SEEN]: true } as Call);
  };
  return keepAdmin(border, roles, change, run, transaction);
}

const takesAway = (update: Row | undefined) =>
  update !== undefined && ("role" in update || Boolean(update.banned));

/** The row of somebody whose sessions and accounts are gone: that was looked at before those went. */
function isLeaving({ where: [clause, ...rest] }: Call): boolean {
  const { leaving } = notes();
  return (
    leaving !== undefined && clause?.field === "id" && clause.value === leaving && !rest.length
  );
}
