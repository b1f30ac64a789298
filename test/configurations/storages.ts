import type { BetterAuthOptions } from "better-auth";
import { vi } from "vitest";

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;
type Entries = Map<string, string>;

/** What a storage does with what it is given; entries that it forgets were never there. */
interface Habits {
  /** How a value comes back. */
  returns?: (value: string) => unknown;
  forgets?: (key: string) => boolean;
}

export interface StorageKind extends Habits {
  name: string;
}

/** Storages that better-auth works with. None of them promises to give JSON back as it was. */
export const STORAGE_KINDS: StorageKind[] = [
  { name: "gives back what it got" },
  { name: "orders keys and adds blanks", returns: reformat },
  { name: "gives back parsed objects", returns: parse },
  { name: "loses the index of sessions", forgets: (key) => key.includes("active-sessions-") },
];

/** A storage of a kind. Two over the same entries are two processes with one server behind. */
export function createStorage(kind: Habits, entries: Entries = new Map()): SecondaryStorage {
  const { returns = (value) => value, forgets = () => false } = kind;
  const read = (key: string) => {
    const value = entries.get(key);
    return value === undefined ? null : returns(value);
  };
  return {
    get: async (key) => read(key),
    set: async (key, value) => void (forgets(key) || entries.set(key, value)),
    delete: async (key) => void entries.delete(key),
    getAndDelete: async (key) => {
      const value = read(key);
      entries.delete(key);
      return value;
    },
    increment: async (key) => {
      const next = Number(entries.get(key) ?? 0) + 1;
      entries.set(key, String(next));
      return next;
    },
  };
}

/** As a jsonb column does: the same JSON, with its keys in another order and with blanks. */
function reformat(value: string): string {
  const parsed = parse(value);
  return typeof parsed === "object" ? ` ${JSON.stringify(sorted(parsed), null, 2)}\n` : value;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => other.localeCompare(one));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

/** As clients do that parse whatever looks like JSON. */
function parse(value: string): unknown {
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === "object" && parsed !== null ? parsed : value;
  } catch {
    return value;
  }
}

/** Goes on with the clock, for as long as a process may go by what it remembers of a tenant. */
export async function afterTenSeconds(run: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10_500 });
  try {
    await run();
  } finally {
    vi.useRealTimers();
  }
}
