import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type BetterAuthOptions, betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";
import { admin, bearer } from "better-auth/plugins";
import { Redis } from "ioredis";
import { Pool } from "pg";
import { tenantAuth } from "../../src/index";

/** What a process is told at its start. */
export interface Order {
  database: string;
  /** What the keys in Redis begin with; without it, sessions live in the database. */
  redisPrefix?: string;
  secret: string;
  /** The first process makes the tables. */
  migrate: boolean;
}

export type Message = { port: number };

type SecondaryStorage = NonNullable<BetterAuthOptions["secondaryStorage"]>;

/*
 * One of the processes: a server as an application would start it. It is killed at any moment, so
 * it keeps nothing to itself.
 */
const order: Order = JSON.parse(process.argv[2] ?? "");
const tell = (message: Message) => process.send?.(message);

function redisStorage(keyPrefix: string): SecondaryStorage {
  const redis = new Redis({ host: "127.0.0.1", port: 6379, keyPrefix });
  return {
    get: (key) => redis.get(key),
    set: (key, value, ttl) => (ttl ? redis.set(key, value, "EX", ttl) : redis.set(key, value)),
    delete: async (key) => void (await redis.del(key)),
    getAndDelete: (key) => redis.getdel(key),
    increment: async (key, ttl) => {
      // In one transaction, so that no counter is ever left without an end.
      const counter = redis.multi().set(key, 0, "EX", ttl, "NX").incr(key);
      const [, counted] = (await counter.exec()) ?? [];
      return Number(counted?.[1]);
    },
  };
}

function createAuth() {
  const { database, redisPrefix, secret } = order;
  return betterAuth({
    // The address of all three, as behind a load balancer.
    baseURL: "http://localhost:3000",
    secret,
    database: new Pool({ host: "127.0.0.1", user: "postgres", database, max: 8 }),
    ...(redisPrefix ? { secondaryStorage: redisStorage(redisPrefix) } : {}),
    emailAndPassword: {
      enabled: true,
      // A real hash costs a tenth of a second, and says nothing about tenants.
      password: {
        hash: async (password) => `hashed:${password}`,
        verify: async ({ hash, password }) => hash === `hashed:${password}`,
      },
    },
    databaseHooks: {
      user: {
        create: {
          before: async (user) => ({
            data: {
              ...user,
              // Who has not proven the e-mail loses the password at the first code.
              emailVerified: true,
              ...(user.email === "operator@example.com" ? { role: "admin" } : {}),
            },
          }),
        },
      },
    },
    plugins: [tenantAuth(), admin(), bearer()],
    // Everybody here comes from one address.
    rateLimit: { enabled: false },
    telemetry: { enabled: false },
    logger: { level: "error", disableColors: true },
  });
}

const auth = createAuth();
if (order.migrate) await (await getMigrations(auth.options)).runMigrations();
// Nobody is sent here before it is all up.
await auth.api.listTenants();
const server = createServer(toNodeHandler(auth));
// Connections that close by themselves just when they are used would look like a failure.
server.keepAliveTimeout = 600_000;
server.listen(0, "127.0.0.1", () => tell({ port: (server.address() as AddressInfo).port }));
// A test that is cut short leaves no servers behind.
process.on("disconnect", () => process.exit());
