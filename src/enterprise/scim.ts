import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { type AfterHook, boundedMap } from "../framework";
import {
  type Isolation,
  instanceKey,
  isOfTransaction,
  OF_KEY,
  type Row,
  unscopedAdapter,
} from "../isolation/isolation";
import { asErrorRedirect } from "../policy/admission";
import { type Call, requireAnotherAdmin } from "../policy/last-admin";
import { methodOf } from "../policy/methods";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, notes, type SessionRow } from "../request/scope";
import { ALL } from "../tenants/cache";
import { deleteKeysOf } from "./scim-keys";
import {
  countDirectories,
  findUser,
  isActiveElsewhere,
  isDeactivated,
  liftDeactivation,
} from "./scim-rows";

const USERS_PATH = "/scim/v2/Users";

const deactivated = () =>
  asErrorRedirect(
    currentEndpoint(),
    new APIError("FORBIDDEN", {
      code: "USER_DEACTIVATED",
      message: "The directory of this tenant has deactivated this user",
    }),
  );

/**
 * Whether one of the people is out who have a session: its user, or the administrator who acts as
 * that user. An operator of the platform who does so is in no directory of the tenant.
 */
async function isSomeOwnerOut(
  { isPossibleId }: Isolation,
  { userId, impersonatedBy }: SessionRow,
  isOut: (userId: string) => Promise<boolean>,
): Promise<boolean> {
  for (const id of [userId, impersonatedBy]) {
    if (id && isPossibleId(String(id)) && (await isOut(String(id)))) return true;
  }
  return false;
}

/**
 * Refuses sessions where they are made, once more when they are stored, and wherever one is left: a
 * cookie cannot be taken away, and the index of a storage may have lost one. Keys are asked about
 * each time.
 */
export function barDeactivated(isolation: Isolation): void {
  const { policy, acceptsSession } = isolation;
  const { admitRow, guard } = policy;
  policy.admitRow = async (model, scope, row, adapter) => {
    const { tenantId } = scope;
    if (model === "session" && tenantId) {
      const isOut = (userId: string) => isDeactivated(adapter, tenantId, userId);
      if (await isSomeOwnerOut(isolation, row, isOut)) throw deactivated();
    }
    return admitRow(model, scope, row, adapter);
  };
  policy.guard = (name, call: Call, run, raw, transaction) => {
    const userId = changedBySignIn(isolation, name, call);
    const go = () => guard(name, call as never, run, raw, transaction);
    const tenantId = getTenantId();
    if (userId === undefined || tenantId === null) return go();
    return isBarred(isolation, tenantId, String(userId), transaction).then((isRefused) => {
      if (isRefused) throw deactivated();
      return go() ?? run(call as never);
    });
  };
  isolation.isBarred = (...question) => isBarred(isolation, ...question);
  isolation.acceptsSession = async (session, adapter) => {
    const { tenantId } = session;
    if (!tenantId) return acceptsSession(session, adapter);
    const look = OF_KEY in session ? isBarred : isOutOrGone;
    const isOut = (userId: string) => look(isolation, tenantId, userId, adapter);
    return !(await isSomeOwnerOut(isolation, session, isOut)) && acceptsSession(session, adapter);
  };
}

/**
 * Whose rows a sign-in is about to change. better-auth links accounts, writes profiles, and takes a
 * password away that was set before an address was proven, and only then makes a session, or none.
 */
function changedBySignIn(
  { isolatedModel }: Isolation,
  name: string,
  { model, where = [], data }: Call,
): unknown {
  // Nearly all calls are about something else.
  if (name.startsWith("find") || name === "count" || !methodOf(currentEndpoint())) return undefined;
  const [{ field, value } = {}] = where;
  const { accounts, knownUsers } = notes();
  const kind = isolatedModel(model);
  if (kind === "account") {
    return data?.userId ?? accounts?.find((account) => account[`${field}`] === value)?.userId;
  }
  if (kind !== "user" || name === "create") return undefined;
  if (field === "id") return value;
  return [...knownUsers].find(([, user]) => field === "email" && user.email === value)?.[0];
}

const KEPT_MS = 10_000;

/** Until when this process need not ask again whether somebody is barred, and how often that changed. */
interface Seen {
  people: Map<string, number>;
  changes: number;
}

const note = boundedMap<number>(10_000);
const seenBy = new WeakMap<object, Seen>();

function seenPeople({ ctx }: Isolation): Seen {
  const instance = instanceKey(ctx);
  const seen = seenBy.get(instance) ?? { people: new Map(), changes: 0 };
  seenBy.set(instance, seen);
  return seen;
}

