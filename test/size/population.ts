import { createHash } from "node:crypto";
import type { CompiledQuery, Dialect } from "kysely";
import type { Answer } from "../support/browser";
import type { TestDatabase } from "../support/database";
import { PASSWORD } from "../support/instance";
import { createSocialInstance, type SocialOptions } from "../support/social";
import { gate } from "../support/world";

/** How many of each. Tenant 0 comes on top: the hot one, with users of its own. */
export interface Size {
  tenants: number;
  users: number;
  hotUsers: number;
}

/** What they sign in with. */
export interface Credentials {
  /** As it is stored. */
  password: string;
  /** Where every tenth of them has an account. */
  provider: string;
}

type Database = Pick<TestDatabase, "kind" | "option" | "query" | "quote">;

export const HOT = 0;
export const TABLES = [
  "tenant",
  "tenantOauthConfig",
  "user",
  "session",
  "account",
  "verification",
] as const;

// Ids lie scattered over the indexes, as better-auth's own do.
const md5 = (text: string) => createHash("md5").update(text).digest("hex");
export const tenantId = (n: number) => md5(`tenant-${n}`);
export const tenantSlug = (n: number) => `tenant-${n}`;
const userId = (n: number) => md5(`user-${n}`);
export const userEmail = (n: number) => `member-${n}@example.com`;

/** Users of a tenant, for k from 1 on. Those with a round number have an account at the provider. */
export const userOf = (tenant: number, k: number, { tenants, users }: Size) =>
  tenant === HOT ? users + 10 * k : tenant - 1 + k * tenants;

/**
 * Fills the tables past better-auth. Users have a password, a session and perhaps a social account;
 * there are reset tokens, and OAuth configs, which are copies of the ones that are there already.
 */
export async function populate(
  database: Database,
  { tenants, users, hotUsers }: Size,
  { password, provider }: Credentials,
): Promise<void> {
  const { numbers, inSeconds, md5Of } = WORDS[database.kind];
  const q = database.quote;
  const hash = (prefix: string, n = "n") => md5Of(`concat('${prefix}-', ${n})`);
  const tenant = hash("tenant", `case when n > ${users} then ${HOT} else 1 + n % ${tenants} end`);
  const everybody = numbers(1, users + hotUsers);
  const times = { createdAt: inSeconds("-n"), updatedAt: inSeconds("-n") };
  const owned = { tenantId: tenant, userId: hash("user"), ...times };
  const expiresAt = inSeconds("604800");

  if (database.kind === "sqlite") await writeHashes(database, users + hotUsers, provider);
  await inBulk(database, async (run) => {
    const insert = (table: string, columns: Record<string, string>, from: string) => {
      const names = Object.keys(columns).map(q).join(", ");
      const values = Object.values(columns).join(", ");
      return run(`insert into ${q(table)} (${names}) select ${values} from ${from}`);
    };
    await insert(
      "tenant",
      {
        id: hash("tenant"),
        name: "concat('Tenant ', n)",
        slug: "concat('tenant-', n)",
        status: "'active'",
        ...times,
      },
      numbers(0, tenants),
    );
    await insert(
      "user",
      {
        id: hash("user"),
        tenantId: tenant,
        name: "concat('User ', n)",
        email: "concat('member-', n, '@example.com')",
        emailVerified: "true",
        ...times,
      },
      everybody,
    );
    await insert(
      "session",
      { id: hash("session"), token: hash("token"), expiresAt, ...owned },
      everybody,
    );
    await insert(
      "account",
      {
        id: hash("account", "concat(provider, n)"),
        providerId: "provider",
        accountId: `case provider when 'credential' then ${hash("user")} else concat(n, '') end`,
        password: `case provider when 'credential' then '${password}' end`,
        ...owned,
      },
      `${everybody}, (select 'credential' as provider union all select '${provider}') p
       where provider = 'credential' or n % 10 = 0`,
    );
    await insert(
      "verification",
      {
        id: hash("verification"),
        tenantId: tenant,
        identifier: `concat('reset-password:', ${hash("reset")})`,
        value: hash("user"),
        expiresAt,
        ...times,
      },
      `${everybody} where n % 10 = 0 or n > ${users}`,
    );
    const copied = ["providerId", "clientId", "clientSecret", "enabled", "createdAt", "updatedAt"];
    await insert(
      "tenantOauthConfig",
      {
        id: hash("config"),
        tenantId: hash("tenant"),
        ...Object.fromEntries(copied.map((column) => [column, q(column)])),
      },
      `${q("tenantOauthConfig")}, ${numbers(0, tenants)} where n % 10 < 2`,
    );
  });
}

