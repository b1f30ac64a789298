import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { symmetricDecrypt } from "better-auth/crypto";
import type { CompiledQuery, DatabaseConnection, Dialect, QueryResult } from "kysely";
import type { PoolConnection } from "mysql2";
import type { PoolClient } from "pg";
import { onTestFinished } from "vitest";
import type { TestDatabase } from "../support/database";
import type { Instance } from "../support/instance";

/**
 * How a statement fails. "refused": the server answers with an error, as it does to the loser of a
 * deadlock. "not sent": the connection breaks before the statement reaches the server. "answer
 * lost": it breaks after the server has done it, so that nobody can know.
 */
type Fault = "refused" | "not sent" | "answer lost";

/** What can be done to a statement on its way through a driver. */
interface Way<Result> {
  values: readonly unknown[];
  send(): Promise<Result>;
  /** Rejects as the driver does when the server says no. */
  refuse(): Promise<never>;
  /** Breaks the connection; everything that is sent afterwards fails. */
  breakConnection(): Promise<void>;
}

/**
 * Lets the n-th statement of a database fail from now on, once. Statements are what the driver
 * sends, the begin and the end of transactions too. The errors and the broken connections are the
 * driver's own. To be called before anybody uses the database.
 */
export function injectFaults(database: TestDatabase) {
  let armed: { fault: Fault; countdown: number; among: RegExp } | undefined;
  let met: string | undefined;

  async function pass<Result>(sql: string, way: Way<Result>): Promise<Result> {
    // For a question it makes no difference in which way it goes unanswered.
    const passes = armed?.fault !== "refused" && /^\s*select/i.test(sql);
    if (!armed?.among.test(sql) || passes || --armed.countdown > 0) return way.send();
    const { fault } = armed;
    armed = undefined;
    met = sql;
    if (fault === "refused") return way.refuse();
    if (fault === "answer lost") await way.send();
    await way.breakConnection();
    return way.send();
  }

  interceptStatements(database, pass);

  return {
    /** The faults that make a difference on this database. */
    kinds: (database.kind === "sqlite"
      ? ["refused", "answer lost"]
      : ["refused", "not sent", "answer lost"]) satisfies Fault[] as Fault[],

    /**
     * Runs something while the n-th statement fails, of all or of those that match; answers which
     * one did, if there were so many.
     */
    async during<T>(fault: Fault, n: number, run: () => Promise<T>, among = /(?:)/) {
      armed = { fault, countdown: n, among };
      met = undefined;
      const result = await run();
      armed = undefined;
      return { result, statement: met as string | undefined };
    },
  };
}

/** Puts a function between better-auth and the driver of its database. */
export function interceptStatements(
  { kind, option }: Pick<TestDatabase, "kind" | "option">,
  pass: Pass,
): void {
  if (kind === "sqlite") onSqlite(option.dialect, pass);
  if (kind === "postgres") option.on("connect", (client: PoolClient) => onPostgres(client, pass));
  if (kind === "mysql") {
    option.pool.on("connection", (connection: PoolConnection) => onMysql(connection, pass));
  }
}

type Pass = <Result>(sql: string, way: Way<Result>) => Promise<Result>;

function onPostgres(client: PoolClient, pass: Pass) {
  const query = client.query.bind(client) as (sql: string, values?: unknown[]) => Promise<unknown>;
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } })
    .connection;
  const deadlock = `do $$ begin raise exception 'deadlock detected' using errcode = '40P01'; end $$`;
  Object.assign(client, {
    query: (sql: string, values: unknown[] = []) =>
      pass(sql, {
        values,
        send: () => query(sql, values),
        refuse: () => query(deadlock) as Promise<never>,
        breakConnection: async () => void stream.destroy(),
      }),
  });
}

function onMysql(connection: PoolConnection, pass: Pass) {
  type Callback = (error: unknown, result?: unknown) => void;
  const query = connection.query.bind(connection) as (
    sql: unknown,
    values?: unknown[],
    callback?: Callback,
  ) => unknown;
  const send = (sql: string, values: unknown[] = []) =>
    new Promise<unknown>((resolve, reject) => {
      query(sql, values, (error, result) => (error ? reject(error) : resolve(result)));
    });
  Object.assign(connection, {
    query: (sql: unknown, values?: unknown[], callback?: Callback) => {
      // The pool's own `query`, which the tests use and better-auth does not.
      if (typeof sql !== "string" || !callback) return query(sql, values, callback);
      pass(sql, {
        values: values ?? [],
        send: () => send(sql, values),
        refuse: async () => {
          // The server undoes the whole transaction of a deadlock's loser, and the driver's error
          // has the statement with all of its values.
          await send("rollback");
          const deadlock = `signal sqlstate '40001' set mysql_errno = 1213, message_text = 'Deadlock found'`;
          return send(deadlock).catch((error) => {
            throw Object.assign(error, { sql: connection.format(sql, values) });
          }) as Promise<never>;
        },
        breakConnection: async () => connection.destroy(),
      }).then(
        (result) => callback(null, result),
        (error) => callback(error),
      );
    },
  });
}

