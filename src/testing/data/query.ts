import type { Subject } from "../instance/subject";

/** Runs a statement that reads, and returns its rows. */
export type Query = (sql: string) => Promise<Record<string, unknown>[]>;

/** What `checkDeployment` can be told about a database. */
export interface DeploymentOptions {
  /** Reads from the database, where the kit finds no way of its own: behind Drizzle or Prisma. */
  query?: Query;
  /** The SQL that `query` understands. */
  dialect?: "sqlite" | "postgres" | "mysql";
}

export interface Opened {
  query: Query;
  dialect: string;
  close(): Promise<void>;
}

type Rows = Record<string, unknown>[];
type Dialect = { createDriver(): Driver };
interface Driver {
  init(): Promise<void>;
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
}
interface Connection {
  executeQuery(query: object): Promise<{ rows: Rows }>;
}

/** All that better-auth's `database` option may be, as far as it can be read from. */
type Database = {
  db?: { executeQuery(query: object): Promise<{ rows: Rows }> };
  dialect?: Dialect;
  createDriver?: Dialect["createDriver"];
  prepare?(sql: string): { all(): Rows };
  connect?: unknown;
  getConnection?: unknown;
  promise?(): { query(sql: string): Promise<[Rows]> };
  query?(sql: string): Promise<{ rows: Rows } | [Rows]>;
};

/** A way to read from the database that better-auth was given. */
export async function findQuery(
  { ctx }: Subject,
  given: DeploymentOptions,
): Promise<Opened | undefined> {
  const { type } = (ctx.adapter.options ?? {}) as { type?: string };
  const dialect = given.dialect ?? type;
  if (given.query && dialect) return { query: given.query, dialect, close: async () => {} };
  const database = ctx.options.database as Database | undefined;
  if (ctx.adapter.id !== "kysely" || !database || !dialect) return undefined;
  const opened = await openDatabase(database);
  return opened && { ...opened, dialect };
}

const compiled = (sql: string) => ({
  sql,
  parameters: [],
  query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
  queryId: { queryId: "better-auth-tenant" },
});

async function openDatabase(database: Database) {
  const close = async () => {};
  const { db, prepare, promise, query } = database;
  if (db)
    return { query: async (sql: string) => (await db.executeQuery(compiled(sql))).rows, close };
  const dialect = database.dialect ?? (database.createDriver && (database as Dialect));
  if (dialect) return openDialect(dialect);
  if (prepare) return { query: async (sql: string) => prepare.call(database, sql).all(), close };
  const pool = promise ? promise.call(database) : { query: query?.bind(database) };
  if (!pool.query) return undefined;
  const ask = pool.query.bind(pool) as NonNullable<Database["query"]>;
  return {
    // pg answers an object, mysql2 a list with the rows first.
    query: async (sql: string) => {
      const answer = await ask(sql);
      return Array.isArray(answer) ? answer[0] : answer.rows;
    },
    close,
  };
}

async function openDialect(dialect: Dialect) {
  const driver = dialect.createDriver();
  await driver.init();
  const connection = await driver.acquireConnection();
  return {
    query: async (sql: string) => (await connection.executeQuery(compiled(sql))).rows,
    // The connection goes back; the database behind it is the application's.
    close: () => driver.releaseConnection(connection),
  };
}
