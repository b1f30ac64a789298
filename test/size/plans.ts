import type { CompiledQuery, Dialect } from "kysely";
import type { TestDatabase } from "../support/database";
import { TABLES } from "./population";

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
export function listen({ kind, option }: TestDatabase, listener: Listener): void {
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
