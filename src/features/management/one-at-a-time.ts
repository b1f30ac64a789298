import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { clauses } from "../../core/database";
import { currentTransaction } from "../../core/request";
import { despiteDeadlocks } from "./delete";
import type { Tenant } from "./tenant";

/**
 * Calls `run` with the tenant's row locked. Otherwise concurrent calls could all pass a limit
 * before the first of them is stored. Does not lock inside a transaction of the application. After
 * a deadlock, calls `run` again.
 */
export async function oneAtATime<T>(
  ctx: AuthContext,
  { id, status }: Pick<Tenant, "id" | "status">,
  run: () => Promise<T>,
): Promise<T> {
  if (currentTransaction()?.isTransactionActive) return run();
  const runLocked = async () => {
    // This update changes nothing, and locks the row until the commit.
    const where = clauses({ id, status });
    const adapter = await getCurrentAdapter(ctx.adapter);
    await adapter.updateMany({ model: "tenant", where, update: { status } });
    return run();
  };
  return inTurn(id, () => despiteDeadlocks(ctx, () => runWithTransaction(ctx.adapter, runLocked)));
}

const turns = new Map<string, Promise<unknown>>();

/**
 * Runs the calls for a tenant one after the other in this process, for databases without
 * transactions or row locks.
 */
async function inTurn<T>(tenantId: string, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(tenantId) ?? Promise.resolve()).then(run, run);
  turns.set(tenantId, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(tenantId) === turn) turns.delete(tenantId);
  }
}
