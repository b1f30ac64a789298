import type { Subject } from "../instance/subject";

type Rows = Record<string, unknown>[];

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

/** pg answers an object, mysql2 a list with the rows first, others the rows. */
type Answer = { rows: Rows } | [Rows, ...unknown[]] | Rows;

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
  close?(): Promise<void>;
}

interface Connection {
  executeQuery(query: object): Promise<{ rows: Rows }>;
}
interface Driver {
  init(): Promise<void>;
  acquireConnection(): Promise<Connection>;
  releaseConnection(connection: Connection): Promise<void>;
}
type Dialect = { createDriver(): Driver };

/** All that better-auth's `database` option may be, as far as it can be read from. */
interface Database extends Partial<Dialect> {
  db?: Connection;
  dialect?: Dialect;
  prepare?(sql: string): { all(): Rows };
  promise?(): { query(sql: string): Promise<Answer> };
  query?(sql: string): Promise<Answer>;
}

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
  const run = client && (client.$queryRawUnsafe ?? client.execute ?? client.all);
  const query = given.query ?? (run && (async (sql) => rowsOf(await run.call(client, sql))));
  if (query && dialect) return { query, dialect, client };
  const database = ctx.options.database as Database | undefined;
  if (ctx.adapter.id !== "kysely" || !database || !dialect) return undefined;
  const opened = await openDatabase(database);
  return opened && { ...opened, dialect };
}

async function openDatabase(database: Database): Promise<Omit<Opened, "dialect"> | undefined> {
  const { db, createDriver } = database;
  if (db) return { query: queryOn(db) };
  const dialect = database.dialect ?? (createDriver && (database as Dialect));
  if (dialect) {
    const driver = dialect.createDriver();
    await driver.init();
    const connection = await driver.acquireConnection();
    // The connection goes back; the database behind it is the application's.
    return { query: queryOn(connection), close: () => driver.releaseConnection(connection) };
  }
  if (database.prepare) return { query: async (sql) => database.prepare?.(sql).all() ?? [] };
  const pool = database.promise?.() ?? database;
  if (!pool.query) return undefined;
  return { query: async (sql) => rowsOf((await pool.query?.(sql)) ?? []) };
}

const queryOn =
  (connection: Connection): Query =>
  async (sql) => {
    const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] };
    const queryId = { queryId: "better-auth-tenant" };
    return (await connection.executeQuery({ sql, parameters: [], query, queryId })).rows;
  };

function rowsOf(answer: Answer): Rows {
  if (!Array.isArray(answer)) return answer.rows;
  return Array.isArray(answer[0]) ? answer[0] : (answer as Rows);
}

export function quoterFor(isMySQL: boolean) {
  const mark = isMySQL ? "`" : '"';
  return (name: string) => mark + name.replaceAll(mark, mark + mark) + mark;
}