/** SQLite has no connection to lose; here it has one, with what a driver over the network does. */
function onSqlite(dialect: Dialect, pass: Pass) {
  const createDriver = dialect.createDriver.bind(dialect);
  const failure = (code: string, message: string) => Object.assign(new Error(message), { code });
  dialect.createDriver = () => {
    const driver = createDriver();
    const acquire = driver.acquireConnection.bind(driver);
    driver.acquireConnection = async () => {
      const raw = await acquire();
      let broken = false;
      const run = (query: CompiledQuery): Promise<QueryResult<never>> => {
        if (broken) throw failure("SQLITE_IOERR", "disk I/O error");
        return raw.executeQuery(query);
      };
      const connection: DatabaseConnection = {
        streamQuery: raw.streamQuery.bind(raw),
        executeQuery: async <Row>(query: CompiledQuery) =>
          pass<QueryResult<Row>>(query.sql, {
            values: query.parameters,
            send: async () => run(query),
            refuse: async () => {
              throw failure("SQLITE_BUSY", "database is locked");
            },
            breakConnection: async () => {
              const rollback = { ...query, sql: "rollback", parameters: [] };
              await Promise.resolve(rollback)
                .then(run)
                .catch(() => {});
              broken = true;
            },
          }),
      };
      return connection;
    };
    return driver;
  };
}

export const TABLES = ["tenant", "tenantOauthConfig", "user", "session", "account", "verification"];

type Row = Record<string, unknown>;

/** Everything that is in the database, row by row, under "table id". */
export async function contentsOf(database: TestDatabase, tables: string[]) {
  const contents = new Map<string, Row>();
  for (const table of tables) {
    for (const row of await database.query(`select * from ${database.quote(table)}`)) {
      contents.set(`${table} ${row.id}`, row);
    }
  }
  return contents;
}
type Contents = Awaited<ReturnType<typeof contentsOf>>;

/**
 * What has changed, in words that are the same for every run of the same flow: ids say of which
 * table they are, random values and times only whether they are there, and credentials are in
 * clear.
 */
export async function difference(
  secretConfig: Instance["context"]["secretConfig"],
  before: Contents,
  after: Contents,
): Promise<string[]> {
  const keys = [...new Set([...before.keys(), ...after.keys()])];
  const tableOf = new Map(keys.map((key) => key.split(" ").reverse() as [string, string]));

  async function describe(key: string, row: Row | undefined) {
    if (!row) return "nothing";
    const words = await Promise.all(
      Object.entries(row).map(async ([column, value]) => {
        const [table] = key.split(" ");
        if (table === "tenantOauthConfig" && /^client/.test(column)) {
          return [column, await symmetricDecrypt({ key: secretConfig, data: `${value}` })];
        }
        if (value === null) return [column, null];
        if (tableOf.has(String(value))) return [column, tableOf.get(String(value))];
        const random = value instanceof Date || /At$|token|value|identifier|slug/i.test(column);
        return [column, random ? "..." : value];
      }),
    );
    return JSON.stringify(Object.fromEntries(words));
  }

  const changes = await Promise.all(
    keys.map(async (key) => {
      const [was, is] = [before.get(key), after.get(key)];
      if (JSON.stringify(was) === JSON.stringify(is)) return [];
      return [`${key.split(" ")[0]}: ${await describe(key, was)} -> ${await describe(key, is)}`];
    }),
  );
  return changes.flat().sort();
}

/** The same in few words: "account created, user created". */
export function inShort(changes: string[]): string {
  const verb = (change: string) =>
    /: nothing ->/.test(change) ? "created" : /-> nothing$/.test(change) ? "deleted" : "changed";
  return changes.map((change) => `${change.split(":")[0]} ${verb(change)}`).join(", ");
}

/** The tables that still have something of a tenant. */
export async function leftOf({ database, context, rows }: Instance, tenantId: string) {
  const left: string[] = [];
  for (const table of TABLES) {
    // With secondary storage there are fewer tables.
    if (!context.tables[table]) continue;
    const column = database.quote(table === "tenant" ? "id" : "tenantId");
    if (await rows(table, `${column} = ?`, [tenantId])) left.push(table);
  }
  return left;
}

/** Stands between an instance and its database server, and can be switched off. */
export async function startProxy(serverPort: number) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(serverPort, "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;

  /** Whoever is connected is cut off, and whoever comes is turned away. */
  async function off() {
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of sockets) socket.destroy();
    await closed;
  }
  onTestFinished(async () => {
    if (server.listening) await off();
  });
  return { port, off, on: () => listen(port) };
}
