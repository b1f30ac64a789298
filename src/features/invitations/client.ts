import type { BetterAuthClientPlugin } from "better-auth/client";
import type { AdminOptions, InferAdminRolesFromOption } from "better-auth/plugins/admin";
import type { WithErrorCodes } from "../../core/error-codes";
import type { ErrorCode } from "../../error-codes";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import type { tenantInvitations } from "./index";

export { INVITATION_HEADER, TENANT_INVITATION_ERROR_CODES } from "./error-codes";

/** The comments that editors show for the calls: see `Actions` in `src/client.ts`. */
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
      /** Returns the data for the page of an invitation. For anyone with the link. */
      get: unknown;
      /** Accepts an invitation with a password. For anyone with the link. */
      accept: unknown;
    };
  };
}

type Server<App> = WithErrorCodes<
  ReturnType<typeof tenantInvitations<RoleOf<App>>>,
  ErrorCode | keyof typeof TENANT_INVITATION_ERROR_CODES
>;

/** The roles of the application's `admin()`; any text if its type is not known. */
type RoleOf<App> = App extends { options: { plugins: (infer Plugin)[] } }
  ? Extract<Plugin, { id: "admin" }> extends { options: infer Options extends AdminOptions }
    ? InferAdminRolesFromOption<Options> & string
    : string
  : string;

/**
 * The client of `tenantInvitations()`: `authClient.tenant.invitation.*`. With the type of the
 * server, `tenantInvitationsClient<typeof auth>()`, it knows the application's roles.
 */
export const tenantInvitationsClient = <App = unknown>() =>
  ({
    id: "tenant-invitations",
    $InferServerPlugin: {} as Server<App>,
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
