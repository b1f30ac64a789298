import { randomBytes } from "node:crypto";
import { SqliteDialect } from "kysely";
import Database from "libsql";
import { createPool } from "mysql2/promise";
import { Client, Pool } from "pg";

/** A fresh, empty database for one test instance. */
export interface TestDatabase {
  kind: DatabaseKind;
  /** What goes into better-auth's `database` option. */
  // biome-ignore lint/suspicious/noExplicitAny: each driver has its own type, and better-auth takes them all
  option: any;
  /** Runs a statement past everything else. Placeholders are `?` everywhere. */
  query(sql: string, params?: unknown[]): Promise<Record<string, unknown>[]>;
  /** The name of a table or column as this database quotes it. */
  quote(name: string): string;
  /** Every statement that reached the database, without begin and commit. */
  statements: string[];
  close(): Promise<void>;
}

export type DatabaseKind = "sqlite" | "postgres" | "mysql";

/**
 * The databases that suites run on. SQLite needs nothing but Node; the servers are asked for with
 * TEST_SERVERS=1, and then they have to be there.
 */
export const databases: DatabaseKind[] = process.env.TEST_SERVERS
  ? ["postgres", "mysql"]
  : ["sqlite"];

/** How better-auth makes ids: random texts, UUIDs, or numbers that the database counts. */
export const ID_KINDS = ["text", "uuid", "serial"] as const;
export type IdKind = (typeof ID_KINDS)[number];

/** SQLite gives the number of a deleted row to the next one, so its numbers are refused at start. */
export const idKindsOn = (database: DatabaseKind | "memory"): readonly IdKind[] =>
  database === "sqlite" || database === "memory"
    ? ID_KINDS.filter((ids) => ids !== "serial")
    : ID_KINDS;

/** Ids that repeat from model to model and from instance to instance, as numbers do. */
export function countingIds() {
  const counts = new Map<string, number>();
  return ({ model }: { model: string }) => {
    const next = (counts.get(model) ?? 0) + 1;
    counts.set(model, next);
    return String(next);
  };
}

/** For what only a server can show; skipped, and shown as skipped, where there are none. */
export const servers = { kinds: ["postgres", "mysql"] as const, asked: databases.length > 1 };

/** How many people do something at once: on servers as many as the threat list has. */
export const crowdOn = (database: DatabaseKind) => (database === "sqlite" ? 50 : 200);

const HOST = "127.0.0.1";
const isQuery = (sql: string) => !/^\s*(begin|commit|rollback|set|start transaction)\b/i.test(sql);

export async function createDatabase(kind: DatabaseKind): Promise<TestDatabase> {
  return { sqlite: createSqlite, postgres: createPostgres, mysql: createMysql }[kind]();
}

/** From now on the pool opens no second connection. To be called before anybody uses the database. */
export function allowOneConnection({ kind, option }: TestDatabase): void {
  if (kind === "postgres") option.options.max = 1;
  if (kind === "mysql") option.pool.config.connectionLimit = 1;
}

/** Puts the statements of a connection on a list. */
// biome-ignore lint/suspicious/noExplicitAny: pg and mysql2 overload `query` a dozen times
function listenTo(client: any, statements: string[]) {
  const query = client.query.bind(client);
  client.query = (first: string | { text?: string; sql?: string }, ...rest: unknown[]) => {
    const sql = typeof first === "string" ? first : (first.text ?? first.sql ?? "");
    if (isQuery(sql)) statements.push(sql);
    return query(first, ...rest);
  };
}

async function createSqlite(): Promise<TestDatabase> {
  const db = new Database(":memory:");
  const statements: string[] = [];
  const prepare = db.prepare.bind(db);
  const prepared = new Map<string, ReturnType<typeof prepare<unknown[]>>>();
  // Once for each statement, and Kysely's question whether it reads: half of what SQLite costs here.
  const prepareOnce = (sql: string) => {
    const statement = prepared.get(sql) ?? prepare<unknown[]>(sql);
    if (prepared.has(sql)) return statement;
    prepared.set(sql, Object.defineProperty(statement, "reader", { value: statement.reader }));
    return statement;
  };
  db.prepare = ((sql: string) => {
    if (isQuery(sql)) statements.push(sql);
    return prepareOnce(sql);
  }) as typeof db.prepare;
  return {
    kind: "sqlite",
    option: { dialect: new SqliteDialect({ database: db }), type: "sqlite", transaction: true },
    statements,
    quote: (name) => `"${name}"`,
    async query(sql, params = []) {
      const statement = prepare(sql);
      if (statement.reader) return statement.all(params) as Record<string, unknown>[];
      statement.run(params);
      return [];
    },
    async close() {
      db.close();
    },
  };
}

const SERVER = { host: HOST, port: 5432, user: "postgres" };

/** A statement about databases, which cannot be run in the one that it is about. */
async function administer(sql: string) {
  const client = new Client({ ...SERVER, database: "test" });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

/** Empty ones that no test uses. To make or drop a database waits for the disk, to empty it does not. */
const unused: string[] = [];

const EMPTY = `
  select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid();
  do $$ declare name text; begin
    for name in select nspname from pg_namespace where nspname !~ '^(pg_|information_schema$)' loop
      execute format('drop schema %I cascade', name);
    end loop;
    create schema public;
    grant usage on schema public to public;
  end $$`;

/** When all tests of a process are done; `test/support/global-setup.ts` calls it. */
export async function dropDatabases(of: number): Promise<void> {
  const rows = await administer(`select datname from pg_database where datname ~ '^t_${of}_'`);
  for (const { datname } of rows) await administer(`drop database ${datname} with (force)`);
}

async function createPostgres(): Promise<TestDatabase> {
  // A database of its own: looking at the tables of one schema, better-auth's migrations stumble
  // over schemas that other tests drop at that moment.
  const known = unused.pop();
  const name = known ?? `t_${process.ppid}_${randomBytes(6).toString("hex")}`;
  if (!known) {
    await administer(`create database ${name}`);
    // No test asks what survives a crash of the server, and most of their time went into the disk.
    await administer(`alter database ${name} set synchronous_commit = off`);
  }
  const pool = new Pool({ ...SERVER, database: name, max: 10 });
  const statements: string[] = [];
  // Connections that close while their database is dropped say so, and nobody needs to know.
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    client.on("error", () => {});
    listenTo(client, statements);
  });
  const direct = new Client({ ...SERVER, database: name });
  await direct.connect();
  return {
    kind: "postgres",
    option: pool,
    statements,
    quote: (column) => `"${column}"`,
    async query(sql, params = []) {
      let position = 0;
      const { rows } = await direct.query(
        sql.replaceAll("?", () => `$${++position}`),
        params,
      );
      return rows;
    },
    async close() {
      await pool.end();
      await direct.query(EMPTY);
      await direct.end();
      unused.push(name);
    },
  };
}

async function createMysql(): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString("hex")}`;
  const connection = { host: HOST, port: 3306, user: "root", timezone: "Z" };
  const admin = createPool({ ...connection, connectionLimit: 1 });
  await admin.query(`create database ${name}`);
  const pool = createPool({ ...connection, database: name, connectionLimit: 10 });
  const statements: string[] = [];
  pool.pool.on("connection", (client) => listenTo(client, statements));
  return {
    kind: "mysql",
    option: pool,
    statements,
    quote: (column) => `\`${column}\``,
    async query(sql, params = []) {
      const [rows] = await pool.query(sql, params);
      return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
    },
    async close() {
      await pool.end();
      await admin.query(`drop database ${name}`);
      await admin.end();
    },
  };
}
