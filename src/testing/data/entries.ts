import type { Subject } from "../instance/subject";
import { parse } from "../sides/browser";
import type { SideName } from "../sides/places";
import type { Ownership } from "./ownership";
import { isDeepStrictEqual, textsIn } from "./texts";

interface Entry {
  value: string;
  ttl?: number | undefined;
}

interface Storage {
  set(key: string, value: string, ttl?: number): unknown;
  delete(key: string): unknown;
  getAndDelete?(key: string): unknown;
  increment?(key: string, ttl: number): unknown;
}

const RAW = Symbol.for("better-auth-tenant:raw-storage");

/**
 * What has been put into secondary storage during the run, below the isolation. A storage cannot be
 * listed, but everything that belongs to the people of the kit was put there under its eyes.
 */
export function openEntries({ ctx }: Subject, note: (key: string, value: string) => void) {
  const storages = new Set([ctx.options.secondaryStorage, ctx.secondaryStorage]);
  const raws = [...storages].flatMap((storage) => {
    const raw = (storage as { [RAW]?: Storage } | undefined)?.[RAW];
    return raw ? [raw] : [];
  });
  const entries = new Map<string, Entry>();
  let before = new Map<string, Entry>();
  const touched = new Set<string>();
  const undo = raws.map((raw) => watch(raw, entries, touched, note));

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

    /** The entries of the sides that were changed; undoes whatever was done. */
    async changesOf(sides: SideName[], ownership: Ownership): Promise<string[]> {
      const found: string[] = [];
      for (const key of touched) {
        const [was, is] = [before.get(key), entries.get(key)];
        if (was?.value === is?.value) continue;
        const owners = [was, is].flatMap((entry) => [
          ...ownership.ownersOfEntry(key, entry?.value),
        ]);
        const victims = sides.filter((side) => owners.includes(side));
        if (victims.length && !isBookkeeping(key, was, is)) {
          found.push(`secondary storage of ${victims.join(" and ")}: ${kindOf(was, is)} ${key}`);
        }
        for (const { write } of undo) await write(key, was);
      }
      touched.clear();
      return found;
    },

    /** Takes away whatever the run has left. */
    async empty() {
      for (const key of entries.keys()) for (const { write } of undo) await write(key, undefined);
    },

    async forget(key: string) {
      for (const { write } of undo) await write(key, undefined);
      touched.add(key);
    },

    restore: () => {
      for (const { restore } of undo) restore();
    },
  };
}

export type Entries = ReturnType<typeof openEntries>;

function watch(
  raw: Storage,
  entries: Map<string, Entry>,
  touched: Set<string>,
  note: (key: string, value: string) => void,
) {
  const original = { ...raw };
  const put = (key: string, entry: Entry | undefined) => {
    touched.add(key);
    if (entry) entries.set(key, entry);
    else entries.delete(key);
  };
  raw.set = (key, value, ttl) => {
    put(key, { value, ttl });
    note(key, value);
    return original.set(key, value, ttl);
  };
  raw.delete = (key) => {
    put(key, undefined);
    return original.delete(key);
  };
  const { getAndDelete, increment } = original;
  if (getAndDelete) {
    raw.getAndDelete = (key) => {
      put(key, undefined);
      return getAndDelete(key);
    };
  }
  if (increment) {
    raw.increment = (key, ttl) => {
      put(key, { value: String(Number(entries.get(key)?.value ?? 0) + 1), ttl });
      return increment(key, ttl);
    };
  }
  return {
    restore: () => void Object.assign(raw, original),
    async write(key: string, entry: Entry | undefined) {
      put(key, entry);
      if (entry) await original.set(key, entry.value, entry.ttl);
      else await original.delete(key);
    },
  };
}

const kindOf = (was: Entry | undefined, is: Entry | undefined) =>
  was === undefined ? "new" : is === undefined ? "gone" : "changed";

/** When a key was last used is bookkeeping, wherever it is kept. */
function isBookkeeping(key: string, was: Entry | undefined, is: Entry | undefined): boolean {
  if (!/(^|:)api-key:/.test(key) || !was || !is) return false;
  return isDeepStrictEqual(opened(was.value), opened(is.value));
}

/** What is in a value, also in JSON that is inside of JSON. */
function opened(value: unknown): unknown {
  const parsed = typeof value === "string" ? parse(value) : value;
  if (typeof parsed !== "object" || parsed === null) return value;
  const fields = Object.entries(parsed).filter(
    ([name]) => !["lastRequest", "updatedAt", "requestCount"].includes(name),
  );
  return Object.fromEntries(fields.map(([name, field]) => [name, opened(field)]));
}