const keyOf = (tenantId: string, userId: string) => JSON.stringify([tenantId, userId]);

/**
 * As it was at most ten seconds ago: this is asked for every session of every request. A cookie, or
 * a session in which they act as somebody else, may be left of whom the directory has deleted.
 */
async function isOutOrGone(
  isolation: Isolation,
  tenantId: string,
  userId: string,
  adapter: DBTransactionAdapter | undefined,
): Promise<boolean> {
  const seen = seenPeople(isolation);
  const key = keyOf(tenantId, userId);
  const now = Date.now();
  if ((seen.people.get(key) ?? 0) > now) return false;
  const { changes } = seen;
  const reader = await readerOf(isolation, adapter);
  const isOut =
    !(await findUser(reader, userId)) || (await isDeactivated(reader, tenantId, userId));
  // A directory may have changed it here while it was looked up.
  const isForAll = changes === seen.changes && !isOfTransaction(isolation, adapter);
  if (!isOut && isForAll) note(seen.people, key, now + KEPT_MS);
  return isOut;
}

function forget(isolation: Isolation, tenantId: string, userId: string): void {
  const seen = seenPeople(isolation);
  seen.changes++;
  seen.people.delete(keyOf(tenantId, userId));
}

/** Asks the database each time. */
const isBarred = async (
  isolation: Isolation,
  tenantId: string,
  userId: string,
  adapter: DBTransactionAdapter | undefined,
) => isDeactivated(await readerOf(isolation, adapter), tenantId, userId);

/** Whoever asks from inside a transaction may not know it, and a database may have one connection. */
const readerOf = async (isolation: Isolation, adapter: DBTransactionAdapter = isolation.raw) =>
  adapter === isolation.raw ? unscopedAdapter(isolation) : adapter;

/**
 * Runs a call of the directory that deletes its row of somebody, unless the tenant would lose its
 * last administrator with it: the user is deleted once that is committed, too late to refuse.
 */
export async function keepLastAdmin<T>(
  isolation: Isolation,
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
  const adapter = transaction ?? isolation.ctx.adapter;
  // Asked now: without the row that says so, they would count as somebody who can sign in.
  if (await isDeactivated(adapter, tenantId, directoryUser)) {
    note.letGo = directoryUser;
    return run();
  }
  // A second directory lets them in. One that has them as inactive would bar them from now on.
  if (await isActiveElsewhere(adapter, tenantId, directoryUser, deletion)) return run();
  const where = [{ field: "id", value: directoryUser }];
  await requireAnotherAdmin(isolation, roles, { where }, transaction);
  return run();
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
 * session that better-auth did not see: it is ended here.
 */
export function followDirectory(isolation: Isolation): AfterHook {
  return {
    matcher: (ctx) =>
      isAboutUsers(ctx) && ctx.method !== "GET" && notes().directoryUser !== undefined,

    handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
      const { deprovisioned, directoryUser: userId } = notes();
      const tenantId = getTenantId();
      if (!userId || !tenantId) return;
      forget(isolation, tenantId, userId);
      if (isAPIError(context.returned)) return;
      const below = await unscopedAdapter(isolation);
      const { internalAdapter } = context;
      if (deprovisioned && !(await countDirectories(below, tenantId, userId))) {
        await internalAdapter.deleteUser(userId);
        // They may have been seen once more in the meantime.
        forget(isolation, tenantId, userId);
        await deleteKeysOf(context, userId);
        await endImpersonations(context, userId);
      } else if (await isDeactivated(below, tenantId, userId)) {
        await internalAdapter.deleteUserSessions(userId);
        await endImpersonations(context, userId);
      }
    }),
  };
}

/** Ends sessions in which somebody acts as another. Those that are in no table are refused there. */
async function endImpersonations(
  { adapter, internalAdapter, tables }: AuthContext,
  userId: string,
): Promise<void> {
  if (!tables.session?.fields.impersonatedBy) return;
  const sessions = await (await getCurrentAdapter(adapter)).findMany<{ token: string }>({
    model: "session",
    where: [{ field: "impersonatedBy", value: userId }],
    limit: ALL,
  });
  if (sessions.length) await internalAdapter.deleteSessions(sessions.map(({ token }) => token));
}

/** No directory is left that could let somebody in again: the tenant's administrator does. */
export const followAdministrator = (isolation: Isolation): AfterHook => ({
  matcher: ({ path }) => path === "/admin/unban-user",

  handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
    const { user } = (context.returned ?? {}) as { user?: Row };
    if (!user?.tenantId) return;
    await liftDeactivation(await unscopedAdapter(isolation), user.tenantId, String(user.id));
  }),
});
