import type { BetterAuthClientPlugin } from "better-auth/client";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import type { tenantInvitations } from "./index";

export { INVITATION_HEADER, TENANT_INVITATION_ERROR_CODES } from "./error-codes";

/**
 * The comments that editors show for the calls. The types come from the server's endpoints;
 * `unknown` adds nothing to them, but keeps its comment.
 */
interface Actions {
  tenant: {
    /** Invitations to a tenant. */
    invitation: {
      /** Invites an address, or sends its invitation again. For managers. */
      create: unknown;
      /** Lists a tenant's invitations, newest first. For managers. */
      list: unknown;
      /** Sends an invitation again, with a new token. For managers. */
      resend: unknown;
      /** Revokes an invitation. For managers. */
      revoke: unknown;
      /** What the page of an invitation needs. For anyone with the link. */
      get: unknown;
      /** Accepts an invitation with a password. For anyone with the link. */
      accept: unknown;
    };
  };
}

/** The browser's side of `tenantInvitations()`: `authClient.tenant.invitation.*`. */
export const tenantInvitationsClient = () =>
  ({
    id: "tenant-invitations",
    $InferServerPlugin: {} as ReturnType<typeof tenantInvitations>,
    getActions: () => ({}) as Actions,
    $ERROR_CODES: TENANT_INVITATION_ERROR_CODES,
    pathMethods: {
      "/tenant/invitation/list": "GET",
      "/tenant/invitation/get": "GET",
    },
    atomListeners: [
      { signal: "$sessionSignal", matcher: (path) => path === "/tenant/invitation/accept" },
    ],
  }) satisfies BetterAuthClientPlugin;
