import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { type AfterHook, clauses, expiringMap, oncePerObject } from "../framework";
import { deleteKeysOf } from "../isolation/changed-hands";
import {
  type Directory,
  type Guard,
  type GuardedCall,
  type Isolation,
  instanceKey,
  isOfTransaction,
  OF_KEY,
  type Row,
  unscopedAdapter,
} from "../isolation/isolation";
import { couldBeUserId, knownUsers, readUser } from "../isolation/users";
import { readAccounts } from "../oauth/tokens";
import { asErrorRedirect } from "../policy/admission";
import { deactivatedUserId, requireAnotherAdmin } from "../policy/last-admin";
import { methodOf } from "../policy/methods";
import { currentEndpoint } from "../request/endpoint";
import { getTenantId, requestSlot, type SessionRow } from "../request/scope";
import { ALL } from "../tenants/cache";
import { entriesOf, isDeactivated, isInUse, liftDeactivation, SCIM_USER } from "./scim-rows";

/** The user that a call of the directory is about, and the user that it deleted. */
const directoryUserId = requestSlot<string>();
const deprovisionedUserId = requestSlot<string>();

const isAboutUsers = (endpoint: { path?: string | undefined } | undefined) =>
  endpoint?.path?.startsWith("/scim/v2/Users") === true;

const deactivated = () =>
  asErrorRedirect(
    new APIError("FORBIDDEN", {
      code: "USER_DEACTIVATED",
      message: "The directory of this tenant has deactivated this user",
    }),
  );

/**
 * Sessions of deactivated users are refused when they are created, and whenever one is used: a
 * cookie cannot be revoked, and the index of a storage may have lost a session.
 */
export function directoryOf(isolation: Isolation): Directory {
  const isBarred: Directory["isBarred"] = async (tenantId, userId, adapter) =>
    isDeactivated(await readerOf(isolation, adapter), tenantId, userId);
  return {
    isBarred,
    async admitSession(tenantId, session, adapter) {
      for (const userId of usersOf(isolation, session)) {
        if (await isBarred(tenantId, userId, adapter)) throw deactivated();
      }
    },
    async acceptsSession(session, adapter) {
      const { tenantId } = session;
      if (!tenantId) return true;
      for (const userId of usersOf(isolation, session)) {
        // API keys are checked each time.
        const isOut = OF_KEY in session ? isBarred : isOutOrGone.bind(null, isolation);
        if (await isOut(tenantId, userId, adapter)) return false;
      }
      return true;
    },
  };
}

/**
 * The user of a session, and the administrator who impersonates that user. An operator who does so
 * is in no directory of the tenant.
 */
const usersOf = (isolation: Isolation, { userId, impersonatedBy }: SessionRow) =>
  [userId, impersonatedBy].flatMap((id) =>
    id && couldBeUserId(isolation, String(id)) ? String(id) : [],
  );

/** A caller inside a transaction may not know of it, and the database may have one connection. */
const readerOf = async (isolation: Isolation, adapter: DBTransactionAdapter = isolation.raw) =>
  adapter === isolation.raw ? unscopedAdapter(isolation) : adapter;

/** Users of an instance who are active. */
const activeUsersOf = oncePerObject((_instance: object) => expiringMap<true>(10_000, 10_000));

const keyOf = (tenantId: string, userId: string) => `${tenantId}~${userId}`;

/**
 * Cached for ten seconds: every request with a session asks. A deleted user may have a cookie left,
 * or a session that impersonates another user.
 */
async function isOutOrGone(
  isolation: Isolation,
  tenantId: string,
  userId: string,
  adapter?: DBTransactionAdapter,
): Promise<boolean> {
  const users = activeUsersOf(instanceKey(isolation.ctx));
  const key = keyOf(tenantId, userId);
  if (users.get(key)) return false;
  const keep = users.startRead();
  const reader = await readerOf(isolation, adapter);
  const isOut =
    !(await readUser(reader, userId)) || (await isDeactivated(reader, tenantId, userId));
  if (!isOut && !isOfTransaction(isolation, adapter)) keep(key, true);
  return isOut;
}

const forget = (isolation: Isolation, tenantId: string, userId: string) =>
  activeUsersOf(instanceKey(isolation.ctx)).delete(keyOf(tenantId, userId));

