import type { DBTransactionAdapter, Where } from "better-auth/types";
import { notes } from "../scope/scope";
import type { Border, Row } from "./border";

type Methods = Omit<DBTransactionAdapter, "id" | "options">;
type Call = { model: string; where: Where[]; update?: Row; set?: Row };
type Method = (call: Call) => Promise<unknown>;

/** Every method that can change or delete a user. */
const METHODS = [
  "update",
  "updateMany",
  "delete",
  "deleteMany",
  "consumeOne",
  "incrementOne",
] as const;

/** On a call that was looked at already. */
const SEEN = Symbol("seen");

/**
 * The confined methods, with a look at those that may take the last administrator of a tenant away:
 * here, where users are changed, whichever endpoint asks for it.
 */
export function keepingAdmins(methods: Methods, getBorder: () => Border): Methods {
  const given = methods as unknown as Record<string, Method>;
  const guarded = METHODS.map((name) => {
    const run = given[name] as Method;
    const guard: Method = (call) => {
      const { keepAdmin, confinedModel } = getBorder();
      const update = call.update ?? call.set;
      const mayTake = name.startsWith("delete") || name === "consumeOne" || takesAway(update);
      if (!keepAdmin || !mayTake || SEEN in call) return run(call);
      if (confinedModel(call.model) !== "user" || isLeaving(call)) return run(call);
      return keepAdmin({ where: call.where, update }, (adapter) => {
        const again = adapter[name] as unknown as Method;
        return again({ ...call, [SEEN]: true } as Call);
      });
    };
    return [name, guard];
  });
  return { ...methods, ...Object.fromEntries(guarded) };
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
