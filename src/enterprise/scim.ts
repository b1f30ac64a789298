import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { type AfterHook, boundedMap } from "../framework";
import {
  type Guard,
  type GuardedCall,
  type Isolation,
  instanceKey,
  isOfTransaction,
  OF_KEY,
  type Part,
  type Row,
  unscopedAdapter,
} from "../isolation/isolation";
import { couldBeUserId, knownUsers } from "../isolation/users";
import { readAccounts } from "../oauth/tokens";
import { asErrorRedirect } from "../policy/admission";
import { deactivatedUserId, requireAnotherAdmin } from "../policy/last-admin";
import { methodOf } from "../policy/methods";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, requestSlot, type SessionRow } from "../request/scope";
import { ALL } from "../tenants/cache";
import { asKey, deleteKeysOf } from "./scim-keys";
import {
  countDirectories,
  findUser,
  isActiveElsewhere,
  isDeactivated,
  liftDeactivation,
  SCIM_USER,
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

/** The user whom a call of the directory is about, and the one whom it has deleted. */
const directoryUserId = requestSlot<string>();
const deprovisionedUserId = requestSlot<string>();

/**
 * Whether the user of a session, or the administrator who impersonates that user, is deactivated. An
 * operator of the platform who does so is in no directory of the tenant.
 */
async function isSomeOwnerOut(
  isolation: Isolation,
  { userId, impersonatedBy }: SessionRow,
  isOut: (userId: string) => Promise<boolean>,
): Promise<boolean> {
  for (const id of [userId, impersonatedBy]) {
    if (id && couldBeUserId(isolation, String(id)) && (await isOut(String(id)))) return true;
  }
  return false;
}

/**
 * Sessions of deactivated users are refused when they are created, and wherever one is left: a
 * cookie cannot be taken away, and the index of a storage may have lost one.
 */
export const directoryOf = (isolation: Isolation): Part["directory"] => ({
  isBarred: (tenantId, userId, adapter) => isBarred(isolation, tenantId, userId, adapter),
  admitSession: async (tenantId, session, adapter) => {
    const isOut = (userId: string) => isDeactivated(adapter, tenantId, userId);
    if (await isSomeOwnerOut(isolation, session, isOut)) throw deactivated();
  },
  acceptsSession: async (session, adapter) => {
    const { tenantId } = session;
    if (!tenantId) return true;
    // API keys are checked each time.
    const look = OF_KEY in session ? isBarred : isOutOrGone;
    const isOut = (userId: string) => look(isolation, tenantId, userId, adapter);
    return !(await isSomeOwnerOut(isolation, session, isOut));
  },
});

export const guardDirectory = (isolation: Isolation): Guard[] => [
  // Nothing is written for a deactivated user who signs in.
  (guarded, next) => {
    const { call, transaction } = guarded;
    const userId = changedBySignIn(guarded);
    const tenantId = getTenantId();
    if (userId === undefined || tenantId === null) return undefined;
    return isBarred(isolation, tenantId, String(userId), transaction).then((isRefused) => {
      if (isRefused) throw deactivated();
      return next(call);
    });
  },
  ({ method, call, model, transaction }, next) => {
    if (model !== SCIM_USER) return undefined;
    const run = async () => {
      if (method === "delete") await keepLastAdmin(isolation, transaction, call.where ?? []);
      const found = await next(call);
      noteDirectoryUser(method, found);
      return found;
    };
    return run();
  },
  // API keys may be scoped or shared.
  ({ call, model = call.model, raw }, next) =>
    model === "apikey" ? next(call).then((found) => asKey(call, found, raw)) : undefined,
];

/**
 * Whose rows a sign-in is about to change. better-auth links accounts, writes profiles, and removes
 * a password that was set before the email was proven; only then does it create a session.
 */
function changedBySignIn({ method, call, model }: GuardedCall): unknown {
  if (method.startsWith("find") || method === "count" || !methodOf(currentEndpoint())) {
    return undefined;
  }
  const { where = [], data } = call;
  const [{ field, value } = {}] = where;
  if (model === "account") {
    const known = readAccounts.get().find((account) => account[`${field}`] === value);
    return data?.userId ?? known?.userId;
  }
  if (model !== "user" || method === "create") return undefined;
  if (field === "id") return value;
  return [...knownUsers.get()].find(([, user]) => field === "email" && user.email === value)?.[0];
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
 * Refuses to delete the directory's row of the tenant's last administrator: the user is deleted once
 * that is committed, too late to refuse.
 */
async function keepLastAdmin(
  isolation: Isolation,
  transaction: DBTransactionAdapter | undefined,
  deletion: Where[],
): Promise<void> {
  const userId = directoryUserId.get();
  const tenantId = getTenantId();
  if (!userId || !tenantId || !isAboutUsers(currentEndpoint())) return;
  const adapter = transaction ?? isolation.ctx.adapter;
  // Checked now: without the row, the user would count as one who can sign in.
  if (await isDeactivated(adapter, tenantId, userId)) return deactivatedUserId.set(userId);
  // A second directory has the user as active.
  if (await isActiveElsewhere(adapter, tenantId, userId, deletion)) return;
  await requireAnotherAdmin(isolation, { where: [{ field: "id", value: userId }] }, transaction);
}

/**
 * Remembers which user a call of the directory is about, and whether it deletes them: better-auth
 * deletes its own row, and leaves the user. It reads the row before, in the same transaction.
 */
function noteDirectoryUser(method: string, found: unknown): void {
  if (!isAboutUsers(currentEndpoint()) || getTenantId() === null) return;
  const { userId, active } = (found ?? {}) as Row;
  if (userId !== undefined) {
    if (method === "findOne" || method === "create") directoryUserId.set(String(userId));
    if (method === "update" || method === "create") {
      deactivatedUserId.set(active ? undefined : String(userId));
    }
  }
  if (method === "delete") deprovisionedUserId.set(directoryUserId.get());
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
      isAboutUsers(ctx) && ctx.method !== "GET" && directoryUserId.get() !== undefined,

    handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
      const userId = directoryUserId.get();
      const tenantId = getTenantId();
      if (!userId || !tenantId) return;
      forget(isolation, tenantId, userId);
      if (isAPIError(context.returned)) return;
      const below = await unscopedAdapter(isolation);
      const { internalAdapter } = context;
      if (deprovisionedUserId.get() && !(await countDirectories(below, tenantId, userId))) {
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
