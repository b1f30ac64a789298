import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { clauses, type Guard, type GuardedCall, type Row, WRITES } from "../../core/database";
import { asErrorRedirect, currentEndpoint } from "../../core/endpoint";
import type { AdmittedSession, SessionSource } from "../../core/extension";
import { serviceOf } from "../../core/extensions";
import type { AfterHook } from "../../core/hooks";
import { couldBeUserId, readUser } from "../../core/isolate/users";
import {
  type Isolation,
  instanceKey,
  seesUncommittedRows,
  unscopedAdapter,
} from "../../core/isolation";
import { currentRequest, getTenantId } from "../../core/request";
import { OF_KEY, type SessionRow } from "../../core/session";
import { methodOf } from "../../core/sign-in-endpoints";
import { ALL } from "../../core/tenants/tenants";
import { expiringMap, oncePerObject } from "../../core/utils";
import { requireAnotherAdmin } from "../management/last-admin";
import { deleteKeysOf } from "../management/remove-credentials";
import { findReadAccount } from "../oauth/tokens";
import { enterpriseRequest } from "./request";
import { entriesOf, isDeactivated, isInUse, liftDeactivation, SCIM_USER } from "./scim-rows";
import type { Directory } from "./services";

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
 * Refuses sessions of deactivated users at creation and at every use. Deleting them is not enough:
 * a cookie cannot be revoked, and a storage may have lost a session from its index.
 */
export function directoryOf(isolation: Isolation) {
  const isBarred: Directory["isBarred"] = async (tenantId, userId, adapter) =>
    isDeactivated(await readerOf(isolation, adapter), tenantId, userId);
  const service: Directory = {
    isBarred,
    isDeactivating: (userId) => userId === enterpriseRequest.get().deactivatedUserId,
  };
  return {
    service,
    async admitSession({ tenantId, session, isNew, adapter }: AdmittedSession) {
      if (tenantId === null || !isNew) return undefined;
      for (const userId of usersOf(isolation, session)) {
        if (await isBarred(tenantId, userId, adapter)) throw deactivated();
      }
      return undefined;
    },
    async acceptsSession(session: SessionRow, { adapter }: SessionSource): Promise<boolean> {
      const { tenantId } = session;
      if (!tenantId) return true;
      for (const userId of usersOf(isolation, session)) {
        // Sessions of API keys are checked in the database each time, without the cache.
        const isOut = OF_KEY in session ? isBarred : isOutOrGone.bind(null, isolation);
        if (await isOut(tenantId, userId, adapter)) return false;
      }
      return true;
    },
  };
}

/**
 * Returns the user of a session, and the impersonating administrator, because the directory may
 * have deactivated either. Also returns an impersonating operator, who has no row in a directory of
 * the tenant and therefore counts as active.
 */
const usersOf = (isolation: Isolation, { userId, impersonatedBy }: SessionRow) =>
  [userId, impersonatedBy].flatMap((id) =>
    id && couldBeUserId(isolation, String(id)) ? String(id) : [],
  );

/**
 * Returns the adapter of the running transaction, even if the caller did not pass one. The database
 * may have no second connection to read outside of it.
 */
const readerOf = async (
  isolation: Isolation,
  adapter: DBTransactionAdapter = isolation.unscoped,
) => (adapter === isolation.unscoped ? unscopedAdapter(isolation) : adapter);

/** Users of an instance that were active when they were last read, for ten seconds. */
const activeUsersOf = oncePerObject((_instance: object) => expiringMap<true>(10_000, 10_000));

const keyOf = (tenantId: string, userId: string) => `${tenantId}~${userId}`;

/**
 * Returns whether a user is deactivated or deleted. Caches active users, because every request with
 * a session asks. Deleted users are refused too, because they may still have a session in a cookie,
 * or one in which they impersonate another user.
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
  if (!isOut && !seesUncommittedRows(isolation, adapter)) keep(key, true);
  return isOut;
}

const forget = (isolation: Isolation, tenantId: string, userId: string) =>
  activeUsersOf(instanceKey(isolation.ctx)).delete(keyOf(tenantId, userId));

export const guardDirectory = (isolation: Isolation): Guard[] => [
  {
    // Refuses to write anything for a deactivated user who signs in. The session would be refused
    // too, but only after better-auth has written accounts or a password.
    models: ["account", "user"],
    methods: WRITES,
    async run(guarded, next) {
      const userId = changedBySignIn(guarded);
      const tenantId = getTenantId();
      if (userId !== undefined && tenantId !== null) {
        const directory = serviceOf(isolation, "directory");
        const isBarred = directory?.isBarred(tenantId, String(userId), guarded.transaction);
        if (await isBarred) throw deactivated();
      }
      return next(guarded.call);
    },
  },
  {
    models: [SCIM_USER],
    async run(guarded, next) {
      const { method, call } = guarded;
      if (method === "delete") await keepLastAdmin(isolation, guarded);
      const found = await next(call);
      rememberDirectoryUser(method, found);
      return found;
    },
  },
  {
    // Hides deactivated users from password resets. Otherwise, the next owner of the mailbox could
    // set the user's password.
    models: ["user"],
    methods: ["findOne"],
    async run({ call }, next) {
      const user = (await next(call)) as Row | null;
      const tenantId = getTenantId();
      const isByEmail = call.where?.[0]?.field === "email";
      if (!user || !isByEmail || tenantId === null) return user;
      if (!asksForReset(currentEndpoint()?.path)) return user;
      const directory = serviceOf(isolation, "directory");
      return (await directory?.isBarred(tenantId, String(user.id))) ? null : user;
    },
  },
];

const asksForReset = (path = "") => /request-password-reset$|^\/forget-password/.test(path);

/** Returns whether an endpoint sets a password with a code that the user received. */
const resetsPassword = (path = "") => /reset-password(\/|$)/.test(path);

