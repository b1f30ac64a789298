import { getCurrentAdapter } from "@better-auth/core/context";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import type { Row } from "../database";
import { nullIfInvalidId } from "../database-errors";
import { tenantError } from "../errors";
import { type Isolation, unscopedAdapter } from "../isolation";
import { currentRequest, type Scope } from "../request";
import { couldBeId, hasNumericIds } from "../tenants/tenants";
import { isText } from "../utils";
import { tenantClause } from "./in-scope";

export function rememberUser(user: Row): void {
  const { id, tenantId, email, emailVerified } = user;
  if (id === undefined || tenantId === undefined) return;
  const { users } = currentRequest();
  const first = users.get(String(id))?.generation;
  const generation = first === undefined ? (user.sessionGeneration as string | null) : first;
  users.delete(String(id));
  users.set(String(id), { tenantId, email, emailVerified, generation });
}

/**
 * Reads a user by id. An adapter without isolation finds users of every tenant and the platform.
 */
export const readUser = <T = Row>(adapter: DBTransactionAdapter, id: unknown) =>
  adapter
    .findOne<T>({ model: "user", where: [{ field: "id", value: String(id) }] })
    .catch(nullIfInvalidId);

/**
 * Returns whether a user may have this id. Existing users keep their ids when the application
 * changes how ids are made, so any text is accepted unless ids are numbers.
 */
export const couldBeUserId = ({ ctx }: Isolation, id: string) =>
  hasNumericIds(ctx) ? couldBeId(ctx, id) : isText(id);

/**
 * R8: refuses a row (a session, an account) whose `userId` is a user outside the scope, for every
 * plugin. Returns the user's tenant, to which the row belongs. Does not look up a user that the
 * request has read in this scope. Other references (`inviterId`, `organizationId`) are not checked
 * here: better-auth's own plugins read the row behind them first, and find none of another scope.
 */
export async function requireUserInScope(
  isolation: Isolation,
  scope: Scope,
  userId: unknown,
  adapter?: DBTransactionAdapter,
): Promise<string | null> {
  if (userId === undefined || userId === null) return scope.tenantId;
  const known = currentRequest().users.get(String(userId));
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
 * Returns whether a lookup by email must not find a user, because a link to `/verify-email` was
 * mailed to another user. The token of that link contains only an email. It would sign in as the
 * user who has this email now, and could change that user's email.
 */
export function isHiddenUser([clause, ...rest]: Where[], user: Row | null): boolean {
  if (!user?.tenantId || clause?.field !== "email" || rest.length) return false;
  const { userId, email } = currentRequest().openedToken ?? {};
  return userId !== undefined && userId !== String(user.id) && email === user.email;
}

/**
 * Returns the tenant of a credential that has no prefix (an API key, a SCIM token, an identity
 * provider's id), by its row. Returns null for a row of the platform, or if there is no row. Reads
 * without isolation, because the tenant is not known yet.
 */
export async function tenantOfRow(
  isolation: Isolation,
  model: string,
  field: string,
  value: unknown,
): Promise<string | null> {
  if (typeof value !== "string" || value === "" || !isText(value)) return null;
  const adapter = await unscopedAdapter(isolation);
  const rows = await adapter.findMany<Row>({ model, where: [{ field, value }], limit: 2 });
  return rows.length === 1 ? (rows[0]?.tenantId ?? null) : null;
}
