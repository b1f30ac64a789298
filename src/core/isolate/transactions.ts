import type { DBTransactionAdapter } from "better-auth/types";
import { ADAPTER_METHODS } from "../database";
import type { Transactions } from "../isolation";
import { createAsyncStorage, currentTransaction } from "../request";
import { asTryAgain } from "./rolled-back";

/** A transaction that the running code is inside of. */
interface Transaction {
  /** The isolated adapter of the transaction. */
  adapter: DBTransactionAdapter;
  /** False once the callback of the transaction is done. */
  isOpen: boolean;
  instance: object;
  /** The transaction around it, perhaps of another instance. */
  around?: Transaction;
}

/**
 * One AsyncLocalStorage for all instances: each one costs time at every promise, and is never
 * removed.
 */
let storage: ReturnType<typeof createAsyncStorage<Transaction>> | undefined;

/**
 * Tracks which transaction of an instance the running code is in. better-auth gives the
 * transaction's adapter only to code that calls `getCurrentAdapter`. A plugin that keeps the
 * adapter from its `init`, as `username()` does, would use a second connection while the
 * transaction holds the first. If all connections are taken this way, all requests wait forever.
 */
export function trackTransactions(): Transactions {
  const instance = {};
  /** What better-auth does after the commit of a transaction, by the callback of the transaction. */
  const afterCommit = new WeakMap<object, unknown[]>();
  storage ??= createAsyncStorage<Transaction>();
  const running = storage;
  return {
    find(): DBTransactionAdapter | undefined {
      let transaction = running.getStore();
      while (transaction && transaction.instance !== instance) transaction = transaction.around;
      return transaction?.isOpen ? transaction.adapter : undefined;
    },

    async run<R>(
      inside: DBTransactionAdapter,
      outside: DBTransactionAdapter,
      isolate: (whileOpen: DBTransactionAdapter) => DBTransactionAdapter,
      callback: (isolated: DBTransactionAdapter) => Promise<R>,
    ): Promise<R> {
      const calls = new Set<Promise<unknown>>();
      // If the callback runs again, it queues its hooks again. better-auth forgets those of the
      // attempt that was undone by itself only since 1.7.20.
      afterCommit.get(callback)?.splice(0);
      /**
       * The error with which the database rolled back the transaction, or the connection was lost.
       * MySQL would keep later writes.
       */
      let undone: unknown;
      const methods = ADAPTER_METHODS.map((method) => {
        type Run = (call: unknown) => Promise<unknown>;
        const call: Run = (input) => {
          if (!transaction.isOpen) return (outside[method] as Run)(input);
          if (undone) return Promise.reject(undone);
          const { isTransactionActive, pendingHooks } = currentTransaction() ?? {};
          if (isTransactionActive && pendingHooks) afterCommit.set(callback, pendingHooks);
          const result = (inside[method] as Run)(input).catch((error) => {
            const explained = asTryAgain(error);
            if (explained !== error) undone = explained;
            throw explained;
          });
          calls.add(result);
          const forget = () => void calls.delete(result);
          result.then(forget, forget);
          return result;
        };
        return [method, inside[method] && call];
      });
      const whileOpen = Object.assign(Object.create(inside), Object.fromEntries(methods));
      const adapter = isolate(whileOpen);
      const around = running.getStore();
      const transaction: Transaction = { adapter, isOpen: true, instance, around };
      try {
        const result = await running.run(transaction, () => callback(transaction.adapter));
        if (undone) throw undone;
        return result;
      } catch (error) {
        throw undone ?? error;
      } finally {
        // A call may be several statements, and the last one must not come after the commit.
        while (calls.size > 0) {
          await Promise.allSettled(calls);
          await new Promise((resolve) => setTimeout(resolve));
        }
        transaction.isOpen = false;
      }
    },
  };
}
