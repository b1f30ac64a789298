import type { Pool } from "mysql2";
import { expect, it, onTestFinished } from "vitest";
import {
  HOT,
  populate,
  type Size,
  TABLES,
  tenantId,
  tenantSlug,
  userEmail,
  userId,
  userOf,
} from "../../bench/size/population";
import { interceptStatements } from "../faults/faults";
import type { Answer } from "../support/browser";
import {
  createDatabase,
  type DatabaseKind,
  databases,
  servers,
  type TestDatabase,
} from "../support/database";
import { createInstance, PASSWORD } from "../support/instance";
import { createSocialInstance } from "../support/social";
import { gate } from "../support/world";

/** A statement as it reached the database. */
interface Query {
  sql: string;
  params: unknown[];
}

/** Every statement from now on that reads or writes rows, with its parameters. */
function recordQueries(database: TestDatabase): Query[] {
  const queries: Query[] = [];
  interceptStatements(database, (sql, { values, send }) => {
    if (/^(select|insert|update|delete)\b/i.test(sql)) queries.push({ sql, params: [...values] });
    return send();
  });
  return queries;
}

/** What a statement costs, whatever the tables hold. */
interface Plan {
  /** Tables that are read from end to end. */
  scans: string[];
  /** The largest number of rows, or of entries of an index, that one step of the plan reads. */
  rows: number;
}

/** A row cannot be inserted twice; what inserting it costs does not depend on a choice. */
async function explain(database: TestDatabase, { sql, params }: Query): Promise<Plan> {
  const explainOn = { postgres: explainPostgres, mysql: explainMysql, sqlite: explainSqlite };
  const isInsert = /^insert/i.test(sql);
  return isInsert ? { scans: [], rows: 0 } : explainOn[database.kind](database, sql, params);
}

type Node = Record<string, unknown> & { Plans?: Node[] };

/** Runs the statement and takes it back, to see what is really read. */
async function explainPostgres({ query }: TestDatabase, sql: string, params: unknown[]) {
  await query("begin");
  const rows = await query(`explain (analyze, format json) ${sql}`, params);
  await query("rollback");
  const [
    {
      "QUERY PLAN": [{ Plan: root }],
    },
  ] = rows as [{ "QUERY PLAN": [{ Plan: Node }] }];
  const nodes = [root];
  for (const node of nodes) nodes.push(...(node.Plans ?? []));
  const scans = nodes.filter((node) => node["Node Type"] === "Seq Scan");
  const counts = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"];
  const reads = nodes.map((node) =>
    counts.reduce((sum, count) => sum + Number(node[count] ?? 0), 0),
  );
  return { scans: scans.map((node) => String(node["Relation Name"])), rows: Math.max(...reads) };
}

/** The same with MariaDB's word for it. */
async function explainMysql({ option }: TestDatabase, sql: string, params: unknown[]) {
  const connection = await option.getConnection();
  await connection.query("begin");
  const [steps]: [Record<string, unknown>[]] = await connection.query(`analyze ${sql}`, params);
  await connection.query("rollback");
  connection.release();
  // A derived table is the outcome of another step.
  const scans = steps.filter(({ type, table }) => type === "ALL" && !String(table).startsWith("<"));
  const reads = steps.map(({ r_rows }) => Number(r_rows ?? 0));
  return { scans: scans.map(({ table }) => String(table)), rows: Math.max(...reads) };
}

/** SQLite says which index it takes and for which columns, not how many rows it reads. */
async function explainSqlite({ query, quote }: TestDatabase, sql: string, params: unknown[]) {
  const plan: Plan = { scans: [], rows: 0 };
  const count = async (table: string, where: string, values: unknown[] = []) => {
    const found = await query(`select count(*) as n from ${quote(table)} where ${where}`, values);
    plan.rows = Math.max(plan.rows, Number(found[0]?.n));
  };
  // What is changed has to be found first, and libsql never ends a look at the plan of a change.
  const search = sql
    .replace(/^delete/, "select *")
    .replace(/^update (\S+) set .*? where/, "select * from $1 where")
    .replace(/ returning .*$/, "");
  const conditions = params.slice(params.length - search.split("?").length + 1);
  // Nothing else is asked for, and the index has them in order.
  const stopsAtLimit = /where \S+ = \? order by "email" asc limit \?/.test(search);
  const steps = await query(`explain query plan ${search}`, conditions);
  for (const detail of steps.map((step) => String(step.detail))) {
    const table = TABLES.find((name) => detail.split(" ")[1] === name);
    if (!table) continue;
    if (detail === `SCAN ${table}`) {
      plan.scans.push(table);
      await count(table, "true");
    } else if (detail.endsWith("(tenantId=?)") && !stopsAtLimit) {
      await count(table, `"tenantId" in (${params.map(() => "?")})`, params);
    }
  }
  return plan;
}

