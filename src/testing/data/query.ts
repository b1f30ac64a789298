import type { Subject } from "../instance/subject";

/** Runs a statement that reads, and returns its rows. */
export type Query = (sql: string) => Promise<Record<string, unknown>[]>;

/** What `checkDeployment` can be told about a database. */
export interface DeploymentOptions {
  /** Drizzle's `db` or the Prisma client: their adapters do not let the kit read the catalog. */
  database?: object;
  /** Reads from the database in another way. */
  query?: Query;
  /** The SQL that `query` understands, if the adapter does not say so. */
  dialect?: "sqlite" | "postgres" | "mysql";
}

/** As much of Drizzle's `db` and the Prisma client as is used, to read and to map names. */
interface Client {
  $queryRawUnsafe?(sql: string): Promise<Answer>;
  execute?(sql: string): Promise<Answer>;
  all?(sql: string): Promise<Answer>;
  _?: { fullSchema?: Record<string, unknown> };
  _runtimeDataModel?: { models?: object };
}

export interface Opened {
  query: Query;
  dialect: string;
  client?: Client | undefined;
  close(): Promise<void>;
}

type Rows = Record<string, unknown>[];
/** pg answers an object, mysql2 a list with the rows first, others the rows. */
type Answer = { rows: Rows } | [Rows, ...unknown[]] | Rows;
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
  query?(sql: string): Promise<Answer>;
};

/** How the adapters of Drizzle and Prisma call their databases. */
const PROVIDERS: Record<string, string> = { pg: "postgres", postgresql: "postgres" };

/** A way to read from the database that better-auth was given. */
export async function findQuery(
  { ctx }: Subject,
  given: DeploymentOptions,
): Promise<Opened | undefined> {
  const { type, provider = "" } = (ctx.adapter.options ?? {}) as Record<string, string>;
  const dialect = given.dialect ?? type ?? PROVIDERS[provider] ?? provider;
  const client = given.database as Client | undefined;
  const query = given.query ?? (client && clientQuery(client));
  if (query && dialect) return { query, dialect, client, close: async () => {} };
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
    query: async (sql: string) => rowsOf(await ask(sql)),
    close,
  };
}

function rowsOf(answer: Answer): Rows {
  if (!Array.isArray(answer)) return answer.rows;
  return Array.isArray(answer[0]) ? answer[0] : (answer as Rows);
}

function clientQuery(client: Client): Query | undefined {
  const run = client.$queryRawUnsafe ?? client.execute ?? client.all;
  return run && (async (sql) => rowsOf(await run.call(client, sql)));
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
