import { describe, expect, it, onTestFinished } from "vitest";
import { createDatabase, type DatabaseKind, databases } from "../support/database";
import { createInstance, PASSWORD } from "../support/instance";
import {
  CREDENTIALS,
  createSizeInstance,
  explain,
  HOT,
  populate,
  recordQueries,
  SEARCH,
  type Size,
  succeed,
  walk,
} from "./population";

const SIZES: [DatabaseKind, Size][] = [
  ["postgres", { tenants: 20_000, users: 100_000, hotUsers: 10_000 }],
  ["mysql", { tenants: 20_000, users: 40_000, hotUsers: 5_000 }],
  // It knows its tables by their statistics alone.
  ["sqlite", { tenants: 100, users: 1_000, hotUsers: 500 }],
];

/** More than any flow needs, and far less than the hot tenant has. */
const FEW = 50;

describe("queries of a large database", () => {
  it.each(SIZES.filter(([kind]) => databases.includes(kind)))(
    "on %s: no flow scans a table, or reads more rows in a tenant with many users",
    async (kind, size) => {
      const database = await createDatabase(kind);
      onTestFinished(() => database.close());
      const queries = recordQueries(database);
      const app = await createSizeInstance({ database });
      await populate(database, size, CREDENTIALS);

      const problems: string[] = [];
      let seen = 0;
      for (const place of [1, HOT]) {
        await walk(app, size, place, async (name, run) => {
          queries.length = 0;
          const data = await succeed(name, run);
          expect(queries, name).not.toHaveLength(0);
          for (const query of queries.splice(0)) {
            const { scans, rows } = await explain(database, query);
            // better-auth counts the users of a list, and those are as many as they are.
            const tooMany = rows > FEW && !query.sql.startsWith("select count(");
            const isSearch = name === SEARCH && / from .tenant. where /.test(query.sql);
            if ((scans.length || tooMany) && !isSearch) {
              problems.push(`${name}: ${rows} rows: ${query.sql}`);
            }
            seen++;
          }
          return data;
        });
      }
      expect(problems).toEqual([]);
      expect(seen).toBeGreaterThan(200);

      // What is looked for would be found.
      const sql = `select * from ${database.quote("user")} where name = 'nobody'`;
      const { scans, rows } = await explain(database, { sql, params: [] });
      expect(scans).toEqual(["user"]);
      expect(rows).toBeGreaterThan(FEW);
    },
    // A few seconds on a machine of its own.
    120_000,
  );

  it("on SQLite without statistics: what one user has is found by the user", async () => {
    const database = await createDatabase("sqlite");
    onTestFinished(() => database.close());
    const queries = recordQueries(database);
    const app = await createSizeInstance({ database });
    const statistics = await database.query(
      "select name from sqlite_master where name like '%stat1'",
    );
    expect(statistics).toEqual([]);
    const { id: tenantId } = await app.createTenant("acme");
    const person = { tenantId, email: "jane@acme.com", password: PASSWORD, name: "Jane" };
    const me = app.browser();
    await succeed("sign-up", () => me.post("/tenant/sign-up/email", person));
    queries.length = 0;
    await succeed("list-sessions", () => me.get("/list-sessions"));
    await succeed("list-accounts", () => me.get("/list-accounts"));
    const lists = queries.filter(({ sql }) => /from "(session|account)".*"userId" = \?/.test(sql));
    expect(lists).toHaveLength(2);
    for (const { sql, params } of lists) {
      const [plan] = await database.query(`explain query plan ${sql}`, params);
      expect(plan?.detail).toMatch(/USING INDEX \S+ \(userId=\?\)/);
    }
  });

  it.runIf(databases.includes("postgres"))(
    "every column that refers to another table has an index, so that deletions find their rows",
    async () => {
      const { database } = await createInstance({ database: "postgres" });
      const references = await database.query(`
        select conrelid::regclass as "table", pg_get_constraintdef(pg_constraint.oid) as reference,
          exists (select from pg_index where indrelid = conrelid and indkey[0] = conkey[1]) as indexed
        from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`);
      expect(references).toHaveLength(3);
      expect(references.filter(({ indexed }) => !indexed)).toEqual([]);
    },
  );
});
