import type { AuthContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { AfterHook } from "../framework";
import type { Guard, Row } from "../isolation/isolation";
import { type Endpoint, isServerCall } from "../request/endpoint";
import { getTenantId, requestSlot } from "../request/scope";
import { applicationProviders } from "./application-providers";

/** better-auth's endpoints that use the tokens stored with an account, or return them. */
const RETURN_TOKENS = ["/get-access-token", "/refresh-token"];
const USE_TOKENS = [...RETURN_TOKENS, "/account-info"];

/** The accounts that the request has read: tokens in them are for the host that they are from. */
export const readAccounts = requestSlot((): Row[] => []);

export const noteAccounts: Guard = ({ method, call, model }, next) =>
  model === "account" && method.startsWith("find")
    ? next(call).then((found) => {
        readAccounts.get().push(...([found].flat().filter(Boolean) as Row[]));
        return found;
      })
    : undefined;

/**
 * The account whose tokens a request asks for, which better-auth has read by then. Undefined at other
 * endpoints, and null if it was not read from the database.
 */
export function requestedAccount({ path = "", body, query }: Endpoint) {
  if (!USE_TOKENS.includes(path)) return undefined;
  const wanted: unknown = body?.accountId ?? query?.accountId;
  const found = readAccounts
    .get()
    .findLast(({ id, providerId, accountId }) => id === wanted && providerId && accountId);
  return (found as { providerId: string; accountId: string } | undefined) ?? null;
}

/**
 * Tenants without an OAuth config share the application's client. To that client, an id token is a
 * sign-in at each of these tenants and on the platform, and a refresh token returns new id tokens.
 * A tenant's administrator can impersonate its users, and could take over their accounts everywhere
 * else. So these tokens leave a tenant only with the server's own code.
 */
export const withholdTokens: AfterHook = {
  matcher: ({ path, context: { returned } }) =>
    RETURN_TOKENS.includes(path ?? "") &&
    getTenantId() !== null &&
    !isServerCall() &&
    typeof returned === "object" &&
    !isAPIError(returned),

  handler: createAuthMiddleware(async (ctx) => {
    const { idToken, refreshToken, ...rest } = ctx.context.returned as Record<string, unknown>;
    const account = requestedAccount(ctx);
    if (account && !acceptsAccessToken(ctx.context, account.providerId)) return rest;
    throw new APIError("FORBIDDEN", {
      code: "TOKEN_OF_SHARED_CLIENT",
      message:
        "An access token of this provider can be a sign-in, at every tenant that shares the client. Ask on the server, without headers",
    });
  }),
};

/**
 * better-auth's own providers that identify users by an id token alone. Others use the access token
 * that comes with it, or accept one in its place.
 *
 * Guarded by "who somebody is, %s reads from an id token alone".
 */
export const BY_ID_TOKEN = ["apple", "cognito", "google", "line", "microsoft"];

/** Whether an access token can be a sign-in at the application's provider of this name. */
function acceptsAccessToken(context: AuthContext, id: string): boolean {
  const { byId, ofPlugins } = applicationProviders(context);
  const { idToken, options } = byId.get(id) ?? {};
  const { disableIdTokenSignIn, verifyIdToken, getUserInfo } = options ?? {};
  if (disableIdTokenSignIn || !(idToken || verifyIdToken)) return false;
  const isAsMade = !ofPlugins.has(id) && !verifyIdToken && !getUserInfo;
  return !(isAsMade && BY_ID_TOKEN.includes(id));
}