/**
 * Returns the user whose rows a sign-in or a password reset is about to change. Before better-auth
 * creates a session, it links accounts, writes profiles, and removes a password from before the
 * email was proven.
 */
function changedBySignIn({ method, call, model }: GuardedCall): unknown {
  const endpoint = currentEndpoint();
  const isSignIn = methodOf(endpoint) !== undefined || resetsPassword(endpoint?.path);
  if (!isSignIn) return undefined;
  const { where = [], data } = call;
  const [{ field, value } = {}] = where;
  if (model === "account") {
    if (field === "userId") return value;
    return data?.userId ?? findReadAccount(`${field}`, value)?.userId;
  }
  if (method === "create") return undefined;
  if (field === "id") return value;
  return [...currentRequest().users].find(
    ([, user]) => field === "email" && user.email === value,
  )?.[0];
}

/**
 * Refuses to delete the directory's row of the tenant's last administrator: the plugin deletes the
 * user after the commit, too late to refuse.
 */
async function keepLastAdmin(isolation: Isolation, { call, transaction }: GuardedCall) {
  const request = enterpriseRequest.get();
  const userId = request.directoryUserId;
  const tenantId = getTenantId();
  if (!userId || !tenantId || !isAboutUsers(currentEndpoint())) return;
  const adapter = transaction ?? isolation.ctx.adapter;
  // A deactivated user cannot sign in, so the tenant loses no administrator. Checked here, because
  // after the deletion no row says that the user was deactivated.
  if (await isDeactivated(adapter, tenantId, userId)) {
    request.deactivatedUserId = userId;
    return;
  }
  const deleted = String(call.where?.find(({ field }) => field === "id")?.value);
  const others = (await entriesOf(adapter, tenantId, userId)).filter(
    ({ id }) => String(id) !== deleted,
  );
  if (others.some((entry) => entry.active && isInUse(entry))) return;
  await requireAnotherAdmin(isolation, { where: clauses({ id: userId }) }, transaction);
}

/**
 * Remembers the user that a SCIM call is about, and whether the call deletes the directory's row of
 * the user. The user comes from the row, which better-auth reads before it deletes it. better-auth
 * does not delete the user: `followDirectory` does.
 */
function rememberDirectoryUser(method: string, found: unknown): void {
  if (!isAboutUsers(currentEndpoint()) || getTenantId() === null) return;
  const request = enterpriseRequest.get();
  const { userId, active } = (found ?? {}) as Row;
  if (userId !== undefined) {
    if (method === "findOne" || method === "create") request.directoryUserId = String(userId);
    if (method === "update" || method === "create") {
      request.deactivatedUserId = active ? undefined : String(userId);
    }
  }
  if (method === "delete" && request.directoryUserId) request.isRowDeleted = true;
}

/**
 * Runs after the directory's change is committed. Deletes a user that no directory has any more.
 * Ends sessions that better-auth missed because the user signed in during the deactivation.
 */
export function followDirectory(isolation: Isolation): AfterHook {
  return {
    matcher: (ctx) =>
      isAboutUsers(ctx) &&
      ctx.method !== "GET" &&
      enterpriseRequest.get().directoryUserId !== undefined,

    handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
      const { directoryUserId: userId, isRowDeleted } = enterpriseRequest.get();
      const tenantId = getTenantId();
      if (!userId || !tenantId) return;
      forget(isolation, tenantId, userId);
      if (isAPIError(context.returned)) return;
      const unscoped = await unscopedAdapter(isolation);
      const isDeleted =
        isRowDeleted === true && !(await entriesOf(unscoped, tenantId, userId)).some(isInUse);
      if (isDeleted) {
        await context.internalAdapter.deleteUser(userId);
        // Another request may have cached the user between the first `forget` and the deletion.
        forget(isolation, tenantId, userId);
        await deleteKeysOf(context, userId);
      } else {
        if (!(await isDeactivated(unscoped, tenantId, userId))) return;
        await context.internalAdapter.deleteUserSessions(userId);
      }
      await endImpersonations(context, userId);
    }),
  };
}

/**
 * Ends the sessions in which the user impersonates others. A session that is only in secondary
 * storage or in a cookie is refused when it is used.
 */
async function endImpersonations(ctx: AuthContext, userId: string): Promise<void> {
  const { adapter, internalAdapter, tables } = ctx;
  if (!tables.session?.fields.impersonatedBy) return;
  const where = clauses({ impersonatedBy: userId });
  const call = { model: "session", where, limit: ALL };
  const sessions = await (await getCurrentAdapter(adapter)).findMany<{ token: string }>(call);
  if (sessions.length) await internalAdapter.deleteSessions(sessions.map(({ token }) => token));
}

/** Lifts the deactivation by a decommissioned directory when an administrator unbans the user. */
export const followAdministrator = (isolation: Isolation): AfterHook => ({
  matcher: ({ path }) => path === "/admin/unban-user",

  handler: createAuthMiddleware(async ({ context }: HookEndpointContext) => {
    const { user } = (context.returned ?? {}) as { user?: Row };
    if (!user?.tenantId) return;
    await liftDeactivation(await unscopedAdapter(isolation), user.tenantId, String(user.id));
  }),
});
