import { createAuthMiddleware, isAPIError } from "better-auth/api";
import { type AfterHook, lazy } from "../framework";
import { isServersOwn } from "../scope/endpoint";
import { getTenantId } from "../scope/scope";
import type { Tokens } from "./shared-clients";

/** Loaded with the first question for tokens, and with the first sign-out at a provider. */
export const sharedClients = lazy(() => import("./shared-clients"));

/** Where better-auth hands out what it has stored for an account. */
const HANDS_OUT = ["/get-access-token", "/refresh-token"];

/**
 * Tenants without a client of their own share the application's. To that client an id token is a
 * sign-in at each of them, and on the platform; and whoever has a refresh token gets id tokens. A
 * tenant's administrator can act for its people, and would be them everywhere. So where there is such
 * a client, these tokens leave a tenant only with the server's own code. A tenant that has its own
 * has said so itself, and may have people who came by the other one.
 */
export const keepSharedTokens: AfterHook = {
  matcher: ({ path, context: { returned } }) =>
    HANDS_OUT.includes(path ?? "") &&
    getTenantId() !== null &&
    !isServersOwn() &&
    typeof returned === "object" &&
    !isAPIError(returned),

  handler: createAuthMiddleware(async (ctx) =>
    (await sharedClients()).withoutShared(ctx, ctx.context.returned as Tokens),
  ),
};
