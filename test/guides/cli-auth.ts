import { betterAuth } from "better-auth";
import { SqliteDialect } from "kysely";
import Database from "libsql";
import { tenantAuth } from "../../src/index";

/** An application as better-auth's CLI finds it, on the file that it is told of. */
export const auth = betterAuth({
  baseURL: "http://localhost:3000",
  secret: "a test secret that is long enough for everybody",
  database: {
    dialect: new SqliteDialect({ database: new Database(process.env.DATABASE_FILE ?? ":memory:") }),
    type: "sqlite",
  },
  emailAndPassword: { enabled: true },
  logger: { disabled: true },
  plugins: [tenantAuth()],
});