/** An instance with so many tenants and users; everything that it asks the database is heard. */
async function open(kind: DatabaseKind, size?: Size, prepare = (_: TestDatabase) => {}) {
  const database = await createDatabase(kind);
  onTestFinished(() => database.close());
  prepare(database);
  const queries = recordQueries(database);
  const resetTokens: string[] = [];
  const sendResetPassword = async ({ token }: { token: string }) => void resetTokens.push(token);
  const emailAndPassword = { enabled: true, sendResetPassword };
  const app = await createSocialInstance({ database, auth: { emailAndPassword } });
  const template = await app.createTenant("template");
  await app.configure(template.id, { clientId: "size-client", clientSecret: "size-secret" });
  const credentials = { password: `hashed:${PASSWORD}`, provider: "gitlab" };
  if (size) await populate(database, size, credentials);
  return { ...app, queries, resetTokens };
}

type App = Awaited<ReturnType<typeof open>>;

/** Looks inside of names and slugs, where no index leads: goes through the tenants until it has enough. */
const SEARCH = "search tenants";

/** Runs one request that has to go well. */
async function succeed<T>(name: string, run: () => Promise<Answer<T>>): Promise<T> {
  const { status, data, location } = await run();
  if (status < 400 && !location?.includes("error")) return data;
  throw new Error(`${name}: ${status} ${location ?? ""} ${JSON.stringify(data)}`);
}

/** Walks through the flows of one generated tenant, request by request. */
async function walk(
  app: App,
  size: Size,
  tenant: number,
  step: <T>(name: string, run: () => Promise<Answer<T>>) => Promise<T>,
) {
  const id = tenantId(tenant);
  const named = { "x-tenant-id": id };
  const n = userOf(tenant, 1, size);
  const email = userEmail(n);
  const person = { tenantId: id, email, password: PASSWORD };
  const newcomer = { ...person, name: "Newcomer", email: `newcomer-${tenant}@example.com` };
  await step("sign-up", () => app.browser().post("/tenant/sign-up/email", newcomer));
  const me = app.browser();
  await step("sign-in", () => me.post("/tenant/sign-in/email", person));
  await step("get-session", () => me.get("/get-session"));
  await step("get-session in the tenant", () => me.fork(named).get("/get-session"));
  await step("list-sessions", () => me.get("/list-sessions"));
  await step("list-accounts", () => me.get("/list-accounts"));
  await step("update-user", () => me.post("/update-user", { name: "Renamed" }));
  const passwords = { currentPassword: PASSWORD, newPassword: PASSWORD };
  await step("change-password", () => me.post("/change-password", passwords));

  const stranger = () => app.browser(named);
  await step("forget", () => stranger().post("/request-password-reset", { email }));
  const reset = { token: app.resetTokens.at(-1), newPassword: PASSWORD };
  await step("reset-password", () => stranger().post("/reset-password", reset));
  await step("sign-out", () => me.post("/sign-out"));

  app.idp.addPerson("member", { id: n, email });
  app.idp.addPerson("visitor", { id: 1e9 + tenant, email: `visitor-${tenant}@example.com` });
  for (const username of ["member", "visitor"]) {
    const browser = app.browser();
    const { url } = await step("social start", () => app.start(browser, id));
    const back = await app.idp.authorize(url, username);
    await step(`callback of a ${username}`, () => browser.get(back));
  }

  const operator = (await app.operator()).browser;
  await step("get tenant by id", () => operator.get("/tenant/get", { query: { id } }));
  const slug = tenantSlug(tenant);
  await step("get tenant by slug", () => operator.get("/tenant/get", { query: { slug } }));
  for (const sort of ["createdAt", "-createdAt", "slug"]) {
    const query = { limit: "20", offset: "20", sort };
    await step(`list tenants by ${sort}`, () => operator.get("/tenant/list", { query }));
  }
  const search = { search: "nant 99", limit: "20" };
  await step(SEARCH, () => operator.get("/tenant/list", { query: search }));
  await step("update tenant", () => operator.post("/tenant/update", { tenantId: id, name: "New" }));
  const config = { tenantId: id, providerId: "github", clientId: "id", clientSecret: "secret" };
  await step("register config", () => operator.post("/tenant/oauth-config/register", config));
  const ofTenant = { query: { tenantId: id } };
  await step("list configs", () => operator.get("/tenant/oauth-config/list", ofTenant));
  await step("delete config", () => operator.post("/tenant/oauth-config/delete", config));
  const visiting = operator.fork(named);
  const page = { limit: "20", sortBy: "email" };
  await step("list users", () => visiting.get("/admin/list-users", { query: page }));
  const user = { userId: userId(n) };
  await step("list sessions of a user", () => visiting.post("/admin/list-user-sessions", user));
  await step("ban user", () => visiting.post("/admin/ban-user", user));
  await step("remove user", () => visiting.post("/admin/remove-user", user));
  if (tenant === HOT) return;
  await step("delete tenant", () => operator.post("/tenant/delete", { tenantId: id }));
}