interface Words {
  /** A table of numbers, in a column n. */
  numbers(from: number, to: number): string;
  inSeconds(seconds: string): string;
  md5Of(text: string): string;
}

/** What each database has another word for. */
const WORDS: Record<TestDatabase["kind"], Words> = {
  postgres: {
    numbers: (from, to) => `generate_series(${from}, ${to}) n`,
    inSeconds: (seconds) => `date_trunc('second', now()) + (${seconds}) * interval '1 second'`,
    md5Of: (text) => `md5(${text})`,
  },
  mysql: {
    numbers: (from, to) => `(select seq as n from seq_${from}_to_${to}) s`,
    inSeconds: (seconds) => `date_add(now(3), interval ${seconds} second)`,
    md5Of: (text) => `md5(${text})`,
  },
  sqlite: {
    numbers: (from, to) =>
      `(with recursive s(n) as (select ${from} union all select n + 1 from s where n < ${to})
        select n from s) s`,
    inSeconds: (seconds) => `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', concat(${seconds}, ' seconds'))`,
    md5Of: (text) => `(select hash from temp.hashes where text = ${text})`,
  },
};

/** SQLite cannot count them itself. */
async function writeHashes({ query }: Database, last: number, provider: string): Promise<void> {
  await query("create temp table hashes (text text primary key, hash text)");
  const things = ["tenant", "user", "session", "token", "verification", "reset", "config"];
  const accounts = ["credential", provider].map((name) => `account-${name}`);
  for (let n = 0; n <= last; n++) {
    const texts = [...things.map((thing) => `${thing}-${n}`), ...accounts.map((it) => it + n)];
    const rows = texts.map((text) => `('${text}', '${md5(text)}')`);
    await query(`insert into temp.hashes values ${rows}`);
  }
}

type Run = (sql: string) => Promise<unknown>;

/** Loads into tables without keys, and builds the keys at the end: that is several times faster. */
async function inBulk(database: Database, load: (run: Run) => Promise<void>) {
  if (database.kind === "mysql") {
    // One connection, and it builds the keys of an empty table in one go by itself.
    const connection = await database.option.getConnection();
    const run: Run = (sql) => connection.query(sql);
    await run("set unique_checks = 0, foreign_key_checks = 0");
    await load(run);
    connection.destroy();
    await database.query(`analyze table ${TABLES.map(database.quote).join(", ")}`);
    return;
  }
  const { query } = database;
  if (database.kind === "sqlite") {
    await load(query);
    await query("drop table temp.hashes");
    await query("analyze");
    return;
  }
  await query("set synchronous_commit = off");
  await query("set maintenance_work_mem = '512MB'");
  const constraints = await query(`
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
      format('alter table %s add constraint %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid)) as make
    from pg_constraint where connamespace = 'public'::regnamespace order by contype <> 'f'`);
  const indexes = await query(`
    select format('drop index %s', indexrelid::regclass) as drop, pg_get_indexdef(indexrelid) as make
    from pg_index join pg_class on pg_class.oid = indrelid
    where relnamespace = 'public'::regnamespace
      and not exists (select from pg_constraint where conindid = indexrelid)`);
  for (const { drop } of [...constraints, ...indexes]) await query(String(drop));
  await load(query);
  for (const { make } of [...constraints.reverse(), ...indexes]) await query(String(make));
  await query(`vacuum analyze ${TABLES.map(database.quote).join(", ")}`);
}

/** A statement as it reached the database. */
export interface Query {
  sql: string;
  params: unknown[];
}

