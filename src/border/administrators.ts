import { getCurrentAdapter, runWithTransaction } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { tenantError } from "../errors";
import { isServersOwn } from "../scope/endpoint";
import { currentTransaction, notes } from "../scope/scope";
import { settle } from "../scope/settle";
import type { Border, Row } from "./border";

/*
 * A tenant that has administrators of its own keeps one: the last cannot be demoted, banned or
 * removed, by themselves or by each other. Operators and the server's own code may.
 */

type Change = { where: Where[]; update?: Row | undefined };
type Run<T> = (adapter: DBTransactionAdapter) => Promise<T>;

/** No limit in adapters means 100. */
const ALL = 2_147_483_647;

/** Runs a change of users, unless the tenant would have no administrator after it. */
export async function keepAdmin<T>(
  border: Border,
  roles: string[],
  change: Change,
  run: Run<T>,
  transaction?: DBTransactionAdapter,
): Promise<T> {
  const { ctx } = border;
  const adapter = transaction ?? (await getCurrentAdapter(ctx.adapter));
  const scope = await settle(border.readSession);
  const { tenantId } = scope;
  if (tenantId === null || scope.reach !== "own" || isServersOwn()) return run(adapter);
  const since = await border.tenantSince(tenantId, adapter);
  if (since === undefined) return run(adapter);
  const runChecked = async (adapter: DBTransactionAdapter) => {
    await lockTenant(adapter, tenantId, since);
    const isBarred = ({ id }: Row) => border.isBarred?.(tenantId, String(id), adapter);
    await assertOneIsLeft(adapter, roles, change, isBarred);
    return run(adapter);
  };
  // Whoever waits inside a transaction may have what the one before is waiting for.
  if (adapter !== ctx.adapter || hasTurn()) return runChecked(adapter);
  return inTurn(ctx, tenantId, () =>
    runWithTransaction(ctx.adapter, () =>
      holdingTurn(async () => runChecked(await getCurrentAdapter(ctx.adapter))),
    ),
  );
}

/**
 * Transactions, as better-auth tells them apart, that have their turn. A hook that changes another
 * user is a part of it, on databases without transactions too: if it waited for the turn that it
 * has, it would wait for ever, and so would everybody behind it.
 */
const withTurn = new WeakSet<object>();

function hasTurn(): boolean {
  const transaction = currentTransaction();
  // Without an adapter it is one of another instance.
  return transaction?.adapter !== undefined && withTurn.has(transaction);
}

async function holdingTurn<T>(run: () => Promise<T>): Promise<T> {
  const transaction = currentTransaction() ?? {};
  withTurn.add(transaction);
  try {
    return await run();
  } finally {
    withTurn.delete(transaction);
  }
}

/**
 * The same for a whole user, whose sessions and accounts better-auth deletes before the row: a
 * refusal must come before that.
 */
export async function keepAdminAround<T>(
  border: Border,
  roles: string[],
  userId: string,
  deleteUser: () => Promise<T>,
): Promise<T> {
  const where = [{ field: "id", value: userId }];
  return keepAdmin(border, roles, { where }, async () => {
    const { leaving } = notes();
    notes().leaving = userId;
    try {
      return await deleteUser();
    } finally {
      notes().leaving = leaving;
    }
  });
}

/**
 * Two administrators who demote each other must not both see the other one as left. Writing the
 * tenant's row locks it until the commit. Only the status is written, and only where it is that
 * already: what this process remembers may be of a tenant that was deleted elsewhere, whose number
 * another one has by now. Looked at after the lock, because MySQL goes on showing what a transaction
 * has read first. The turns below do the same in one process, for databases without transactions.
 */
export async function lockTenant(adapter: DBTransactionAdapter, tenantId: string, since: string) {
  const where = [{ field: "id", value: tenantId }];
  const isActive = { field: "status", value: "active" };
  const update = { status: "active" };
  await adapter.updateMany({ model: "tenant", where: [...where, isActive], update });
  const select = ["createdAt", "status"];
  const tenant = await adapter.findOne<Row>({ model: "tenant", where, select });
  if (!tenant || new Date(tenant.createdAt as Date).getTime() !== Number(since)) {
    throw tenantError("TENANT_NOT_FOUND");
  }
  // Nobody holds the lock of a tenant that has been suspended a moment ago.
  if ((tenant.status ?? "active") === "active") return;
  throw tenantError("TENANT_SUSPENDED");
}

const turnsAt = new WeakMap<object, Map<string, Promise<unknown>>>();

export async function inTurn<T>(
  { adapter }: AuthContext,
  tenantId: string,
  run: () => Promise<T>,
): Promise<T> {
  const turns = turnsAt.get(adapter) ?? new Map<string, Promise<unknown>>();
  turnsAt.set(adapter, turns);
  const turn = (turns.get(tenantId) ?? Promise.resolve()).then(run, run);
  turns.set(tenantId, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(tenantId) === turn) turns.delete(tenantId);
  }
}

async function assertOneIsLeft(
  adapter: DBTransactionAdapter,
  roles: string[],
  { where, update }: Change,
  isBarred: (admin: Row) => Promise<boolean> | undefined,
): Promise<void> {
  const admins = await findAdmins(adapter, roles);
  if (!admins.length || (update && isAdmin(update, roles))) return;
  const changed = await adapter.findMany<Row>({ model: "user", where, select: ["id"], limit: ALL });
  // Somebody may be on their way out while a hook changes the next one.
  const { leaving, letGo } = notes();
  const gone = new Set([...changed.map(({ id }) => id), leaving]);
  const lost = admins.filter(({ id }) => gone.has(id) && String(id) !== letGo);
  if (!changed.length || !lost.length) return;
  // Whom a directory has deactivated is no help to the tenant, before the change or after it.
  const someCanSignIn = async (some: Row[]) => {
    for (const admin of some) if (!(await isBarred(admin))) return true;
    return false;
  };
  if (await someCanSignIn(admins.filter(({ id }) => !gone.has(id)))) return;
  if (!(await someCanSignIn(lost))) return;
  throw tenantError("LAST_ADMIN");
}

/** The tenant's administrators who are not banned. */
async function findAdmins(adapter: DBTransactionAdapter, roles: string[]): Promise<Row[]> {
  const where = roles.map((value) => ({
    field: "role",
    operator: "contains" as const,
    value,
    connector: "OR" as const,
  }));
  const found = await adapter.findMany<Row>({ model: "user", where, limit: ALL });
  return found.filter((user) => isAdmin(user, roles));
}

/** The admin plugin keeps several roles in one text. */
function isAdmin({ role, banned }: Row, roles: string[]): boolean {
  const own = String(role ?? "").split(",");
  return !banned && own.some((name) => roles.includes(name.trim()));
}
