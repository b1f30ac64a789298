import type { BetterAuthClientPlugin } from "better-auth/client";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import type { tenantInvitations } from "./index";

export { INVITATION_HEADER, TENANT_INVITATION_ERROR_CODES } from "./error-codes";

/**
 * What editors say about the calls. Their types come from the server's endpoints by way of the
 * paths; `unknown` adds nothing to a type, but its comment stays.
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
      /** Takes an invitation back. For managers. */
      revoke: unknown;
      /** What the page of an invitation has to know. For whoever has the link. */
      get: unknown;
      /** Accepts an invitation with a password. For whoever has the link. */
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
