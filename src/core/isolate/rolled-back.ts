import { isAPIError } from "better-auth/api";
import type { DBAdapter, DBTransactionAdapter } from "better-auth/types";
import { ADAPTER_METHODS } from "../database";
import { rootCause } from "../database-errors";
import { tenantError } from "../errors";

/*
 * Handles statements that the database has rolled back: the loser of a deadlock, or of a conflict
 * between two transactions or between two nodes of a cluster. Outside a transaction, the statement
 * has done nothing, and is repeated. Inside a transaction, everything before it is undone as well,
 * so the caller gets 503 `TRY_AGAIN`.
 */

const REPETITIONS = 3;

/** Codes of MySQL, PostgreSQL (deadlock and serialization failure), Prisma and SQLite. */
const ROLLED_BACK = /^(ER_LOCK_DEADLOCK|1213|40P01|40001|P2034|SQLITE_BUSY\w*)$/;

/**
 * Codes for a lock that another transaction held for too long. Repeating would add to the waiting.
 */
const LOCKED = /^(ER_LOCK_WAIT_TIMEOUT|1205|55P03|SQLITE_LOCKED\w*)$/;

/** The error of a Galera node that is not part of its cluster at the moment. */
const NOT_READY = /^WSREP /;

/**
 * Returns the codes of an error. In node:sqlite, the last byte of `errcode` is the primary code.
 */
function codesIn(error: unknown): string[] {
  const { code, errno, errcode } = rootCause(error);
  const sqlite = { 5: "SQLITE_BUSY", 6: "SQLITE_LOCKED" }[(errcode ?? 0) & 255];
  return [code, errno, code === "ERR_SQLITE_ERROR" && sqlite].map(String);
}

/** Returns whether the database has rolled back the statement or its transaction. */
export const isRolledBack = (error: unknown) =>
  codesIn(error).some((code) => ROLLED_BACK.test(code));

/**
 * Turns the error of a statement that was rolled back, or not started, into 503 `TRY_AGAIN`. Keeps
 * only the driver's codes, by which this plugin decides whether to repeat: some drivers put values
 * into their errors. Returns every other error unchanged.
 */
export function asTryAgain(error: unknown): unknown {
  if (isAPIError(error)) return error;
  const { code, errno, message = "" } = rootCause(error);
  const isPassing =
    codesIn(error).some((one) => ROLLED_BACK.test(one) || LOCKED.test(one)) ||
    NOT_READY.test(message);
  if (!isPassing) return error;
  const headers = { "Retry-After": "1" };
  return Object.assign(tenantError("TRY_AGAIN"), { headers, code, errno });
}

/** Returns an adapter that repeats calls outside of transactions if they were rolled back. */
export function repeatRolledBack(adapter: DBAdapter): DBAdapter {
  type Run = (call: unknown) => Promise<unknown>;
  const methods = ADAPTER_METHODS.map((method) => {
    const run = adapter[method] as Run | undefined;
    const call: Run = (input) =>
      (run as Run)(input).catch((error) => repeat(() => (run as Run)(input), error));
    return [method, run && call];
  });
  const transaction = async <R>(run: (inner: DBTransactionAdapter) => Promise<R>) => {
    try {
      return await adapter.transaction(run);
    } catch (error) {
      // The database may also refuse the commit, especially in a cluster.
      throw asTryAgain(error);
    }
  };
  return { __proto__: adapter, ...Object.fromEntries(methods), transaction };
}

async function repeat(run: () => Promise<unknown>, first: unknown): Promise<unknown> {
  let error = first;
  for (let count = 1; count <= REPETITIONS && isRolledBack(error); count++) {
    // A random delay: two calls that repeat at the same moment would collide again.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * count));
    try {
      return await run();
    } catch (again) {
      error = again;
    }
  }
  throw asTryAgain(error);
}