export const guardDirectory = (isolation: Isolation): Guard[] => [
  // Nothing is written for a deactivated user who signs in.
  (guarded, next) => {
    const { call, transaction } = guarded;
    const userId = changedBySignIn(guarded);
    const tenantId = getTenantId();
    if (userId === undefined || tenantId === null) return undefined;
    const refuseIfBarred = async () => {
      const isBarred = await isolation.directory?.isBarred(tenantId, String(userId), transaction);
      if (isBarred) throw deactivated();
      return next(call);
    };
    return refuseIfBarred();
  },
  (guarded, next) => {
    const { method, call, model } = guarded;
    if (model !== SCIM_USER) return undefined;
    const run = async () => {
      if (method === "delete") await keepLastAdmin(isolation, guarded);
      const found = await next(call);
      rememberDirectoryUser(method, found);
      return found;
    };
    return run();
  },
  // An API key that is about to be verified does not exist while its owner is barred. Keys may be
  // scoped or shared.
  ({ call, model = call.model, raw }, next) =>
    model === "apikey" && call.where?.[0]?.field === "key"
      ? next(call).then(async (found) => ((await isOwnerBarred(raw, found)) ? null : found))
      : undefined,
];

/**
 * The user whose rows a sign-in is about to change. better-auth links accounts, writes profiles, and
 * removes a password that was set before the email was proven; only then does it create a session.
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

async function isOwnerBarred(raw: DBTransactionAdapter, key: unknown): Promise<boolean> {
  const { referenceId, tenantId: own } = (key ?? {}) as Row;
  if (referenceId === undefined) return false;
  // A shared key has no tenant, but its user has one. The owner may also be an organization.
  const tenantId = own === undefined ? (await readUser(raw, referenceId))?.tenantId : own;
  return Boolean(tenantId) && isDeactivated(raw, String(tenantId), String(referenceId));
}

/**
 * Refuses to delete the directory's row of the tenant's last administrator: the user is deleted
 * after the commit, too late to refuse.
 */
async function keepLastAdmin(isolation: Isolation, { call, transaction }: GuardedCall) {
  const userId = directoryUserId.get();
  const tenantId = getTenantId();
  if (!userId || !tenantId || !isAboutUsers(currentEndpoint())) return;
  const adapter = transaction ?? isolation.ctx.adapter;
  // Checked now: without the row, the user would count as one who can sign in.
  if (await isDeactivated(adapter, tenantId, userId)) return deactivatedUserId.set(userId);
  const deleted = String(call.where?.find(({ field }) => field === "id")?.value);
  const others = (await entriesOf(adapter, tenantId, userId)).filter(
    ({ id }) => String(id) !== deleted,
  );
  if (others.some((entry) => entry.active && isInUse(entry))) return;
  await requireAnotherAdmin(isolation, { where: clauses({ id: userId }) }, transaction);
}

/**
 * Remembers the user that a call of the directory is about, and whether it deletes them: better-auth
 * deletes the directory's row, which it reads before, and leaves the user.
 */
function rememberDirectoryUser(method: string, found: unknown): void {
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

/**
 * Runs after the directory's change is committed. Deletes a user that no directory has any more. Ends
 * sessions that better-auth did not see, because the user signed in during the deactivation.
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
      const raw = await unscopedAdapter(isolation);
      const isDeleted =
        deprovisionedUserId.get() !== undefined &&
        !(await entriesOf(raw, tenantId, userId)).some(isInUse);
      if (isDeleted) {
        await context.internalAdapter.deleteUser(userId);
        // Another request may have cached the user in the meantime.
        forget(isolation, tenantId, userId);
        await deleteKeysOf(context, userId);
      } else {
        if (!(await isDeactivated(raw, tenantId, userId))) return;
        await context.internalAdapter.deleteUserSessions(userId);
      }
      await endImpersonations(context, userId);
    }),
  };
}

/** Ends sessions in which the user impersonates others. Sessions in no table are refused when used. */
async function endImpersonations(ctx: AuthContext, userId: string): Promise<void> {
  const { adapter, internalAdapter, tables } = ctx;
  if (!tables.session?.fields.impersonatedBy) return;
  const where = clauses({ impersonatedBy: userId });
  const call = { model: "session", where, limit: ALL };
  const sessions = await (await getCurrentAdapter(adapter)).findMany<{ token: string }>(call);
  if (sessions.length) await internalAdapter.deleteSessions(sessions.map(({ token }) => token));
}

/** If no directory is left that could let a user in again, the tenant's administrator can. */
export const followAdministrator = (isolation: Isolation): AfterHook => ({
  matcher: ({ path }) => path === "/admin/unban-user",

  handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
    const { user } = (context.returned ?? {}) as { user?: Row };
    if (!user?.tenantId) return;
    await liftDeactivation(await unscopedAdapter(isolation), user.tenantId, String(user.id));
  }),
});
