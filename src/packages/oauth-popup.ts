import { createAuthMiddleware } from "better-auth/api";
import type { Border } from "../border/border";
import type { BeforeHook } from "../framework";
import { asTenantsState } from "../naming/oauth-state";
import { settle } from "../scope/settle";

/**
 * oauthPopup() makes its states without what the server has to say in them. Where they are kept in
 * cookies, one of a tenant's would be as good on the platform: so it is said in what a page may add.
 */
export const sayInPopupState = (border: Border): BeforeHook => ({
  matcher: ({ path }) => path === "/oauth-popup/start",

  handler: createAuthMiddleware(async ({ query }) => {
    const { tenantId } = await settle(border.readSession);
    if (tenantId === null) return;
    return { context: { query: { additionalData: asTenantsState(query?.additionalData) } } };
  }),
});
