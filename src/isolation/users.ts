import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { tenantError } from "../errors";
import { currentEndpoint } from "../request/endpoint";
import { requestSlot, type Scope } from "../request/scope";
import { couldBeId, hasNumericIds, isText } from "../tenants/cache";
import { invitingOf } from "../tenants/plugins";
import { nullIfInvalidId } from "./database-errors";
import { type Isolation, type Row, tenantClause, unscopedAdapter } from "./isolation";

/** The users that the request has read or created, the latest last, with their selected columns (R8). */
export const knownUsers = requestSlot(
  () => new Map<string, { tenantId: string | null; email?: unknown; emailVerified?: unknown }>(),
);

export function rememberUser({ id, tenantId, email, emailVerified }: Row): void {
  if (id === undefined || tenantId === undefined) return;
  const users = knownUsers.get();
  users.delete(String(id));
  users.set(String(id), { tenantId, email, emailVerified });
}

/** A user by id. With the adapter below the isolation, a user of any tenant or the platform. */
export const readUser = <T = Row>(adapter: DBTransactionAdapter, id: unknown) =>
  adapter
    .findOne<T>({ model: "user", where: [{ field: "id", value: String(id) }] })
    .catch(nullIfInvalidId);

/** Ids of users may be from before the application changed how ids are made. */
export const couldBeUserId = ({ ctx }: Isolation, id: string) =>
  hasNumericIds(ctx) ? couldBeId(ctx, id) : isText(id);

/**
 * R8: sessions and accounts are given to users of the scope only, for every plugin. Returns the
 * tenant that the row belongs to: the user's. A user that the request has read is not looked up again.
 */
export function requireUserInScope(
  isolation: Isolation,
  scope: Scope,
  userId: unknown,
  adapter?: DBTransactionAdapter,
): string | null | Promise<string | null> {
  if (userId === undefined || userId === null) return scope.tenantId;
  const known = knownUsers.get().get(String(userId));
  if (known && (scope.access === "all" || known.tenantId === scope.tenantId)) return known.tenantId;
  return tenantOfUser(isolation, scope, String(userId), adapter);
}

async function tenantOfUser(
  isolation: Isolation,
  scope: Scope,
  id: string,
  adapter?: DBTransactionAdapter,
): Promise<string | null> {
  const reader = adapter ?? (await getCurrentAdapter(isolation.ctx.adapter));
  const where = [{ field: "id", value: id }, ...tenantClause(scope)];
  const user = couldBeUserId(isolation, id)
    ? await reader.findOne<Row>({ model: "user", where }).catch(nullIfInvalidId)
    : null;
  if (!user) throw tenantError("USER_NOT_IN_TENANT");
  rememberUser(user);
  return user.tenantId ?? null;
}

/**
 * A token that came in sealed, and what was in it. One for `/verify-email` names an email, and its
 * seal names the user that the link was mailed for.
 */
export const openedToken = requestSlot<{
  sealed: string;
  token: string;
  userId?: string;
  email?: unknown;
}>();

/**
 * Whether a lookup by email must not find a user: one that is about to be replaced, or one that a
 * link to `/verify-email` was not mailed for. The token of that link names an email alone, and would
 * change the email of, and sign in as, the user who has it by now.
 */
export function isHiddenUser(
  ctx: AuthContext,
  [clause, ...rest]: Where[],
  user: Row | null,
): boolean | Promise<boolean> {
  // By username as well: the invited person may want the same.
  const isByEmail = clause?.field === "email";
  if (!user?.tenantId || !(isByEmail || clause?.field === "username") || rest.length) return false;
  const { userId, email } = openedToken.get() ?? {};
  const isMailedToOther = userId !== undefined && userId !== String(user.id);
  if (isByEmail && isMailedToOther && email === user.email) return true;
  if (user.emailVerified !== false) return false;
  return invitingOf(currentEndpoint()?.context ?? ctx)?.replaces(ctx, user) ?? false;
}

/**
 * The tenant of a credential that carries no prefix (an API key, a SCIM token, an identity
 * provider's id), by its row; null for a row of the platform, or none. Only here is a row read
 * before the tenant is known.
 */
export async function tenantOfRow(
  isolation: Isolation,
  model: string,
  field: string,
  value: unknown,
): Promise<string | null> {
  if (typeof value !== "string" || value === "" || !isText(value)) return null;
  const adapter = await unscopedAdapter(isolation);
  const found = await adapter.findMany<Row>({ model, where: [{ field, value }], limit: 2 });
  // MySQL ignores case.
  const rows = found.filter((row) => row[field] === value);
  return rows.length === 1 ? (rows[0]?.tenantId ?? null) : null;
}
