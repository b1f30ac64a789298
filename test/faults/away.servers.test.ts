import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Answer, Browser } from "../support/browser";
import { createDatabase, type DatabaseKind, servers, type TestDatabase } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";
import { createWorld, queryOf } from "../support/world";
import { startProxy } from "./faults";

/** The same database, by a detour that can be closed. */
async function detour({ kind, option }: TestDatabase) {
  const proxy = await startProxy(kind === "postgres" ? 5432 : 3306);
  if (kind === "postgres") {
    const pool = new Pool({ ...option.options, port: proxy.port });
    // pg ends the process when a connection breaks and nobody listens, idle or not. That is for
    // the application to do: better-auth does not.
    pool.on("error", () => {});
    pool.on("connect", (client) => client.on("error", () => {}));
    onTestFinished(() => pool.end());
    return { ...proxy, option: pool };
  }
  const { database } = option.pool.config.connectionConfig;
  const server = { host: "127.0.0.1", port: proxy.port, user: "root", timezone: "Z" };
  const pool = createPool({ ...server, database, connectionLimit: 10 });
  onTestFinished(() => pool.end());
  return { ...proxy, option: pool };
}

async function start(kind: DatabaseKind) {
  vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  const { option, on, off } = await detour(database);
  const app = await createSocialInstance({ database: { ...database, option } });
  return { app, on, off };
}

describe.runIf(servers.asked).each(servers.kinds)(
  "a %s that is away",
  { timeout: 60_000 },
  (kind) => {
    it("is an answer with a code on every endpoint of ours, and all is well when it is back", async () => {
      const { app, on, off } = await start(kind);
      const { browser: operator } = await app.operator();
      const { id: tenantId } = await app.createTenant("acme");
      await app.configure(tenantId);
      const member = await app.signUp(tenantId, "member@example.com");
      const credentials = { tenantId, email: "member@example.com", password: PASSWORD };
      const newcomer = { ...credentials, name: "New", email: "new@example.com" };
      const google = { tenantId, providerId: "google", clientId: "id", clientSecret: "secret" };
      const comingBack = app.browser();
      const wayBack = await app.authorize(comingBack, tenantId);

      const calls: Record<string, (browser: Browser) => Promise<Answer>> = {
        get: () => operator.get("/tenant/get", { query: { id: tenantId } }),
        list: () => operator.get("/tenant/list"),
        create: () => operator.post("/tenant/create", { name: "Other", slug: "other" }),
        update: () => operator.post("/tenant/update", { tenantId, name: "Renamed" }),
        "sign-up": (browser) => browser.post("/tenant/sign-up/email", newcomer),
        "sign-in": (browser) => browser.post("/tenant/sign-in/email", credentials),
        "social start": (browser) => app.start(browser, tenantId) as Promise<Answer>,
        register: () => operator.post("/tenant/oauth-config/register", google),
        "list of configs": () => operator.get("/tenant/oauth-config/list", { query: { tenantId } }),
        "deletion of a config": () => operator.post("/tenant/oauth-config/delete", google),
        "get-session": () => member.browser.get("/get-session"),
        "sign-in by header": (browser) =>
          browser.post("/sign-in/email", credentials, { headers: { "x-tenant-id": tenantId } }),
        delete: () => operator.post("/tenant/delete", { tenantId }),
      };

      await off();
      const outcomes: Record<string, string> = {};
      for (const [name, call] of Object.entries(calls)) {
        const { status, code, data, headers } = await call(app.browser());
        const said = [JSON.stringify(data), ...headers].join("\n");
        const clean = !/127\.0\.0\.1|ECONN|postgres|root|connect|t_[0-9a-f]{12}|node_modules/i.test(
          said,
        );
        const kept = !/max-age=0/i.test(headers.getSetCookie().join());
        outcomes[name] = [
          status >= 500 && code && data.message ? "5xx with a code" : `${status} ${code}`,
          ...(clean ? [] : [said]),
          ...(kept ? [] : ["drops a cookie"]),
        ].join(", ");
      }
      const expected = Object.keys(calls).map((name) => [name, "5xx with a code"]);
      expect.soft(outcomes).toEqual(Object.fromEntries(expected));
      const failed = await comingBack.fork().get(wayBack);
      expect
        .soft([failed.status, queryOf(failed.location).error])
        .toEqual([302, "internal_server_error"]);

      await on();
      for (const [name, call] of Object.entries(calls)) {
        expect([name, (await call(app.browser())).status]).toEqual([name, 200]);
      }
    });

    it("when an instance starts is no reason to start it again", async () => {
      const { app, on, off } = await start(kind);
      const { id } = await app.createTenant();
      await off();
      const late = await createSocialInstance({ database: app.database, migrate: false });
      await late
        .browser()
        .get("/ok")
        .catch(() => {});
      await on();
      const answer = await late.browser().get("/get-session", { headers: { "x-tenant-id": id } });
      expect(answer.status).toBe(200);
      expect((await late.api.listTenants()).map((tenant) => tenant.id)).toEqual([id]);
    });
  },
);

/** Sessions in a Redis, by a detour that can be closed. */
async function startRedis() {
  vi.spyOn(console, "error").mockImplementation(() => {});
  onTestFinished(() => void vi.restoreAllMocks());
  const proxy = await startProxy(6379);
  const keyPrefix = `away-${randomBytes(8).toString("hex")}:`;
  const server = { host: "127.0.0.1", port: proxy.port, keyPrefix };
  const redis = new Redis({ ...server, maxRetriesPerRequest: 1, retryStrategy: () => 20 });
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  const storage = {
    get: (key: string) => redis.get(key),
    set: async (key: string, value: string) => void (await redis.set(key, value, "EX", 600)),
    delete: async (key: string) => void (await redis.del(key)),
    getAndDelete: (key: string) => redis.getdel(key),
    increment: (key: string) => redis.incr(key),
  };
  return { ...proxy, redis, storage };
}

const HOUR_MS = 3_600_000;

it.runIf(servers.asked).each([0, HOUR_MS, -HOUR_MS])(
  "no session is lost while Redis is away, and the clock jumps by %d ms",
  async (jump) => {
    const { on, off, redis, storage } = await startRedis();
    const world = await createWorld({ store: { name: "Redis", storage: () => storage } });
    const [acme, platform] = [await world.signUp("acme"), await world.signUp("platform")];
    const windows = [acme, acme.fork({}), platform];
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + jump });
    onTestFinished(() => void vi.useRealTimers());

    await off();
    for (const window of windows) {
      const { status, headers } = await window.get("/get-session");
      expect([status, headers.getSetCookie()]).toEqual([500, []]);
    }
    await on();
    await vi.waitFor(() => redis.ping(), 5000);
    for (const window of windows) {
      expect((await world.whoIs(window))?.id).toBe(window === platform ? platform.id : acme.id);
    }
    // Its session is lost for good, and only then is the cookie.
    await redis.del(await keysWithoutPrefix(redis));
    const { data, headers } = await acme.get("/get-session");
    expect([data, headers.getSetCookie().join()]).toEqual([
      null,
      expect.stringMatching(/max-age=0/i),
    ]);
  },
);

async function keysWithoutPrefix(redis: Redis): Promise<string[]> {
  const prefix = redis.options.keyPrefix ?? "";
  return (await redis.keys(`${prefix}*`)).map((key) => key.slice(prefix.length));
}
