import {
  type AuthEndpointContext,
  tryGetCurrentAuthEndpointContext,
} from "@better-auth/core/context";
import { createAuthMiddleware } from "better-auth/api";
import { createScope, type Scope } from "./scope";

type SessionRow = { tenantId?: string | null; expiresAt?: Date | string };

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
export async function settleScope(enter: EnterScope) {
  const endpoint = tryGetCurrentAuthEndpointContext();
  const session = endpoint && (await sessionOf(endpoint));
  return enter(scopeOf(session, endpoint), endpoint);
}

export function settleScopeBy(session: SessionRow, enter: EnterScope) {
  if (!isValid(session)) return;
  const endpoint = tryGetCurrentAuthEndpointContext();
  enter(scopeOf(session, endpoint), endpoint);
}

function scopeOf(session: SessionRow | undefined, endpoint: Endpoint | undefined): Scope {
  if (!isValid(session)) return createScope(null);
  const scope = createScope(session.tenantId ?? null);
  if (isAdminPath(endpoint?.path)) scope.admin = scope.tenantId === null ? "sees all" : "visits";
  return scope;
}

/** The endpoints of better-auth's admin plugin check the role of the caller, each of them. */
export const isAdminPath = (path: string | undefined) => path?.startsWith("/admin/") ?? false;

async function sessionOf(endpoint: Endpoint): Promise<SessionRow | undefined> {
  const known: SessionRow | undefined = endpoint.context.session?.session;
  if (known || !new Headers(endpoint.headers).has("cookie")) return known;
  const { headers, context } = endpoint;
  const token = await readSessionToken({ headers, context } as MiddlewareInput);
  const found = token && (await context.internalAdapter.findSession(token));
  return found ? found.session : undefined;
}

/** The session token of a request, if its cookie carries a good signature. */
const readSessionToken = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(ctx.context.authCookies.sessionToken.name, ctx.context.secret),
);

type MiddlewareInput = Parameters<typeof readSessionToken>[0];

function isValid(session: SessionRow | null | undefined): session is SessionRow {
  return !!session?.expiresAt && new Date(session.expiresAt) > new Date();
}
