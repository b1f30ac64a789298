import type { AuthContext, BetterAuthPlugin } from "better-auth";
import { SIGN_UP_PATH } from "../../core/constants";
import type { Extension } from "../../core/extension";
import { EXTENSION } from "../../core/extensions";
import type { Isolation } from "../../core/isolation";
import * as accept from "./accept";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import * as manage from "./manage";
import { carryToken, findAdmission, hideReplacedUser, writtenIntoUser } from "./opener";
import {
  assertSetup,
  invitationSchema,
  resolveInvitationOptions,
  type TenantInvitationsOptions,
} from "./options";
import type { Invitations } from "./service";

export type { InvitationStatus, TenantInvitation } from "../management/events";
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
  return {
    ...{ [EXTENSION]: extension },
    id: "tenant-invitations",
    schema: invitationSchema(options.schema),
    init(ctx: AuthContext) {
      assertSetup(ctx);
      limitLikeSignUp(ctx);
    },
    hooks: { before: [carryToken, accept.guardAccepting] },
    endpoints: {
      /** Invites an address to a tenant, or sends its invitation again. For managers. */
      createTenantInvitation: manage.createInvitationEndpoint<Role>(options),
      /** Lists a tenant's invitations, newest first. For managers. */
      listTenantInvitations: manage.listInvitationsEndpoint,
      /** Sends an invitation again, with a new token. For managers. */
      resendTenantInvitation: manage.resendInvitationEndpoint(options),
      /** Revokes an invitation. For managers. */
      revokeTenantInvitation: manage.revokeInvitationEndpoint,
      /** Returns the data for the page of an invitation. For anyone with the link. */
      getTenantInvitation: accept.getInvitationEndpoint,
      /** Accepts an invitation with a password. For anyone with the link. */
      acceptTenantInvitation: accept.acceptInvitationEndpoint,
    },
    rateLimit: [
      // The same limit as better-auth has for its own sign-up.
      { pathMatcher: (path: string) => path === accept.ACCEPT_PATH, window: 10, max: 3 },
      { pathMatcher: (path: string) => manage.SENDING_PATHS.includes(path), window: 60, max: 10 },
    ],
    options,
    $ERROR_CODES: TENANT_INVITATION_ERROR_CODES,
  } satisfies BetterAuthPlugin;
};

/** Admits users who join by an invitation. */
const extension = (isolation: Isolation): Extension => ({
  name: "invitations",
  findAdmission,
  guards: [hideReplacedUser(isolation)],
  provides: { invitations: { writtenInto: writtenIntoUser } satisfies Invitations },
  async claim(ctx, phase) {
    const tenantId = phase === "target" ? await accept.acceptedTenant(ctx) : undefined;
    return tenantId === undefined ? undefined : { tenantId };
  },
});

/** R12: applies the application's rate limit for sign-up to accepting, unless it has its own. */
function limitLikeSignUp({ rateLimit }: AuthContext): void {
  const { customRules: rules } = rateLimit;
  if (!rules || !Object.hasOwn(rules, SIGN_UP_PATH)) return;
  rateLimit.customRules = { [accept.ACCEPT_PATH]: rules[SIGN_UP_PATH], ...rules } as typeof rules;
}
