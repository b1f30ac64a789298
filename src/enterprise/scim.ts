import { getCurrentAdapter } from "@better-auth/core/context";
import type { HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { keepAdmin } from "../border/administrators";
import { type Border, belowBorder, isOfTransaction, OF_KEY, type Row } from "../border/border";
import type { Call } from "../border/keep-admin";
import { wayOf } from "../border/ways";
import { type AfterHook, boundedMap } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { keeperOf } from "../scope/instance";
import { getTenantId, notes, runInScope, settled } from "../scope/scope";
import { countDirectories, isActiveElsewhere, isDeactivated, liftDeactivation } from "./scim-rows";

const USERS_PATH = "/scim/v2/Users";

const deactivated = () =>
  new APIError("FORBIDDEN", {
    code: "USER_DEACTIVATED",
    message: "The directory of this tenant has deactivated this user",
  });

/**
 * Refuses sessions where they are made, once more when they are stored, and wherever one is left: a
 * cookie cannot be taken away, and the index of a storage may have lost one. Keys are asked about
 * each time.
 */
export function barDeactivated(border: Border): void {
  const { policy, openSince } = border;
  const { admitRow, guard } = policy;
  policy.admitRow = async (model, scope, row, adapter) => {
    if (model === "session" && scope.tenantId) {
      if (await isDeactivated(adapter, scope.tenantId, row.userId)) throw deactivated();
    }
    return admitRow(model, scope, row, adapter);
  };
  policy.guard = (name, call: Call, run, raw, transaction) => {
    const userId = changedBySignIn(border, name, call);
    const go = () => guard(name, call as never, run, raw, transaction);
    const tenantId = getTenantId();
    if (userId === undefined || tenantId === null) return go();
    return lookNow(border, tenantId, String(userId), transaction).then((isBarred) => {
      if (isBarred) throw deactivated();
      return go() ?? run(call as never);
    });
  };
  border.secondLook = async ({ tenantId, userId }) => {
    const isBarred = tenantId && isDeactivated(await belowBorder(border), tenantId, userId);
    return (await isBarred) ? deactivated() : undefined;
  };
  border.isBarred = (tenantId, userId, adapter) => lookNow(border, tenantId, userId, adapter);
  border.openSince = async (session, adapter) => {
    const { tenantId, userId } = session;
    if (!tenantId || userId === undefined) return openSince(session, adapter);
    const look = OF_KEY in session ? lookNow : lookOften;
    const isBarred = await look(border, tenantId, String(userId), adapter);
    return isBarred ? undefined : openSince(session, adapter);
  };
}

/**
 * Whose accounts or address a sign-in is about to change. Whoever proves an address for the first
 * time loses the password that was set before, and only then gets a session, or none.
 */
function changedBySignIn(
  { confinedModel }: Border,
  name: string,
  { model, where, update }: Call,
): unknown {
  const isAccount = name === "delete" && confinedModel(model) === "account";
  const isAddress = update?.emailVerified && confinedModel(model) === "user";
  // Nearly all calls are about something else.
  if ((!isAccount && !isAddress) || !wayOf(currentEndpoint())) return undefined;
  const id = where?.find(({ field }) => field === "id")?.value;
  return isAccount ? notes().accounts?.find((account) => account.id === id)?.userId : id;
}

const KEPT_MS = 10_000;

/** Until when this process need not ask again whether somebody is barred, and how often that changed. */
interface Seen {
  people: Map<string, number>;
  changes: number;
}

const note = boundedMap<number>(10_000);
const seenBy = new WeakMap<object, Seen>();

function seenPeople({ ctx }: Border): Seen {
  const instance = keeperOf(ctx);
  const seen = seenBy.get(instance) ?? { people: new Map(), changes: 0 };
  seenBy.set(instance, seen);
  return seen;
}

const keyOf = (tenantId: string, userId: string) => JSON.stringify([tenantId, userId]);

/** As it was at most ten seconds ago: this is asked for every session of every request. */
async function lookOften(
  border: Border,
  tenantId: string,
  userId: string,
  adapter: DBTransactionAdapter | undefined,
): Promise<boolean> {
  const seen = seenPeople(border);
  const key = keyOf(tenantId, userId);
  const now = Date.now();
  if ((seen.people.get(key) ?? 0) > now) return false;
  const { changes } = seen;
  const isBarred = await lookNow(border, tenantId, userId, adapter);
  // A directory may have changed it here while it was looked up.
  const isForAll = changes === seen.changes && !isOfTransaction(border, adapter);
  if (!isBarred && isForAll) note(seen.people, key, now + KEPT_MS);
  return isBarred;
}

function forget(border: Border, tenantId: string, userId: string): void {
  const seen = seenPeople(border);
  seen.changes++;
  seen.people.delete(keyOf(tenantId, userId));
}

/** Whoever asks from inside a transaction may not know it, and a database may have one connection. */
async function lookNow(
  { ctx, raw }: Border,
  tenantId: string,
  userId: string,
  adapter: DBTransactionAdapter | undefined = raw,
): Promise<boolean> {
  if (adapter !== raw) return isDeactivated(adapter, tenantId, userId);
  return runInScope(settled(tenantId), async () =>
    isDeactivated(await getCurrentAdapter(ctx.adapter), tenantId, userId),
  );
}

/**
 * Runs a call of the directory that deletes its row of somebody, unless the tenant would lose its
 * last administrator with it: the user is deleted once that is committed, too late to refuse.
 */
export async function keepLastAdmin<T>(
  border: Border,
  roles: string[],
  transaction: DBTransactionAdapter | undefined,
  deletion: Where[],
  run: () => Promise<T>,
): Promise<T> {
  const note = notes();
  const { directoryUser } = note;
  const tenantId = getTenantId();
  if (!roles.length || !directoryUser || !tenantId || !isAboutUsers(currentEndpoint()))
    return run();
  const adapter = transaction ?? border.ctx.adapter;
  // Asked now: without the row that says so, they would count as somebody who can sign in.
  if (await isDeactivated(adapter, tenantId, directoryUser)) {
    note.letGo = directoryUser;
    return run();
  }
  // A second directory lets them in. One that has them as inactive would bar them from now on.
  if (await isActiveElsewhere(adapter, tenantId, directoryUser, deletion)) return run();
  const where = [{ field: "id", value: directoryUser }];
  return keepAdmin(border, roles, { where }, run, transaction);
}

/** An API key, looked up to be verified, is none while its owner is barred. */
export async function asKey(
  { where = [] }: { where?: { field: string }[] },
  found: unknown,
  raw: DBTransactionAdapter,
): Promise<unknown> {
  const { referenceId, tenantId } = (found ?? {}) as Row;
  if (!tenantId || referenceId === undefined || where[0]?.field !== "key") return found;
  return (await isDeactivated(raw, tenantId, referenceId)) ? null : found;
}

/**
 * Remembers whom a call of the directory is about, and whether it deletes them: better-auth deletes
 * its own row, and leaves the user. It reads the row before, in the same transaction, which nobody
 * else should ask in between.
 */
export function noteDirectoryUser(name: string, found: unknown): void {
  if (!isAboutUsers(currentEndpoint()) || getTenantId() === null) return;
  const note = notes();
  const { userId, active } = (found ?? {}) as Row;
  if ((name === "findOne" || name === "create") && userId !== undefined) {
    note.directoryUser = String(userId);
  }
  // What the application does next, as taking their role away, is a part of the deactivation.
  if ((name === "update" || name === "create") && userId !== undefined) {
    note.letGo = active ? undefined : String(userId);
  }
  if (name === "delete" && note.directoryUser) note.deprovisioned = note.directoryUser;
}

const isAboutUsers = (endpoint: { path?: string | undefined } | undefined) =>
  endpoint?.path?.startsWith(USERS_PATH) === true;

/**
 * After the directory's change is committed. Somebody whom it has deleted is gone from the tenant,
 * unless another directory has them. Whoever was signing in while they were deactivated has a
 * session that better-auth did not see: it is ended here, or refused by `secondLook`.
 */
export function followDirectory(border: Border): AfterHook {
  const { internalAdapter } = border.ctx;
  return {
    matcher: (ctx) =>
      isAboutUsers(ctx) && ctx.method !== "GET" && notes().directoryUser !== undefined,

    handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
      const { deprovisioned, directoryUser: userId } = notes();
      const tenantId = getTenantId();
      if (!userId || !tenantId) return;
      forget(border, tenantId, userId);
      if (isAPIError(context.returned)) return;
      const below = await belowBorder(border);
      if (deprovisioned) {
        const directories = await countDirectories(below, tenantId, userId);
        if (directories === 0) await internalAdapter.deleteUser(userId);
      } else if (await isDeactivated(below, tenantId, userId)) {
        await internalAdapter.deleteUserSessions(userId);
      }
    }),
  };
}

/** No directory is left that could let somebody in again: the tenant's administrator does. */
export const followAdministrator = (border: Border): AfterHook => ({
  matcher: ({ path }) => path === "/admin/unban-user",

  handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
    const { user } = (context.returned ?? {}) as { user?: Row };
    if (!user?.tenantId) return;
    await liftDeactivation(await belowBorder(border), user.tenantId, String(user.id));
  }),
});
