import type { Subject } from "../instance/subject";
import type { SideName } from "../sides/places";
import type { Ownership } from "./ownership";
import { textsIn, withoutBookkeeping } from "./texts";

type Entry = { value: string; ttl?: unknown };
type Storage = Record<string, (key: string, ...rest: unknown[]) => unknown>;

const RAW = Symbol.for("better-auth-tenant:raw-storage");

/** What was put into secondary storage during the run, below the isolation: it cannot be listed. */
export function openEntries({ ctx }: Subject, note: (key: string, value: string) => void) {
  const storages = [ctx.options.secondaryStorage, ctx.secondaryStorage] as { [RAW]?: Storage }[];
  const raws = new Set(storages.flatMap((storage) => (storage?.[RAW] ? [storage[RAW]] : [])));
  const entries = new Map<string, Entry>();
  let before = new Map<string, Entry>();
  const touched = new Set<string>();
  const put = (key: string, entry?: Entry) => {
    touched.add(key);
    if (entry) entries.set(key, entry);
    else entries.delete(key);
  };
  /** What there is after a call. */
  const after: Record<string, (key: string, ...rest: unknown[]) => Entry | undefined> = {
    set: (_, value, ttl) => ({ value: String(value), ttl }),
    delete: () => undefined,
    getAndDelete: () => undefined,
    increment: (key, ttl) => ({ value: String(Number(entries.get(key)?.value ?? 0) + 1), ttl }),
  };
  const watched = [...raws].map((raw) => {
    const original = { ...raw };
    for (const [name, entryAfter] of Object.entries(after)) {
      const method = original[name];
      if (!method) continue;
      raw[name] = (key, ...call) => {
        const entry = entryAfter(key, ...call);
        put(key, entry);
        if (name === "set" && entry) note(key, entry.value);
        return method(key, ...call);
      };
    }
    return { raw, original };
  });

  async function write(key: string, entry?: Entry): Promise<void> {
    put(key, entry);
    for (const { original } of watched) {
      if (entry) await original.set?.(key, entry.value, entry.ttl);
      else await original.delete?.(key);
    }
  }

  return {
    /** From here on, this is what there is. */
    remember() {
      before = new Map(entries);
      touched.clear();
    },

    textsOf: (side: SideName, ownership: Ownership): string[] =>
      [...before]
        .filter(([key, { value }]) => ownership.ownersOfEntry(key, value).has(side))
        // A session is stored under its token, which only its tenant may know.
        .flatMap(([key, { value }]) => [key, ...textsIn(value)]),

    /** The entries of the sides that were changed; undoes all changes. */
    async changesOf(sides: SideName[], { ownersOfEntry }: Ownership): Promise<string[]> {
      const found: string[] = [];
      for (const key of [...touched]) {
        const [was, is] = [before.get(key), entries.get(key)];
        if (was?.value === is?.value) continue;
        const owners = [was, is].flatMap((entry) => [...ownersOfEntry(key, entry?.value)]);
        const victims = sides.filter((side) => owners.includes(side));
        if (victims.length && !isBookkeeping(key, was, is)) {
          const kind = was ? (is ? "changed" : "gone") : "new";
          found.push(`secondary storage of ${victims.join(" and ")}: ${kind} ${key}`);
        }
        await write(key, was);
      }
      touched.clear();
      return found;
    },

    async forget(keys: Iterable<string> = [...entries.keys()]) {
      for (const key of keys) await write(key);
    },

    stop() {
      for (const { raw, original } of watched) Object.assign(raw, original);
    },
  };
}

const isBookkeeping = (key: string, was: Entry | undefined, is: Entry | undefined) =>
  /(^|:)api-key:/.test(key) &&
  JSON.stringify(withoutBookkeeping(was?.value)) === JSON.stringify(withoutBookkeeping(is?.value));
