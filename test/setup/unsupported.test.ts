import { type BetterAuthOptions, betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { SqliteDialect } from "kysely";
import { expect, it } from "vitest";
import { tenantAuth } from "../../src/index";
import { mapStorage } from "../support/stores";

const start = (options: BetterAuthOptions) =>
  betterAuth({
    secret: "a test secret that is long enough for everybody",
    baseURL: "http://localhost:3000",
    logger: { disabled: true },
    database: memoryAdapter({}),
    ...options,
    plugins: [tenantAuth(), ...(options.plugins ?? [])],
  }).$context;

const brings = (options: BetterAuthOptions) => ({
  plugins: [{ id: "brings-options", init: () => ({ options }) }],
});

it.each<[string, RegExp, BetterAuthOptions]>([
  ["no database", /no database. Set the option `database`/, { database: undefined as never }],
  [
    "secondary storage and no database",
    /no database/,
    { database: undefined as never, secondaryStorage: mapStorage().storage },
  ],
  [
    "accounts in cookies",
    /storeAccountCookie is not supported/,
    { account: { storeAccountCookie: true } },
  ],
  [
    "accounts in cookies, by a plugin",
    /storeAccountCookie is not supported/,
    brings({ account: { storeAccountCookie: true } }),
  ],
  [
    "ids that are given twice, in memory",
    /"serial" is not supported here/,
    { advanced: { database: { generateId: "serial" } } },
  ],
  [
    "ids that are given twice, on SQLite",
    /"serial" is not supported here/,
    {
      database: { dialect: new SqliteDialect({ database: {} as never }), type: "sqlite" },
      advanced: { database: { generateId: "serial" } },
    },
  ],
])("refuses to start: %s", async (_, message, options) => {
  await expect(start(options)).rejects.toThrow(message);
});

it("starts without any of these", async () => {
  await expect(start({})).resolves.toBeDefined();
});