/** What a statement costs, whatever the tables hold. */
export interface Plan extends Query {
  /** Tables that are read from end to end. */
  scans: string[];
  /** The largest number of rows, or of entries of an index, that one step of the plan reads. */
  rows: number;
}

type Listener = (connection: object, sql: string, run: () => unknown, params: unknown) => unknown;

/** Hears every statement from now on. Connections that are open already are not heard. */
function listen({ kind, option }: TestDatabase, listener: Listener): void {
  const hear = (connection: { query: (...args: never[]) => unknown }) => {
    const query = connection.query.bind(connection) as (...args: unknown[]) => unknown;
    connection.query = (...args: unknown[]) =>
      listener(connection, String(args[0]), () => query(...args), args[1]);
  };
  if (kind === "mysql") option.pool.on("connection", hear);
  if (kind === "postgres") option.on("connect", hear);
  if (kind === "sqlite") listenToSqlite(option.dialect, listener);
}

function listenToSqlite(dialect: Dialect, listener: Listener): void {
  const createDriver = dialect.createDriver.bind(dialect);
  dialect.createDriver = () => {
    const driver = createDriver();
    const acquire = driver.acquireConnection.bind(driver);
    driver.acquireConnection = async () => {
      const connection = await acquire();
      return {
        streamQuery: connection.streamQuery.bind(connection),
        executeQuery: async <Row>(query: CompiledQuery) => {
          const run = () => connection.executeQuery<Row>(query);
          return listener(connection, query.sql, run, query.parameters) as ReturnType<typeof run>;
        },
      };
    };
    return driver;
  };
}

/** Every statement from now on that reads or writes rows, with its parameters. */
export function recordQueries(database: TestDatabase): Query[] {
  const queries: Query[] = [];
  listen(database, (_, sql, run, params) => {
    if (/^(select|insert|update|delete)\b/i.test(sql)) {
      queries.push({ sql, params: Array.isArray(params) ? params : [] });
    }
    return run();
  });
  return queries;
}

export async function explain(database: TestDatabase, { sql, params }: Query): Promise<Plan> {
  const explainOn = { postgres: explainPostgres, mysql: explainMysql, sqlite: explainSqlite };
  const { scans, rows } = await explainOn[database.kind](database, sql, params);
  return { sql, params, scans, rows };
}

interface Node {
  "Node Type": string;
  "Relation Name"?: string;
  "Actual Rows"?: number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  Plans?: Node[];
}

/** Runs the statement and takes it back, to see what is really read. */
async function explainPostgres({ query }: TestDatabase, sql: string, params: unknown[]) {
  // A row cannot be inserted twice; what inserting it costs does not depend on a choice.
  const analyze = !/^insert/i.test(sql);
  await query("begin");
  const rows = await query(`explain (analyze ${analyze}, format json) ${sql}`, params);
  await query("rollback");
  const [
    {
      "QUERY PLAN": [{ Plan: root }],
    },
  ] = rows as [{ "QUERY PLAN": [{ Plan: Node }] }];
  const nodes: Node[] = [root];
  for (const node of nodes) nodes.push(...(node.Plans ?? []));
  const scans = nodes.filter((node) => node["Node Type"] === "Seq Scan");
  const reads = nodes.map(
    (node) =>
      (node["Actual Rows"] ?? 0) +
      (node["Rows Removed by Filter"] ?? 0) +
      (node["Rows Removed by Index Recheck"] ?? 0),
  );
  return { scans: scans.map((node) => node["Relation Name"] ?? "?"), rows: Math.max(...reads) };
}

