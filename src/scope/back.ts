import {
  type AuthEndpointContext,
  runWithEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";
import type { DBTransactionAdapter } from "better-auth/types";
import { FROM, type Here } from "./endpoint";
import { currentTransaction, storages } from "./scope";

/*
 * What goes through somebody else's queue is called back in the middle of another request. Loaded
 * with the first transaction.
 */

/**
 * Takes down where the running code is: its request, its transaction and its endpoint. Nothing but
 * these, because an adapter may keep its transactions in an AsyncLocalStorage, too.
 *
 * Guarded by "what better-auth knows of a request is in three storages".
 */
export function returnHere(): Here {
  const { adapters } = storages();
  const adapter = adapters.getStore() as NonNullable<ReturnType<typeof adapters.getStore>>;
  const toRequest = returnToRequest();
  return (run) => toRequest(async () => await adapters.run(adapter, run));
}

/** The same without the transaction. */
function returnToRequest(): Here {
  const { storage: requests } = storages();
  // Outside of requests there is nothing to take down, and to nothing it comes back.
  const request = requests.getStore() as WeakMap<object, unknown>;
  const endpoint = tryGetCurrentAuthEndpointContext() as AuthEndpointContext;
  return async (run) => await requests.run(request, () => runWithEndpointContext(endpoint, run));
}

type Method = (call: object) => Promise<unknown>;

/**
 * An adapter with our border below it and somebody's methods in between. What comes through them
 * comes to the border once more, and perhaps out of a queue.
 */
export function sayingWhereFrom<A extends DBTransactionAdapter>(adapter: A): A {
  const methods = Object.entries(adapter).map(([name, method]) => [
    name,
    typeof method !== "function" || name === "transaction"
      ? method
      : async (call: object) => (method as Method)({ ...call, [FROM]: returnHere() }),
  ]);
  const said = { __proto__: adapter, ...Object.fromEntries(methods) };
  saying.add(said);
  return said;
}

const saying = new WeakSet<object>();

/** The transaction of such an adapter is one, too. */
export const sayingAs = <A extends DBTransactionAdapter>(outer: object, inner: A): A =>
  saying.has(outer) ? sayingWhereFrom(inner) : inner;

/**
 * better-auth keeps what is to run after a transaction until it is committed, which may be outside
 * of the request that asks for it. From here on it goes back there, and not into the transaction,
 * which is over by then.
 *
 * Guarded by "what runs after a transaction is put on a list of the transaction".
 */
export function keepHooksHere(): void {
  const { pendingHooks } = currentTransaction() ?? {};
  if (!pendingHooks || Object.hasOwn(pendingHooks, "push")) return;
  const push = pendingHooks.push.bind(pendingHooks);
  pendingHooks.push = (...hooks) => {
    const here = returnToRequest();
    return push(...hooks.map((hook) => () => here(hook)));
  };
}
