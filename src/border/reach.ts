import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import { textOf } from "../framework";
import {
  type AdminTarget,
  adminTarget,
  carries,
  currentEndpoint,
  type Endpoint,
  type Noted,
  SENT,
} from "../scope/endpoint";
import type { SessionRow } from "../scope/scope";
import { enter, notes, type Settled, settled } from "../scope/scope";
import { isValid, readSessionToken, sessionOf } from "../scope/settle";
import { type Border, borderOf, orNobody, type Row } from "./border";
import { toldToPage } from "./error-pages";
import { mayManageUsers } from "./operators";

/**
 * An operator reaches further on better-auth's own admin endpoints: the tenant that is named, the
 * tenant of the user that the call is about, or all of them. That is granted to the very session
 * that the endpoint uses, once its user is found to be an operator. Undefined where the request
 * carries a second session, of another place: on these endpoints both are none.
 */
export async function scopeOfAdmin(
  border: Border,
  scope: Settled,
  session: SessionRow,
  adapter: DBTransactionAdapter,
): Promise<Settled | undefined> {
  const endpoint = currentEndpoint();
  const target = adminTarget(endpoint);
  const { isOpen } = notes();
  if (!endpoint || !target || isOpen === false) return scope;
  if (!carries(endpoint, session.token)) return scope;
  if (await carriesAnother(border, endpoint, session, adapter)) return undefined;
  const isOwn = session.tenantId || scope.reach !== "own" || session.impersonatedBy;
  if (isOwn || target === "oneself") return scope;
  // Until the endpoint runs, its hooks are where the request is.
  if (scope.tenantId === null && !isOpen) return scope;
  const tenantId = scope.tenantId ?? (await tenantOfTarget(border, endpoint, target, adapter));
  if (tenantId === null) return scope;
  const { query, method } = (notes().endpoint ?? endpoint) as Endpoint & { method?: string };
  const asked = { ...endpoint, query, method };
  if (!(await mayManageUsers(border, asked, session, tenantId, adapter))) return scope;
  notes().visitor = { token: String(session.token), userId: String(session.userId) };
  if (tenantId === undefined) return enter(settled(null, "all"));
  const isOwnEnd =
    scope.tenantId !== null && (await endsOwnSessions(border, endpoint, session, adapter));
  return enter(isOwnEnd ? settled(null) : settled(tenantId, "visits"));
}

/**
 * Operators who end sessions of their own end them on the platform, whichever tenant they visit. In
 * the tenant better-auth would find the list of them, but not all of the sessions: some would live
 * on, listed nowhere, and no ban would end them.
 */
async function endsOwnSessions(
  border: Border,
  { path, body }: Endpoint,
  { userId }: SessionRow,
  adapter: DBTransactionAdapter,
): Promise<boolean> {
  if (path === "/admin/revoke-user-sessions") return textOf(body?.userId) === String(userId);
  if (path !== "/admin/revoke-user-session" || typeof body?.sessionToken !== "string") return false;
  return (await border.readSession(body.sessionToken, adapter))?.userId === userId;
}

/**
 * A suspended tenant is entered by operators who manage its people, and by the server's own code:
 * asked before, so that nobody else gets to know more of it than that it is suspended.
 */
export async function requireVisitor(endpoint: Endpoint): Promise<void> {
  if (adminTarget(endpoint) && (await mayVisit(endpoint))) return;
  const error = tenantError("TENANT_SUSPENDED");
  throw toldToPage(endpoint, error);
}

async function mayVisit(endpoint: Endpoint): Promise<boolean> {
  if (!endpoint.request && !endpoint.headers) return true;
  const border = borderOf(endpoint.context);
  const session = border && (await sessionOf(endpoint, border.readSession));
  return isValid(session) && !session.tenantId;
}

/**
 * Whether the call carries a second session, of another place: a cookie beside a bearer token.
 * Two credentials of different places must never add up to the rights of both. A call of `auth.api`
 * may have its headers alone, or beside a request.
 */
export async function carriesAnother(
  border: Border,
  endpoint: Endpoint,
  session: SessionRow,
  adapter?: DBTransactionAdapter,
): Promise<boolean> {
  const { context, request } = endpoint;
  const sent = [request?.headers, (context as Noted)[SENT]].filter((given) => given !== undefined);
  if (!sent.some((headers) => headers.has("authorization"))) return false;
  for (const headers of sent) {
    const input = { headers, context } as Parameters<typeof readSessionToken>[0];
    const token = await readSessionToken(input);
    if (!token || token === session.token) continue;
    const other = await border.readSession(token, adapter);
    if (isValid(other) && (other.tenantId ?? null) !== (session.tenantId ?? null)) return true;
  }
  return false;
}

/** The tenant that a call is about: null is the platform, undefined all of them. */
async function tenantOfTarget(
  border: Border,
  { body }: Endpoint,
  target: AdminTarget,
  adapter: DBTransactionAdapter,
): Promise<string | null | undefined> {
  if (target === "everybody") return undefined;
  if (target === "a session") {
    const token = body?.sessionToken;
    const session = typeof token === "string" ? await border.readSession(token, adapter) : null;
    return session?.tenantId || null;
  }
  if (target !== "a user") return null;
  // As it was sent: better-auth asks for the session with a query of its own.
  const id = body?.userId ?? (notes().endpoint as Endpoint | undefined)?.query?.id;
  if (typeof id !== "string" && typeof id !== "number") return null;
  const where = [{ field: "id", value: String(id) }];
  const user = await adapter.findOne<Row>({ model: "user", where }).catch(orNobody);
  return user?.tenantId || null;
}
