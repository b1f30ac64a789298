import type { LookupFunction } from "node:net";
import { isPublicRoutableHost } from "@better-auth/core/utils/host";

/*
 * Prevents DNS rebinding: better-auth looks up a provider's host name and checks the address. Then
 * `fetch` looks up the name again, and an attacker's name server returns a private address this
 * time.
 *
 * On Node, `fetch` accepts an undici dispatcher with a custom `lookup` function. Node does not
 * export undici, but keeps its dispatcher under a symbol that undici documents.
 *
 * Guarded by "an address that becomes private after better-auth checked it is not connected to:
 * %j".
 */

/**
 * Where Node keeps the dispatcher. Newer versions keep it under version 2, and a wrapper under 1.
 */
const DISPATCHERS = [2, 1].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));
const OWN_CLASSES = ["Agent", "Dispatcher1Wrapper"];

type Agent = new (options: { connect: { lookup: LookupFunction } }) => object;

/** The dispatcher made from each class. Loading another version of undici may replace the class. */
const pinned = new WeakMap<Agent, object>();

/**
 * Returns options for `fetch` that allow only public addresses. Empty on runtimes that cannot do
 * this, and with a proxy, because a proxy looks up names itself.
 */
export function connectToPublicAddresses(): object {
  const globals = globalThis as { [name: symbol]: object | undefined };
  const classes = DISPATCHERS.flatMap((name) => (globals[name]?.constructor as Agent) ?? []);
  const lookup = lookUpPublic();
  const [Agent] = classes;
  const isReplaced = classes.some(({ name }) => !OWN_CLASSES.includes(name));
  if (Agent?.name !== "Agent" || isReplaced || !lookup) return {};
  const made = pinned.get(Agent) ?? new Agent({ connect: { lookup } });
  pinned.set(Agent, made);
  return { dispatcher: made };
}

/** Returns Node's lookup function, changed to fail if any address of the name is private. */
function lookUpPublic(): LookupFunction | undefined {
  // Not imported, because bundlers for the edge refuse Node's modules.
  const dns = globalThis.process?.getBuiltinModule?.("node:dns");
  return (
    dns &&
    ((host, options, done) =>
      dns.lookup(host, { ...options, all: true }, (error, found) => {
        const [first] = found ?? [];
        if (error || !first) return done(error ?? new Error(`${host} has no address`), "", 0);
        if (!found.every(({ address }) => isPublicRoutableHost(address))) {
          return done(new Error(`${host} has an address that is not public`), "", 0);
        }
        if (options.all) return done(null, found);
        return done(null, first.address, first.family);
      }))
  );
}