/** The same with MariaDB's word for it. */
async function explainMysql({ option }: TestDatabase, sql: string, params: unknown[]) {
  if (/^insert/i.test(sql)) return { scans: [], rows: 0 };
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
  const plan: Pick<Plan, "scans" | "rows"> = { scans: [], rows: 0 };
  if (/^insert/i.test(sql)) return plan;
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

/** What every generated tenant with a config has registered. */
const CLIENT = { clientId: "size-client", clientSecret: "size-secret" };

/** What generated users sign in with. */
export const CREDENTIALS: Credentials = { password: `hashed:${PASSWORD}`, provider: "gitlab" };

/** An instance whose tenants are about to be generated, and what it mails. */
export async function createSizeInstance(options: SocialOptions) {
  const resetTokens: string[] = [];
  const app = await createSocialInstance({
    ...options,
    auth: {
      ...options.auth,
      emailAndPassword: {
        enabled: true,
        sendResetPassword: async ({ token }) => void resetTokens.push(token),
      },
    },
  });
  const template = await app.createTenant("template");
  await app.configure(template.id, CLIENT);
  return { ...app, resetTokens };
}

export type SizeInstance = Awaited<ReturnType<typeof createSizeInstance>>;

/** Looks inside of names and slugs, where no index leads: goes through the tenants until it has enough. */
export const SEARCH = "search tenants";

/** Runs one request that has to go well. */
export async function succeed<T>(name: string, run: () => Promise<Answer<T>>): Promise<T> {
  const { status, data, location } = await run();
  if (status < 400 && !location?.includes("error")) return data;
  throw new Error(`${name}: ${status} ${location ?? ""} ${JSON.stringify(data)}`);
}

/** Runs one request; its name says what for. */
export type Step = <T>(name: string, run: () => Promise<Answer<T>>) => Promise<T>;

/** Walks through the flows of one generated tenant, request by request. */
export async function walk(app: SizeInstance, size: Size, tenant: number, step: Step) {
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
  await step("request-password-reset", () => stranger().post("/request-password-reset", { email }));
  const reset = { token: app.resetTokens.at(-1), newPassword: PASSWORD };
  await step("reset-password", () => stranger().post("/reset-password", reset));
  await step("sign-out", () => me.post("/sign-out"));

  app.idp.addPerson("member", { id: n, email });
  app.idp.addPerson("visitor", {
    id: 1_000_000_000 + tenant,
    email: `visitor-${tenant}@example.com`,
  });
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
  for (const sort of ["createdAt", "-createdAt", "name", "slug"]) {
    const query = { limit: "20", offset: "20", sort };
    await step(`list tenants by ${sort}`, () => operator.get("/tenant/list", { query }));
  }
  const search = { search: "nant 99", limit: "20" };
  await step(SEARCH, () => operator.get("/tenant/list", { query: search }));
  await step("update tenant", () => operator.post("/tenant/update", { tenantId: id, name: "New" }));
  const config = { tenantId: id, providerId: "github", clientId: "id", clientSecret: "secret" };
  await step("register config", () => operator.post("/tenant/oauth-config/register", config));
  await step("list configs", () =>
    operator.get("/tenant/oauth-config/list", { query: { tenantId: id } }),
  );
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

/** Stops the transaction that deletes a tenant right before its commit, with all that it locks. */
export function holdDeletion(database: TestDatabase) {
  const commit = gate();
  const deleting = new WeakSet<object>();
  listen(database, (connection, sql, run) => {
    if (/^delete from .tenant. /i.test(sql)) deleting.add(connection);
    if (!/^commit/i.test(sql) || !deleting.delete(connection)) return run();
    return commit.pass().then(() => {
      const answer = run();
      // The one driver answers with a promise, the other calls back.
      return answer instanceof Promise ? answer : undefined;
    });
  });
  return { reached: commit.reached, release: commit.open };
}

/** One of the other tenants' people signs in, signs up, or starts with a provider. */
export function otherTenantsRequest(app: SizeInstance, size: Size, index: number) {
  const n = 1 + ((index * 7919) % size.users);
  const named = { tenantId: tenantId(1 + (n % size.tenants)) };
  const person = { ...named, email: userEmail(n), password: PASSWORD };
  const newcomer = { ...person, name: "Newcomer", email: `newcomer-${index}@example.com` };
  const social = { ...named, provider: "gitlab", callbackURL: "/" };
  if (index % 3 === 0) return app.browser().post("/tenant/sign-up/email", newcomer);
  if (index % 3 === 1) return app.browser().post("/tenant/sign-in/social", social);
  return app.browser().post("/tenant/sign-in/email", person);
}
