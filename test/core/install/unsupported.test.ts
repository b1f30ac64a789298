import { type BetterAuthOptions, betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { SqliteDialect } from "kysely";
import { expect, it } from "vitest";
import { tenantAuth } from "../../../src/index";
import { mapStorage } from "../../support/stores";

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

const NO_DATABASE = { database: undefined as never };
const SECONDARY = { secondaryStorage: mapStorage().storage };
const COOKIES = { account: { storeAccountCookie: true } };
const SERIAL = { advanced: { database: { generateId: "serial" } } } as const;
const dialect = new SqliteDialect({ database: {} as never });

it.each<[string, RegExp, BetterAuthOptions]>([
  ["no database", /no database. Set the option `database`/, NO_DATABASE],
  ["secondary storage and no database", /no database/, { ...NO_DATABASE, ...SECONDARY }],
  ["accounts in cookies", /storeAccountCookie is not supported/, COOKIES],
  ["the same by a plugin", /storeAccountCookie is not supported/, brings(COOKIES)],
  ["ids given twice, in memory", /"serial" is not supported here/, SERIAL],
  [
    "ids given twice, on SQLite",
    /"serial" is not supported here/,
    { database: { dialect, type: "sqlite" }, ...SERIAL },
  ],
])("refuses to start: %s", async (_, message, options) => {
  await expect(start(options)).rejects.toThrow(message);
});

it("starts without any of these", async () => {
  await expect(start({})).resolves.toBeDefined();
});
