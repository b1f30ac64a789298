import { randomBytes } from "node:crypto";
import type { BetterAuthOptions } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { getAuthTables } from "better-auth/db";
import type { DBAdapter } from "better-auth/types";
import { Redis } from "ioredis";
import { onTestFinished, vi } from "vitest";
import { type DatabaseKind, databases, type TestDatabase } from "./database";

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;
type SessionOptions = NonNullable<BetterAuthOptions["session"]>;

/** A place that sessions can live in, and what makes better-auth put them there. */
export interface Store {
  name: string;
  database?: DatabaseKind;
  /** A fresh secondary storage. */
  storage?: () => SecondaryStorage;
  session?: SessionOptions;
}

/** Secondary storage in a map, with a look inside. */
export function mapStorage() {
  const entries: Entries = new Map();
  return { entries, storage: createStorage({}, entries) };
}

type Entries = Map<string, string>;

/** What a storage does with what it is given; entries that it forgets were never there. */
interface StorageKind {
  name: string;
  /** How a value comes back. */
  returns?: (value: string) => unknown;
  forgets?: (key: string) => boolean;
}

/** Storages that better-auth works with. None of them promises to give JSON back as it was. */
export const STORAGE_KINDS: StorageKind[] = [
  { name: "gives back what it got" },
  { name: "orders keys and adds blanks", returns: reformat },
  { name: "gives back parsed objects", returns: parse },
  { name: "loses the index of sessions", forgets: (key) => key.includes("active-sessions-") },
];

/** A storage of a kind. Two over the same entries are two processes with one server behind. */
export function createStorage(
  kind: Partial<StorageKind> = {},
  entries: Entries = new Map(),
): SecondaryStorage {
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

const shared: (() => Promise<void>)[] = [];

/** Closes the storages that were made for all tests of a file. */
export async function closeStorages(): Promise<void> {
  for (const close of shared.splice(0)) await close();
}

/** Secondary storage in a real Redis, under keys that no other test has. */
function redisStorage(): SecondaryStorage {
  const keyPrefix = `test-${randomBytes(8).toString("hex")}:`;
  const redis = new Redis({ host: "127.0.0.1", port: 6379, keyPrefix });
  const close = async () => {
    // Keys come back with their prefix, and commands put it there themselves.
    const keys = await redis.keys(`${keyPrefix}*`);
    if (keys.length) await redis.del(keys.map((key) => key.slice(keyPrefix.length)));
    await redis.quit();
  };
  try {
    onTestFinished(close);
  } catch {
    // Made before the tests of a file, which share it.
    shared.push(close);
  }
  return {
    get: (key) => redis.get(key),
    set: async (key, value, ttl) =>
      void (ttl ? await redis.set(key, value, "EX", ttl) : await redis.set(key, value)),
    delete: async (key) => void (await redis.del(key)),
    getAndDelete: (key) => redis.getdel(key),
    increment: async (key, ttl) => {
      const count = await redis.incr(key);
      if (count === 1) await redis.expire(key, ttl);
      return count;
    },
  };
}

/** The secondary storages that tests run on: the servers only when they are asked for. */
export const STORAGES: [name: string, create: () => SecondaryStorage][] = [
  ["a map", () => mapStorage().storage],
  ...(process.env.TEST_SERVERS ? [["Redis", redisStorage] as [string, typeof redisStorage]] : []),
];

const ENCODINGS = ["compact", "jwt", "jwe"] as const;
const cached = (strategy: (typeof ENCODINGS)[number]): SessionOptions => ({
  cookieCache: { enabled: true, maxAge: 300, strategy },
});
const both = { storeSessionInDatabase: true };
const preserved = { ...both, preserveSessionInDatabase: true };

const SERVER_STORES: Store[] = [
  ...databases.map((database) => ({ name: `the database (${database})`, database })),
  ...STORAGES.flatMap(([where, storage]) => [
    { name: where, storage },
    { name: `${where} and the database`, storage, session: both },
    { name: `${where} and the database, preserved`, storage, session: preserved },
  ]),
];

// A cached cookie never meets the database server, and a preserved row is never read.
const CACHED_STORES = SERVER_STORES.filter(
  ({ database = "sqlite", session }) => database === "sqlite" && session !== preserved,
);

/** Every place, and with a cached cookie on top, in each encoding. */
export const STORES: Store[] = [
  ...SERVER_STORES,
  ...CACHED_STORES.flatMap((store) =>
    ENCODINGS.map((strategy) => ({
      ...store,
      name: `${store.name}, cached in a cookie (${strategy})`,
      session: { ...store.session, ...cached(strategy) },
    })),
  ),
];

/** The three ways better-auth encodes a session that it caches in a cookie, on top of the database. */
export const CACHES: Store[] = ENCODINGS.map((strategy) => ({
  name: `a cached cookie (${strategy})`,
  session: cached(strategy),
}));

/** Where sessions live, one of each sort: for what has other things to vary. */
export const SORTS: Store[] = [
  { name: "the database" },
  { name: "secondary storage", storage: () => mapStorage().storage },
  ...CACHES,
];

export type Row = Record<string, unknown>;

/** better-auth's memory adapter: no foreign keys, no unique columns, and a look inside. */
export function createMemory(wrap: (adapter: DBAdapter) => DBAdapter = (adapter) => adapter) {
  const tables: Record<string, Row[]> = {};
  const make = memoryAdapter(tables);
  const open = (options: BetterAuthOptions) => {
    for (const [model, { modelName }] of Object.entries(getAuthTables(options))) {
      tables[modelName] ??= [];
      tables[model] ??= tables[modelName];
    }
    return wrap(make(options));
  };
  const database: TestDatabase = {
    kind: "sqlite",
    option: open,
    query: async () => {
      throw new Error("There is no SQL behind the memory adapter");
    },
    quote: String,
    statements: [],
    close: async () => {},
  };
  return { tables, database };
}
