import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { SIGN_UP_PATH } from "../constants";
import { INVITES, type Inviting } from "../policy/inviting";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import { carryToken, findOpening } from "./opener";
import { resolveInvitationOptions, type TenantInvitationsOptions, tenantOptions } from "./options";
import { replacesUser } from "./replace";
import {
  ACCEPT_PATH,
  acceptedTenant,
  acceptInvitationEndpoint,
  createInvitationEndpoint,
  getInvitationEndpoint,
  guardAccepting,
  listInvitationsEndpoint,
  resendInvitationEndpoint,
  revokeInvitationEndpoint,
  SENDING_PATHS,
} from "./routes";
import { invitationSchema } from "./schema";

declare module "@better-auth/core" {
  interface BetterAuthPluginRegistry<AuthOptions, Options> {
    "tenant-invitations": { creator: typeof tenantInvitations };
  }
}

/** People are invited to tenants by e-mail, and come in by whichever way the tenant allows. */
export const tenantInvitations = (invitationOptions: TenantInvitationsOptions) => {
  const options = resolveInvitationOptions(invitationOptions);
  const inviting: Inviting = {
    openingFor: findOpening,
    replaces: replacesUser,
    acceptedTenant,
  };
  return {
    ...{ [INVITES]: inviting },
    id: "tenant-invitations",
    schema: invitationSchema(options.schema),
    init(ctx: AuthContext) {
      tenantOptions(ctx); // An error, where there are no tenants.
      limitLikeSignUp(ctx);
    },
    hooks: { before: [carryToken, guardAccepting] },
    endpoints: {
      /** Invites an address to a tenant, or sends its invitation again. For managers. */
      createTenantInvitation: createInvitationEndpoint(options),
      /** Lists a tenant's invitations, newest first. For managers. */
      listTenantInvitations: listInvitationsEndpoint,
      /** Sends an invitation again, with a new token. For managers. */
      resendTenantInvitation: resendInvitationEndpoint(options),
      /** Takes an invitation back. For managers. */
      revokeTenantInvitation: revokeInvitationEndpoint,
      /** What the page of an invitation has to know. For whoever has the link. */
      getTenantInvitation: getInvitationEndpoint,
      /** Accepts an invitation with a password. For whoever has the link. */
      acceptTenantInvitation: acceptInvitationEndpoint,
    },
    rateLimit: [
      // As better-auth limits its own sign-up.
      { pathMatcher: (path: string) => path === ACCEPT_PATH, window: 10, max: 3 },
      // Each of these sends a mail.
      { pathMatcher: (path: string) => SENDING_PATHS.includes(path), window: 60, max: 10 },
    ],
    options,
    $ERROR_CODES: TENANT_INVITATION_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};

/** R12: a limit that the application has put on sign-up counts for accepting, unless it has its own. */
function limitLikeSignUp({ rateLimit }: AuthContext): void {
  const { customRules: rules } = rateLimit;
  if (!rules || !Object.hasOwn(rules, SIGN_UP_PATH)) return;
  rateLimit.customRules = { [ACCEPT_PATH]: rules[SIGN_UP_PATH], ...rules } as typeof rules;
}