/** One of the other tenants' people signs in, signs up, or starts with a provider. */
function otherTenantsRequest(app: App, size: Size, index: number) {
  const n = 1 + ((index * 7919) % size.users);
  const named = { tenantId: tenantId(1 + (n % size.tenants)) };
  const person = { ...named, email: userEmail(n), password: PASSWORD };
  const newcomer = { ...person, name: "Newcomer", email: `newcomer-${index}@example.com` };
  const social = { ...named, provider: "gitlab", callbackURL: "/" };
  if (index % 3 === 0) return app.browser().post("/tenant/sign-up/email", newcomer);
  if (index % 3 === 1) return app.browser().post("/tenant/sign-in/social", social);
  return app.browser().post("/tenant/sign-in/email", person);
}

const WALKED: Record<DatabaseKind, Size> = {
  postgres: { tenants: 20_000, users: 100_000, hotUsers: 10_000 },
  mysql: { tenants: 20_000, users: 40_000, hotUsers: 5_000 },
  // It knows its tables by their statistics alone.
  sqlite: { tenants: 100, users: 1_000, hotUsers: 500 },
};

/** More than any flow needs, and far less than the hot tenant has. */
const FEW = 50;

it.each(databases)(
  "on %s no flow scans a table, or reads more rows in a tenant with many users",
  async (kind) => {
    const app = await open(kind, WALKED[kind]);
    const { database, queries } = app;
    const problems: string[] = [];
    let seen = 0;
    for (const place of [1, HOT]) {
      await walk(app, WALKED[kind], place, async (name, run) => {
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
    expect([scans, rows > FEW]).toEqual([["user"], true]);
  },
  // A few seconds on a machine of its own.
  120_000,
);

it("on SQLite without statistics, what one user has is found by the user", async () => {
  const app = await open("sqlite");
  const { id: tenantId } = await app.createTenant("acme");
  const { browser: me } = await app.signUp(tenantId);
  app.queries.length = 0;
  await succeed("list-sessions", () => me.get("/list-sessions"));
  await succeed("list-accounts", () => me.get("/list-accounts"));
  const ofUser = /from "(session|account)".*"userId" = \?/;
  const lists = app.queries.filter(({ sql }) => ofUser.test(sql));
  expect(lists).toHaveLength(2);
  for (const { sql, params } of lists) {
    const [plan] = await app.database.query(`explain query plan ${sql}`, params);
    expect(plan?.detail).toMatch(/USING INDEX \S+ \(userId=\?\)/);
  }
});

it.runIf(servers.asked)(
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

const DELETED = {
  postgres: { tenants: 2_000, users: 20_000, hotUsers: 20_000 },
  mysql: { tenants: 2_000, users: 20_000, hotUsers: 6_000 },
};
const remove = ({ api }: App) => api.deleteTenant({ body: { tenantId: tenantId(HOT) } });

it.runIf(servers.asked).each(servers.kinds)(
  "deleting a tenant with many users on %s blocks no other sign-in, takes little memory, and is atomic",
  async (kind) => {
    const size = DELETED[kind];
    // The deletion stops right before its commit, with all that it locks.
    const commit = gate();
    onTestFinished(commit.open);
    const app = await open(kind, size, (database) => {
      // As docs/databases.md advises for MySQL and MariaDB.
      const isolate = "set session transaction isolation level read committed";
      if (kind === "mysql")
        database.option.pool.on("connection", (one: Pool) => one.query(isolate));
      let deleting = false;
      interceptStatements(database, async (sql, { send }) => {
        if (/^delete from .tenant. /i.test(sql)) deleting = true;
        if (deleting && /^commit/i.test(sql)) {
          deleting = false;
          await commit.pass();
        }
        return send();
      });
    });
    const column = app.database.quote("tenantId");
    const rows = async () => {
      const counts = [await app.rows("tenant", "id = ?", [tenantId(HOT)])];
      for (const table of TABLES.slice(1)) {
        counts.push(await app.rows(table, `${column} = ?`, [tenantId(HOT)]));
      }
      return counts;
    };
    const before = await rows();
    expect(Math.min(...before.slice(2))).toBe(size.hotUsers);

    app.queries.length = 0;
    const removed = remove(app);
    await commit.reached;
    for (const { sql, params } of app.queries) {
      expect(params.length, "parameters of a statement").toBeLessThanOrEqual(100);
      const read = / limit (\?|\$\d)/.test(sql) ? Number(params.at(-1)) : 1;
      expect(read, "rows at a time").toBeLessThanOrEqual(5000);
    }
    expect(await rows()).toEqual(before);
    const requests = Array.from({ length: 150 }, (_, index) =>
      otherTenantsRequest(app, size, index),
    );
    const patience = new Promise((resolve) => setTimeout(resolve, 30_000, "they wait"));
    const statuses = Promise.all(requests).then((answers) => answers.map(({ status }) => status));
    expect(await Promise.race([statuses, patience])).toEqual(requests.map(() => 200));
    commit.open();
    expect(await removed).toEqual({ success: true });
    expect(await rows()).toEqual([0, 0, 0, 0, 0, 0]);
  },
  120_000,
);
