import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { lazy } from "../framework";
import {
  adminTarget,
  carries,
  currentEndpoint,
  isOutermost,
  settledScope,
} from "../scope/endpoint";
import type { SessionRow } from "../scope/scope";
import { enter, notes, type Settled, settled } from "../scope/scope";
import { enterTenantOf, isValid, settle } from "../scope/settle";
import { type Border, belowBorder } from "./border";

/**
 * Whether a session that was found by its token is good in the running request. In one that names
 * no tenant, the session that the request carries says which it is (R4); in one that names another,
 * it is no session (R5); and it is good only while its tenant is there and active (R10).
 */
export async function mayUse(
  border: Border,
  session: SessionRow,
  given?: DBTransactionAdapter,
): Promise<boolean> {
  const adapter = given ?? (await belowBorder(border));
  const tenantId = session.tenantId ?? null;
  const since = tenantId === null ? null : await border.openSince(session, adapter);
  const known = settledScope() ?? (await settleFromSession(border, session, since, adapter));
  if (since === undefined) return notFound();
  const isAdmin = adminTarget(currentEndpoint()) !== undefined;
  const scope = isAdmin
    ? await (await reach()).scopeOfAdmin(border, known, session, adapter)
    : known;
  if (scope && isAdmitted(scope, session)) return true;
  notes().elsewhere.add(String(session.token));
  return notFound();
}

/**
 * better-auth drops the cookies of a session that it does not find. Where a hook asks who was there
 * before, it would drop those of the session that was just made: what that question does to cookies
 * ends with it. What the hook itself takes back is gone.
 *
 * Guarded by "a hook that asks for a session runs an endpoint on the context of the request".
 */
function notFound(): false {
  const question = currentEndpoint();
  const { context, responseHeaders } = question ?? {};
  if (question && responseHeaders && context?.responseHeaders && context.newSession) {
    question.context = { ...context, responseHeaders: undefined } as typeof context;
    question.responseHeaders = new Headers(responseHeaders);
  }
  return false;
}

function isAdmitted(scope: Settled, session: SessionRow): boolean {
  const tenantId = session.tenantId ?? null;
  if (tenantId === scope.tenantId) return true;
  if (scope.reach === "visits" && notes().visitor?.token === session.token) return true;
  return tenantId === null && isImpersonator(session.userId);
}

/** Loaded with the first call of an admin endpoint. */
const reach = lazy(() => import("./reach"));

/**
 * The session that the request carries settles its scope without another query. Any other token
 * settles nothing: an endpoint may look up whichever session it likes.
 */
async function settleFromSession(
  border: Border,
  session: SessionRow,
  since: string | null | undefined,
  adapter: DBTransactionAdapter,
): Promise<Settled> {
  const endpoint = currentEndpoint();
  if (!endpoint || !isOutermost(endpoint) || !carries(endpoint, session.token)) {
    return settle(border.readSession, adapter);
  }
  if (since === undefined) return enter(settled(null));
  // An expired session is no session, but get-session is about to delete it where it is.
  const settles = isValid(session) || endpoint.path === "/get-session";
  return settles ? enterTenantOf({ ...session, since }) : settle(border.readSession, adapter);
}

/** The way back of an admin of the platform who has acted as a tenant's user, and no other way. */
export function isImpersonator(userId: unknown): boolean {
  const endpoint = currentEndpoint();
  if (endpoint?.path !== "/admin/stop-impersonating" || !adminTarget(endpoint)) return false;
  const session: SessionRow | undefined = endpoint.context.session?.session;
  return Boolean(session?.impersonatedBy) && session?.impersonatedBy === userId;
}

/**
 * Reads a session by its token below the border, wherever it belongs: it is what settles the scope
 * of a request (R4). A session whose tenant is gone or suspended is none (R10).
 */
export async function readSession(
  border: Border,
  token: string,
  given?: DBTransactionAdapter,
): Promise<SessionRow | null> {
  const adapter = given ?? (await belowBorder(border));
  const { ctx, openSince } = border;
  const stored = await border.storedSession?.(token);
  const where = [{ field: "token", value: token }];
  const session =
    stored?.session ??
    (isInDatabase(ctx) ? await adapter.findOne<SessionRow>({ model: "session", where }) : null);
  if (!session?.tenantId) return session;
  const since = await openSince(session, adapter);
  const isGood = since !== undefined && since === (stored?.since ?? since);
  return isGood ? { ...session, since } : null;
}

/** Whether a text is the token of a session, wherever it belongs and whether or not it is good now. */
export async function isSessionToken(border: Border, token: string): Promise<boolean> {
  if (await border.storedSession?.(token)) return true;
  if (!isInDatabase(border.ctx)) return false;
  const where = [{ field: "token", value: token }];
  return (await (await belowBorder(border)).count({ model: "session", where })) > 0;
}

/** As better-auth decides it: whether a session that is not in secondary storage may be here. */
function isInDatabase({ options: { secondaryStorage, session } }: AuthContext): boolean {
  if (!secondaryStorage) return true;
  return session?.storeSessionInDatabase === true && !session.preserveSessionInDatabase;
}
