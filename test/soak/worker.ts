import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";
import { admin, bearer } from "better-auth/plugins";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { tenantAuth } from "../../src/index";
import { connectToRedis, type RedisOrder, redisStorage } from "./redis-storage";

/** What a process is told at its start. */
export interface Order {
  database: { kind: "postgres" | "mysql"; name: string; port: number };
  /** Without it, sessions live in the database. */
  redis?: RedisOrder;
  secret: string;
  /** The first process makes the tables. */
  migrate: boolean;
}

/*
 * One of the processes: a server as an application would start it. It is killed at any moment, so
 * it keeps nothing to itself.
 */
const order: Order = JSON.parse(process.argv[2] ?? "");

/** How far the clock of this process has been set. */
let ahead = 0;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  // biome-ignore lint/suspicious/noExplicitAny: Date takes many kinds of arguments
  constructor(...given: any[]) {
    super(...((given.length ? given : [RealDate.now() + ahead]) as [number]));
  }
  static override now = () => RealDate.now() + ahead;
} as DateConstructor;

function createPostgresPool({ name, port }: Order["database"]) {
  const pool = new Pool({ host: "127.0.0.1", port, user: "postgres", database: name, max: 8 });
  // Otherwise a connection that breaks ends the process, idle or not.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

const createMysqlPool = ({ name, port }: Order["database"]) =>
  createPool({
    host: "127.0.0.1",
    port,
    user: "root",
    database: name,
    timezone: "Z",
    connectionLimit: 8,
  });

const createDatabase = { postgres: createPostgresPool, mysql: createMysqlPool };

const auth = betterAuth({
  // The address of all three, as behind a load balancer.
  baseURL: "http://localhost:3000",
  secret: order.secret,
  database: createDatabase[order.database.kind](order.database),
  ...(order.redis && {
    secondaryStorage: redisStorage(connectToRedis(order.redis), {
      hasReplicas: !("port" in order.redis),
    }),
  }),
  emailAndPassword: {
    enabled: true,
    password: { hash: async (text) => text, verify: async (one) => one.hash === one.password },
  },
  databaseHooks: {
    user: {
      create: {
        before: async (user) => ({
          data: { ...user, ...(user.email === "operator@example.com" && { role: "admin" }) },
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
if (order.migrate) await (await getMigrations(auth.options)).runMigrations();
// Nobody is sent here before it is all up.
await auth.api.listTenants();
const server = createServer(toNodeHandler(auth));
// Connections that close by themselves just when they are used would look like a failure.
server.keepAliveTimeout = 600_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", async (message: "purge" | { ahead: number }) => {
  if (message === "purge") process.send?.(await auth.api.purgeTenants());
  else ahead = message.ahead;
});
// A test that is cut short leaves no servers behind.
process.on("disconnect", () => process.exit());
