import { createAuthMiddleware, isStateful } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import { lazy } from "../framework";
import { type Endpoint, endpointOfRequest, settledScope } from "./endpoint";
import { enter, notes, type SessionRow, type Settled, settled } from "./scope";

/** Loaded with the first request that has something else than a cookie with a session's token. */
const credentials = lazy(() => import("./credentials"));

/** Reads a session by its token, wherever it belongs, if its tenant is there and active. */
export type ReadSession = (
  token: string,
  adapter?: DBTransactionAdapter,
) => Promise<SessionRow | null | undefined>;

/**
 * R4: a request that names no tenant runs in the tenant of the valid session it carries, and on
 * the platform without one. The session is read below the border and once for each request: what
 * asks meanwhile waits for the same answer.
 */
export async function settle(
  readSession: ReadSession,
  adapter?: DBTransactionAdapter,
): Promise<Settled> {
  const known = settledScope();
  if (known) return known;
  const note = notes();
  note.settling ??= settleFromCredential(readSession, adapter);
  return note.settling;
}

/** The same where the request carries a session. Where it carries none, nothing is settled yet. */
export async function settleIfCarried(readSession: ReadSession): Promise<void> {
  const endpoint = settledScope() ? undefined : endpointOfRequest();
  const session = endpoint && (await sessionOf(endpoint, readSession));
  if (!endpoint || settledScope()) return;
  if (isValid(session)) enterTenantOf(session);
  else notes().deadCredential = credentialOf(endpoint);
}

/** What a request says who it is from. A hook may change it. */
function credentialOf(endpoint: Endpoint): string {
  const headers = sentWith(endpoint);
  return JSON.stringify(["cookie", "authorization"].map((name) => headers.get(name)));
}

/** Code of the application's own calls endpoints with whatever it has. */
function sentWith({ headers, request }: Endpoint): Headers {
  const given = headers ?? request?.headers;
  return given instanceof Headers ? given : new Headers(given);
}

async function settleFromCredential(readSession: ReadSession, adapter?: DBTransactionAdapter) {
  const endpoint = endpointOfRequest();
  const { deadCredential } = notes();
  const isDead = endpoint && !endpoint.context.session && credentialOf(endpoint) === deadCredential;
  const session = endpoint && !isDead ? await sessionOf(endpoint, readSession, adapter) : undefined;
  // Something may have named the tenant meanwhile: a link, say.
  return settledScope() ?? (isValid(session) ? enterTenantOf(session) : enter(settled(null)));
}

/** Its number may be given to another tenant while the request is on its way: it is about this one. */
export function enterTenantOf({ tenantId = null, since }: SessionRow): Settled {
  if (since) notes().since ??= since;
  return enter(settled(tenantId));
}

export function isValid(session: SessionRow | null | undefined): session is SessionRow {
  return !!session?.expiresAt && new Date(session.expiresAt) > new Date();
}

/** The session that a request carries, wherever it belongs. */
export async function sessionOf(
  endpoint: Endpoint,
  readSession: ReadSession,
  adapter?: DBTransactionAdapter,
): Promise<SessionRow | null | undefined> {
  const { context } = endpoint;
  const known = context.session as { session: SessionRow; user: SessionRow } | null;
  // A plugin may have made a session of its own (an API key's), which says nothing about a tenant.
  if (known) return { ...known.session, tenantId: known.session.tenantId ?? known.user?.tenantId };
  const sent = sentWith(endpoint);
  const headers = sent.has("authorization")
    ? await (await credentials()).withBearer(endpoint, sent)
    : sent;
  if (!headers.has("cookie")) return undefined;
  const input = { headers, context } as MiddlewareInput;
  if (!isStateful(input as Parameters<typeof isStateful>[0])) {
    return (await credentials()).statelessSession({ headers, context });
  }
  const token = await readSessionToken(input);
  return token ? readSession(token, adapter) : undefined;
}

/** The session token of a request, if its cookie carries a good signature. */
export const readSessionToken = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(ctx.context.authCookies.sessionToken.name, ctx.context.secret),
);

type MiddlewareInput = Parameters<typeof readSessionToken>[0];
