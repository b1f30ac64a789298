import type { HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { type Border, OF_KEY, type Row } from "../border/border";
import type { AfterHook } from "../framework";
import { currentEndpoint } from "../scope/endpoint";
import { getTenantId, notes } from "../scope/scope";

export const SCIM_USER = "scimUser";
const USERS_PATH = "/scim/v2/Users";

/**
 * Whether the directory of a tenant has deactivated somebody. better-auth ends the sessions of such
 * a person, and lets them sign in again; here they are barred, by whichever way they come.
 */
async function isDeactivated(
  adapter: DBTransactionAdapter,
  tenantId: string,
  userId: unknown,
): Promise<boolean> {
  const where = [
    { field: "userId", value: String(userId) },
    { field: "tenantId", value: tenantId },
  ];
  const rows = await adapter.findMany<Row>({ model: SCIM_USER, where });
  // Several directories may know somebody: better-auth goes by those that have them as active.
  return rows.length > 0 && !rows.some(({ active }) => active);
}

const deactivated = () =>
  new APIError("FORBIDDEN", {
    code: "USER_DEACTIVATED",
    message: "The directory of this tenant has deactivated this user",
  });

/** Refuses sessions where they are made, once more when they are stored, and keys of who is barred. */
export function barDeactivated(border: Border): void {
  const { policy, openSince } = border;
  const { admitRow } = policy;
  policy.admitRow = async (model, scope, row, adapter) => {
    if (model === "session" && scope.tenantId) {
      if (await isDeactivated(adapter, scope.tenantId, row.userId)) throw deactivated();
    }
    return admitRow(model, scope, row, adapter);
  };
  border.secondLook = async ({ tenantId, userId }) =>
    tenantId && (await isDeactivated(border.raw, tenantId, userId)) ? deactivated() : undefined;
  border.openSince = async (session, adapter) => {
    const { tenantId, userId } = session;
    const isBarred =
      OF_KEY in session &&
      tenantId &&
      (await isDeactivated(adapter ?? border.raw, tenantId, userId));
    return isBarred ? undefined : openSince(session, adapter);
  };
}

/**
 * Remembers whom a call of the directory is about, and whether it deletes them: better-auth deletes
 * its own row, and leaves the user. It reads the row before, in the same transaction, which nobody
 * else should ask in between.
 */
export function noteDirectoryUser(name: string, found: unknown): void {
  if (!isAboutUsers(currentEndpoint()) || getTenantId() === null) return;
  const note = notes();
  const { userId } = (found ?? {}) as Row;
  if ((name === "findOne" || name === "create") && userId !== undefined) {
    note.directoryUser = String(userId);
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
      if (!userId || !tenantId || isAPIError(context.returned)) return;
      if (!deprovisioned) {
        const isBarred = await isDeactivated(border.raw, tenantId, userId);
        if (isBarred) await internalAdapter.deleteUserSessions(userId);
        return;
      }
      const where = [{ field: "userId", value: userId }];
      if ((await context.adapter.count({ model: SCIM_USER, where })) > 0) return;
      await internalAdapter.deleteUser(userId);
    }),
  };
}
