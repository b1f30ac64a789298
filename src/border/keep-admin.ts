import type { DBTransactionAdapter, Where } from "better-auth/types";
import { lazy } from "../framework";
import { notes } from "../scope/scope";
import type { Border, PolicyOf, Row } from "./border";

type Call = { model: string; where: Where[]; update?: Row; set?: Row };
type Method = (call: Call) => Promise<unknown>;

/** Loaded by the first tenant that might lose its administrator. */
const administrators = lazy(() => import("./administrators"));

/** Every method that can change a user, and those that take one away. */
const CHANGES = ["update", "updateMany", "incrementOne"];
const DELETIONS = ["delete", "deleteMany", "consumeOne"];

/** On a call that was looked at already. */
const SEEN = Symbol("seen");

/**
 * Looks at calls of the adapter that may take the last administrator of a tenant away: here, where
 * users are changed, whichever endpoint asks for it.
 */
export function guardAdmins(roles: string[], border: () => Border): PolicyOf["guard"] {
  return async (name, given: Call, run) => {
    const again = run as unknown as Method;
    const update = given.update ?? given.set;
    const mayTake = DELETIONS.includes(name) || (CHANGES.includes(name) && takesAway(update));
    if (!mayTake || SEEN in given || border().confinedModel(given.model) !== "user") {
      return again(given);
    }
    if (isLeaving(given)) return again(given);
    const { keepAdmin } = await administrators();
    return keepAdmin(border(), roles, { where: given.where, update }, (adapter) => {
      const method = adapter[name as keyof DBTransactionAdapter] as unknown as Method;
      return method({ ...given, [SEEN]: true } as Call);
    });
  };
}

/** The same for a whole user: better-auth deletes sessions and accounts before the row. */
export async function keepAdminsAccounts(
  roles: string[],
  border: Border,
  userId: string,
  deleteUser: () => Promise<void>,
): Promise<void> {
  return (await administrators()).keepAdminAround(border, roles, userId, deleteUser);
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
