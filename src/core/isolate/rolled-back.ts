import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { isAPIError } from "better-auth/api";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { ADAPTER_METHODS } from "../database";
import { rootCause } from "../database-errors";
import { tenantError } from "../errors";

/*
 * Repeats what the database has not done: the loser of a deadlock, of a conflict between two
 * transactions or between two nodes of a cluster, and what was sent to a server that went away. A
 * statement outside a transaction is repeated alone. Inside a transaction, everything before it is
 * undone as well, so the whole transaction is repeated. Where this is impossible, or in vain, the
 * caller gets 503 `TRY_AGAIN`.
 */

const REPETITIONS = 3;

/**
 * What an error of a driver says about a statement:
 * - `rolled back`: it is undone, together with its transaction.
 * - `not started`: the server takes no statements, or no writes. It starts, stops, is a replica, or
 *   is not part of its cluster at the moment.
 * - `connection lost`: nobody knows whether the statement was done. A transaction was not, unless
 *   the commit was sent.
 * - `locked`: another transaction held a lock for too long. Repeating would add to the waiting.
 */
type DatabaseFailure = "rolled back" | "not started" | "connection lost" | "locked";

/** Codes of MySQL, PostgreSQL, Prisma, SQLite and sockets, and messages of errors without a code. */
const FAILURES: Record<DatabaseFailure, { code: RegExp; message?: RegExp }> = {
  "rolled back": { code: /^(ER_LOCK_DEADLOCK|1213|40P01|40001|P2034|SQLITE_BUSY\w*)$/ },
  "not started": {
    code: /^(ECONNREFUSED|57P03|25006|ER_OPTION_PREVENTS_STATEMENT|1290|P1001)$/,
    // A node of Galera.
    message: /^WSREP /,
  },
  "connection lost": {
    code: /^(ECONNRESET|EPIPE|PROTOCOL_CONNECTION_LOST|57P0[12]|08\w{3}|ER_SERVER_SHUTDOWN|1053|ER_CONNECTION_KILLED|1927|P1017)$/,
    message:
      /^(Connection terminated|Client has encountered a connection error|Can't add new command when connection is in closed state)/,
  },
  locked: { code: /^(ER_LOCK_WAIT_TIMEOUT|1205|55P03|SQLITE_LOCKED\w*)$/ },
};

/** The property of our `TRY_AGAIN` that says why. */
type TryAgain = { failure?: DatabaseFailure };

/**
 * Returns the codes of an error. In node:sqlite, the last byte of `errcode` is the primary code.
 */
function codesIn(error: unknown): string[] {
  const { code, errno, errcode } = rootCause(error);
  const sqlite = { 5: "SQLITE_BUSY", 6: "SQLITE_LOCKED" }[(errcode ?? 0) & 255];
  return [code, errno, code === "ERR_SQLITE_ERROR" && sqlite].map(String);
}

/** Returns what a driver's error means for its statement, or why we have asked to try again. */
function failureOf(error: unknown): DatabaseFailure | undefined {
  if (isAPIError(error)) return (error as TryAgain).failure;
  const { message = "" } = rootCause(error);
  const codes = codesIn(error);
  return (Object.keys(FAILURES) as DatabaseFailure[]).find((failure) => {
    const { code, message: text } = FAILURES[failure];
    return codes.some((one) => code.test(one)) || text?.test(message);
  });
}

/** Returns whether the database has rolled back the statement or its transaction. */
export const isRolledBack = (error: unknown) => failureOf(error) === "rolled back";

/**
 * Turns the error of a statement that the database did not do, or may not have done, into 503
 * `TRY_AGAIN`. Keeps only the driver's codes: some drivers put values into their errors. Returns
 * every other error unchanged.
 */
export function asTryAgain(error: unknown): unknown {
  const failure = failureOf(error);
  if (!failure || isAPIError(error)) return error;
  const { code, errno } = rootCause(error);
  const headers = { "Retry-After": "1" };
  return Object.assign(tenantError("TRY_AGAIN"), { headers, code, errno, failure });
}

/** Returns an adapter that repeats calls and transactions that the database has not done. */
export function repeatRolledBack(adapter: DBAdapter): DBAdapter {
  type Run = (call: unknown) => Promise<unknown>;
  const methods = ADAPTER_METHODS.map((method) => {
    const run = adapter[method] as Run | undefined;
    const isUndone: (DatabaseFailure | undefined)[] = ["rolled back", "not started"];
    // To read or delete again changes nothing.
    if (/^(find|count|delete$)/.test(method)) isUndone.push("connection lost");
    const call: Run = (input) =>
      repeat(
        () => (run as Run)(input),
        (error) => isUndone.includes(failureOf(error)),
      );
    return [method, run && call];
  });
  const transaction = <R>(run: (inner: DBTransactionAdapter) => Promise<R>) =>
    repeatTransaction(adapter, run);
  return { __proto__: adapter, ...Object.fromEntries(methods), transaction };
}

/**
 * Repeats a transaction that was not stored, after undoing its cookies and sign-ins. This is possible
 * because the response has not been sent. If the connection broke after the commit was sent, the
 * transaction may be stored, and is not repeated.
 */
function repeatTransaction<R>(
  adapter: DBAdapter,
  run: (inner: DBTransactionAdapter) => Promise<R>,
): Promise<R> {
  const restoreResponse = rememberResponse();
  let canRepeat = true;
  let isCommitting = false;
  const attempt = async () => {
    // Why the callback has failed. If the connection is lost, the error of the rollback hides it.
    let reason: unknown;
    isCommitting = false;
    try {
      return await adapter.transaction(async (inner) => {
        // Adapters without transactions pass themselves, and what was written stays.
        canRepeat = inner !== adapter && inner !== Object.getPrototypeOf(adapter);
        const result = await run(inner).catch((error) => {
          reason = error;
          throw error;
        });
        isCommitting = true;
        return result;
      });
    } catch (error) {
      throw reason ?? asTryAgain(error);
    }
  };
  const isUndone = (error: unknown) => {
    // An error of the callback that is not the database's: see `asTryAgain` in `transactions.ts`.
    const failure = isAPIError(error) && failureOf(error);
    const known = isCommitting
      ? ["rolled back"]
      : ["rolled back", "not started", "connection lost"];
    if (!canRepeat || !failure || !known.includes(failure)) return false;
    restoreResponse();
    return true;
  };
  return repeat(attempt, isUndone);
}

/** Returns a function that undoes the sign-ins, and the cookies, that the request gets from now on. */
function rememberResponse(): () => void {
  const { responseHeaders: headers, context } = tryGetCurrentAuthEndpointContext() ?? {};
  const cookies = headers?.getSetCookie();
  const newSession = context?.newSession ?? null;
  return () => {
    headers?.delete("set-cookie");
    for (const cookie of cookies ?? []) headers?.append("set-cookie", cookie);
    context?.setNewSession(newSession);
  };
}

async function repeat<R>(run: () => Promise<R>, isUndone: (error: unknown) => boolean): Promise<R> {
  for (let count = 1; ; count++) {
    try {
      return await run();
    } catch (error) {
      if (count > REPETITIONS || !isUndone(error)) throw asTryAgain(error);
    }
    // A random delay: two calls that repeat at the same moment would collide again.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * count));
  }
}
