import type { AuthContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { Guard, Row } from "../../core/database";
import { isServerCall } from "../../core/endpoint";
import { type AfterHook, onPaths } from "../../core/hooks";
import { type Endpoint, getTenantId } from "../../core/request";
import { applicationProviders } from "./application-providers";
import { oauthRequest } from "./request";

/** better-auth's endpoints that return the tokens of an account, and those that use them. */
const RETURN_TOKENS = ["/get-access-token", "/refresh-token"];
const USE_TOKENS = [...RETURN_TOKENS, "/account-info"];

/** Remembers the accounts that a request reads. */
export const noteAccounts: Guard = {
  models: ["account"],
  methods: ["findOne", "findMany"],
  async run({ call }, next) {
    const found = await next(call);
    oauthRequest.get().readAccounts.push(...([found].flat().filter(Boolean) as Row[]));
    return found;
  },
};

/** Returns an account that the request has read, by the value of a column. */
export const findReadAccount = (field: string, value: unknown): Row | undefined =>
  oauthRequest.get().readAccounts.find((account) => account[field] === value);

/**
 * Returns the account whose tokens a request asks for, which better-auth has read by then.
 * Undefined at other endpoints, null if it was not read from the database.
 */
export function requestedAccount({ path = "", body, query }: Endpoint) {
  if (!USE_TOKENS.includes(path)) return undefined;
  const wanted: unknown = body?.accountId ?? query?.accountId;
  const found = oauthRequest
    .get()
    .readAccounts.findLast(
      ({ id, providerId, accountId }) => id === wanted && providerId && accountId,
    );
  return (found as { providerId: string; accountId: string } | undefined) ?? null;
}

/**
 * Removes id and refresh tokens from responses in a tenant, and refuses access tokens that can sign
 * in, except for server code. Tenants without an OAuth config share the application's client. Its
 * id tokens sign in at all of them and on the platform, and a refresh token returns new id tokens.
 * With these, an administrator who impersonates a user could sign in as that user elsewhere.
 */
export const withholdTokens: AfterHook = {
  matcher: onPaths(...RETURN_TOKENS),

  handler: createAuthMiddleware(async (ctx) => {
    const { returned } = ctx.context;
    if (getTenantId() === null || isServerCall()) return undefined;
    if (typeof returned !== "object" || isAPIError(returned)) return undefined;
    const { idToken, refreshToken, ...rest } = returned as Record<string, unknown>;
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
 * better-auth's providers that identify users by an id token alone. Others use the access token
 * that comes with it, or also accept an access token alone.
 *
 * Guarded by "who somebody is, %s reads from an id token alone".
 */
export const BY_ID_TOKEN = ["apple", "cognito", "google", "line", "microsoft"];

/** Returns whether an access token is enough to sign in with the application's provider `id`. */
function acceptsAccessToken(context: AuthContext, id: string): boolean {
  const { byId, ofPlugins } = applicationProviders(context);
  const { idToken, options } = byId.get(id) ?? {};
  const { disableIdTokenSignIn, verifyIdToken, getUserInfo } = options ?? {};
  if (disableIdTokenSignIn || !(idToken || verifyIdToken)) return false;
  const isAsMade = !ofPlugins.has(id) && !verifyIdToken && !getUserInfo;
  return !(isAsMade && BY_ID_TOKEN.includes(id));
}
