import { randomBytes } from "node:crypto";
import type { BetterAuthOptions } from "better-auth";
import { bearer } from "better-auth/plugins";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { createTriplets } from "../scope/triplets";
import type { DatabaseKind } from "../support/database";
import { databases } from "../support/servers";

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
  const entries = new Map<string, string>();
  const storage: SecondaryStorage = {
    get: async (key) => entries.get(key) ?? null,
    set: async (key, value) => void entries.set(key, value),
    delete: async (key) => void entries.delete(key),
    getAndDelete: async (key) => {
      const value = entries.get(key) ?? null;
      entries.delete(key);
      return value;
    },
    increment: async (key) => {
      const next = Number(entries.get(key) ?? 0) + 1;
      entries.set(key, String(next));
      return next;
    },
  };
  return { entries, storage };
}

/** Secondary storage in a real Redis, under keys that no other test has. */
function redisStorage(): SecondaryStorage {
  const keyPrefix = `test-${randomBytes(8).toString("hex")}:`;
  const redis = new Redis({ host: "127.0.0.1", port: 6379, keyPrefix });
  onTestFinished(async () => {
    // Keys come back with their prefix, and commands put it there themselves.
    const keys = await redis.keys(`${keyPrefix}*`);
    if (keys.length) await redis.del(keys.map((key) => key.slice(keyPrefix.length)));
    await redis.quit();
  });
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

export type Credential = "cookie" | "bearer token";
export const CREDENTIALS: Credential[] = ["cookie", "bearer token"];

export interface SessionAnswer {
  session: { token: string; tenantId: string | null; userId: string; expiresAt: string };
  user: { id: string; name: string; tenantId: string | null };
}

type Place = "a" | "b" | "platform";

/** One e-mail in two tenants and on the platform: three people, whose sessions live in the store. */
export async function createPeople(store: Store, session: SessionOptions = {}) {
  const triplets = await createTriplets({
    ...(store.database ? { database: store.database } : {}),
    plugins: [bearer()],
    auth: {
      session: { ...session, ...store.session },
      ...(store.storage ? { secondaryStorage: store.storage() } : {}),
    },
  });
  const { instance, people, a, b } = triplets;
  const ids: Record<Place, string | null> = { a, b, platform: null };

  const naming = (place: Place | undefined): Record<string, string> => {
    const id = place && ids[place];
    return id ? { "x-tenant-id": id } : {};
  };

  return {
    ...triplets,
    ids,

    /** A window of a person, at a place that it names, or without naming one. */
    as(person: Place, at?: Place, credential: Credential = "cookie") {
      const { browser, token } = people[person];
      if (credential === "cookie") return browser.fork(naming(at));
      return instance.browser({ ...naming(at), authorization: `Bearer ${token}` });
    },

    /** What the server says about a session, past whatever a cookie says. */
    async alive(person: Place) {
      const query = { disableCookieCache: "true" };
      const { data } = await this.as(person).get<SessionAnswer | null>("/get-session", { query });
      return data;
    },
  };
}
