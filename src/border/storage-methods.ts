import type { SecondaryStorage } from "better-auth/db";
import { currentEndpoint } from "../scope/endpoint";
import { storages } from "../scope/scope";

/*
 * The methods of a storage, which are replaced in place. A storage may be a copy of one that another
 * instance has confined, or be built on it: of two borders, the one that is asked first is the only one.
 */

export const METHODS = ["get", "set", "delete", "getAndDelete", "increment"] as const;

type Method = (...args: unknown[]) => Promise<unknown>;
export type Methods = Partial<Record<(typeof METHODS)[number], Method>>;

/** The methods that a storage has, each replaced: older storages do without the last two. */
export function replaceMethods(
  storage: Methods,
  replace: (name: keyof Methods, method: Method) => Method,
) {
  const methods = METHODS.flatMap((name) => {
    const method = storage[name];
    return method ? [[name, replace(name, method)]] : [];
  });
  return Object.fromEntries(methods) as Methods & SecondaryStorage;
}

/** What a border asks: below all others. */
export const belowBorders = (storage: Methods) =>
  replaceMethods(storage, (_, method) => async (...args) => {
    const { storage: requests } = storages();
    const below = new Below(requests.getStore(), currentEndpoint());
    return requests.run(below, () => method.apply(storage, args));
  });

const BELOW = Symbol.for("better-auth-tenant:below-border");

/** The state of a request while its border asks the storage: for this endpoint, and no other. */
class Below extends WeakMap<object, unknown> {
  [BELOW]: object | undefined;

  constructor(around: WeakMap<object, unknown> = new WeakMap(), endpoint?: object) {
    super();
    this[BELOW] = endpoint;
    this.get = (key) => around.get(key);
    this.has = (key) => around.has(key);
    this.set = (key, value) => {
      around.set(key, value);
      return this;
    };
  }
}

/** Whether another border asks. What the storage itself asks of better-auth is another endpoint's. */
export function isBelow(): boolean {
  const store = storages().storage.getStore();
  return store !== undefined && BELOW in store && store[BELOW] === currentEndpoint();
}
