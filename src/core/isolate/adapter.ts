import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import {
  ADAPTER_METHODS,
  type AdapterCall,
  type AdapterMethod,
  type Guard,
  type NextGuard,
} from "../database";
import type { Transactions } from "../isolation";
import { type Isolation, isolateTransaction, isolationOf, setIsolation } from "../isolation";
import { refuse } from "../schema";
import { replaceMethods } from "../utils";
import { withExactRows } from "./exact-rows";
import { isolatedMethods, type Methods } from "./methods";
import { withUniqueValues } from "./unique-values";

/** Returns an adapter with the current methods, which later replacements do not affect. */
export function rawAdapter(adapter: DBAdapter): DBAdapter {
  type Method = ((...call: never[]) => unknown) | undefined;
  const names = [...ADAPTER_METHODS, "transaction"] as const;
  const methods = names.map((name) => [name, (adapter[name] as Method)?.bind(adapter)]);
  return { __proto__: adapter, ...Object.fromEntries(methods) };
}

/**
 * Isolates the adapter: from now on, it reads, changes, creates and deletes rows of isolated models
 * only in the scope of the running request (R3), except for operators (`cross-tenant.ts`). Changes
 * the adapter in place, because plugins may keep it from their `init`, and better-auth's check of
 * the database schema is registered for this object.
 *
 * Guarded by "the adapter that was changed in place still has better-auth's check of the tables".
 */
export function isolateAdapter(adapter: DBAdapter, isolation: Isolation): void {
  const { unscoped, database, transactions } = isolation;
  if (isolationOf(adapter)) {
    refuse(
      "two instances of better-auth share one database adapter object. Create one for each: database: (options) => adapter(options)",
    );
  }
  type Run<R> = (inner: DBTransactionAdapter) => Promise<R>;
  const transaction = <R>(run: Run<R>): Promise<R> => {
    // A nested transaction joins the open one: the database may have no second connection.
    const surrounding = transactions.find();
    if (surrounding) return run(surrounding);
    return unscoped.transaction((given) => {
      // Adapters without transactions pass themselves.
      if (given === adapter || given === unscoped) return run(adapter);
      const isolate = (whileOpen: DBTransactionAdapter) => {
        const inner = withUniqueValues(isolation, withExactRows(isolation.ctx, whileOpen));
        const isolated = isolateTransaction(inner, isolation);
        // The `transaction` that better-auth provides would bypass isolation.
        return Object.assign(isolated, guarded(inner, isolation, isolated), { transaction });
      };
      return transactions.run(given, database, isolate, run);
    });
  };
  const methods = { ...inTransaction(guarded(unscoped, isolation), transactions), transaction };
  setIsolation(methods, isolation);
  if (!replaceMethods(adapter, methods)) {
    refuse(
      "the methods of this database adapter cannot be replaced, so it cannot be isolated. Write: database: (options) => ({ ...adapter(options) })",
    );
  }
}

/**
 * Returns the methods of the instance's adapter. While a transaction is open, they run inside it.
 */
function inTransaction(methods: Methods, transactions: Transactions): Methods {
  type Run = (call: AdapterCall) => Promise<unknown>;
  const entries = ADAPTER_METHODS.map((method) => {
    const call: Run = (input) =>
      ((transactions.find() ?? methods)[method] as unknown as Run)(input);
    return [method, call];
  });
  return Object.fromEntries(entries);
}

/** Returns the isolated methods. A call first passes the guards that check its model and method. */
function guarded(
  unscoped: DBTransactionAdapter,
  isolation: Isolation,
  transaction?: DBTransactionAdapter,
): Methods {
  const guardedMethod = (method: AdapterMethod, run: NextGuard): NextGuard => {
    const runFrom = async (start: number, call: AdapterCall): Promise<unknown> => {
      const model = isolation.isolatedModel(call.model);
      const checks = ({ models, methods }: Guard) =>
        (models?.includes(model ?? call.model) ?? true) && (methods?.includes(method) ?? true);
      const index = isolation.guards.findIndex((guard, at) => at >= start && checks(guard));
      const guarded = { method, call, model, unscoped, transaction };
      return (
        isolation.guards[index]?.run(guarded, (changed) => runFrom(index + 1, changed)) ?? run(call)
      );
    };
    return (call) => runFrom(0, call);
  };
  const methods = isolatedMethods(unscoped, isolation);
  const entries = ADAPTER_METHODS.map((name) => [
    name,
    guardedMethod(name, methods[name] as never),
  ]);
  return Object.fromEntries(entries);
}
