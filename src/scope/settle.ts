import {
  type AuthEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";
import { createAuthMiddleware } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { createScope, isOutermost, outermostEndpoint, type Scope } from "./scope";

/** What the border has to know of a session, wherever it was read. */
export type SessionRow = { tenantId?: string | null; expiresAt?: Date | string };

/** Puts a request into a scope, with all that changes for it in better-auth's context. */
export type EnterScope = (scope: Scope, endpoint: Endpoint | undefined) => Scope;
type Endpoint = Pick<
  AuthEndpointContext,
  "context" | "path" | "headers" | "body" | "query" | "params"
>;

/**
 * R4: a request that names no tenant runs in the tenant of the valid session it carries, and on
 * the platform without one. Endpoints that read their session first settle it by that look-up;
 * the others (a sign-in by somebody who is signed in already, say) settle it here.
 */
export async function settleScope(enter: EnterScope, adapter?: DBTransactionAdapter) {
  const endpoint = endpointOfRequest();
  const session = endpoint && (await sessionOf(endpoint, adapter));
  return enter(scopeOf(session, endpoint), endpoint);
}

/** The same by a session that was just found by its token: mostly at once. */
export function settleScopeBy(
  session: SessionRow,
  enter: EnterScope,
): Promise<unknown> | undefined {
  const endpoint = endpointOfRequest();
  const { tenantId = null } = session;
  // A call from inside the request may look up whichever session it likes.
  if (endpoint !== tryGetCurrentAuthEndpointContext()) return settleScope(enter);
  if (isValid(session)) enter(scopeOf(session, endpoint), endpoint);
  // An expired session is no session, but get-session is about to delete it where it is.
  else if (endpoint?.path === "/get-session") enter(createScope(tenantId), endpoint);
}

/** The endpoint that the request is about, seen from an endpoint that it may have called. */
function endpointOfRequest(): Endpoint | undefined {
  const called = tryGetCurrentAuthEndpointContext();
  if (!called || isOutermost(called)) return called;
  return (outermostEndpoint() as Endpoint | undefined) ?? called;
}

function scopeOf(session: SessionRow | null | undefined, endpoint: Endpoint | undefined): Scope {
  if (!isValid(session)) return createScope(null);
  const scope = createScope(session.tenantId ?? null);
  if (isAdminEndpoint(endpoint)) scope.admin = scope.tenantId === null ? "sees all" : "visits";
  return scope;
}

/** The endpoints of better-auth's admin plugin, each of which checks the role of its caller. */
export function isAdminEndpoint(endpoint: Endpoint | undefined): boolean {
  if (!endpoint?.path?.startsWith("/admin/")) return false;
  const admin = endpoint.context.options.plugins?.find(({ id }) => id === "admin");
  return Object.values(admin?.endpoints ?? {}).some(({ path }) => path === endpoint.path);
}

async function sessionOf(
  endpoint: Endpoint,
  adapter?: DBTransactionAdapter,
): Promise<SessionRow | null | undefined> {
  const known: SessionRow | undefined = endpoint.context.session?.session;
  const { context } = endpoint;
  const headers =
    endpoint.headers instanceof Headers ? endpoint.headers : new Headers(endpoint.headers);
  if (known || !headers.has("cookie")) return known;
  const token = await readSessionToken({ headers, context } as MiddlewareInput);
  if (!token) return undefined;
  if (adapter && !context.options.secondaryStorage) {
    const where = [{ field: "token", value: token }];
    return adapter.findOne<SessionRow>({ model: "session", where });
  }
  return (await context.internalAdapter.findSession(token))?.session;
}

/** The session token of a request, if its cookie carries a good signature. */
const readSessionToken = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(ctx.context.authCookies.sessionToken.name, ctx.context.secret),
);

type MiddlewareInput = Parameters<typeof readSessionToken>[0];

function isValid(session: SessionRow | null | undefined): session is SessionRow {
  return !!session?.expiresAt && new Date(session.expiresAt) > new Date();
}
