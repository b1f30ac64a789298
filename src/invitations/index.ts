import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { SIGN_UP_PATH } from "../constants";
import { INVITES, type Inviting } from "../policy/inviting";
import {
  ACCEPT_PATH,
  acceptedTenant,
  acceptInvitationEndpoint,
  getInvitationEndpoint,
  guardAccepting,
} from "./accept";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import {
  createInvitationEndpoint,
  listInvitationsEndpoint,
  resendInvitationEndpoint,
  revokeInvitationEndpoint,
  SENDING_PATHS,
} from "./manage";
import { carryToken, findOpening, replacesUser } from "./opener";
import {
  invitationSchema,
  resolveInvitationOptions,
  type TenantInvitationsOptions,
  tenantOptions,
} from "./options";

export type { InvitationStatus, TenantInvitation } from "../tenants/events";
export type { AcceptInput, OpenInvitation } from "./accept";
export { INVITATION_HEADER, TENANT_INVITATION_ERROR_CODES } from "./error-codes";
export type { SentInvitation } from "./manage";
export type {
  InvitationMail,
  Inviter,
  TenantInvitationsOptions,
  TenantInvitationsSchema,
} from "./options";

declare module "@better-auth/core" {
  interface BetterAuthPluginRegistry<AuthOptions, Options> {
    "tenant-invitations": { creator: typeof tenantInvitations };
  }
}

/**
 * Invites people to tenants by email. They join by any sign-in method that the tenant allows.
 * `tenantInvitations<"member" | "admin">()` types the roles of `auth.api.createTenantInvitation`.
 */
export const tenantInvitations = <Role extends string = string>(
  invitationOptions: TenantInvitationsOptions,
) => {
  const options = resolveInvitationOptions(invitationOptions);
  const inviting: Inviting = { openingFor: findOpening, replaces: replacesUser, acceptedTenant };
  return {
    ...{ [INVITES]: inviting },
    id: "tenant-invitations",
    schema: invitationSchema(options.schema),
    init(ctx: AuthContext) {
      tenantOptions(ctx); // Throws if there is no tenantAuth().
      limitLikeSignUp(ctx);
    },
    hooks: { before: [carryToken, guardAccepting] },
    endpoints: {
      /** Invites an address to a tenant, or sends its invitation again. For managers. */
      createTenantInvitation: createInvitationEndpoint<Role>(options),
      /** Lists a tenant's invitations, newest first. For managers. */
      listTenantInvitations: listInvitationsEndpoint,
      /** Sends an invitation again, with a new token. For managers. */
      resendTenantInvitation: resendInvitationEndpoint(options),
      /** Revokes an invitation. For managers. */
      revokeTenantInvitation: revokeInvitationEndpoint,
      /** What the page of an invitation needs. For anyone with the link. */
      getTenantInvitation: getInvitationEndpoint,
      /** Accepts an invitation with a password. For anyone with the link. */
      acceptTenantInvitation: acceptInvitationEndpoint,
    },
    rateLimit: [
      // As better-auth limits its own sign-up.
      { pathMatcher: (path: string) => path === ACCEPT_PATH, window: 10, max: 3 },
      { pathMatcher: (path: string) => SENDING_PATHS.includes(path), window: 60, max: 10 },
    ],
    options,
    $ERROR_CODES: TENANT_INVITATION_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};

/** R12: the application's limit on sign-up applies to accepting, unless that has a limit of its own. */
function limitLikeSignUp({ rateLimit }: AuthContext): void {
  const { customRules: rules } = rateLimit;
  if (!rules || !Object.hasOwn(rules, SIGN_UP_PATH)) return;
  rateLimit.customRules = { [ACCEPT_PATH]: rules[SIGN_UP_PATH], ...rules } as typeof rules;
}
