import type { AuthContext, BetterAuthOptions, HookEndpointContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import type { Row } from "../isolation/isolation";
import { requestSlot } from "../request/scope";

/*
 * What the core asks our other plugins. It is found on the plugin, wherever that one stands.
 */

/** What admits a user where the policy says `"invited"`. */
export interface Admission {
  /** Values that the user gets: a role, or a verified email. */
  data?: Row;
  /**
   * Called before the user is created: frees the email if a user has it who never verified it.
   * Returns the id of a user that has to be kept, and becomes the new user.
   */
  makeRoom?(raw: DBTransactionAdapter): Promise<string | undefined>;
  /** Called with the new user, in the same transaction, with the adapter without isolation. */
  accept?(user: Row, raw: DBTransactionAdapter): Promise<void>;
}

/** What the core asks `tenantInvitations()`. */
export interface Inviting {
  /**
   * Whether a user was invited. It may be asked twice for one user, so it changes nothing: that is
   * what `accept` is for. Where users are created in any case, only an invitation counts that the
   * call itself carries.
   */
  openingFor(
    ctx: AuthContext,
    user: Row,
    counts: "any invitation" | "a carried one",
  ): Promise<Admission | undefined>;
  /** Whether the user of an email is about to be replaced: the request has proven the email. */
  replaces(ctx: AuthContext, user: Row): Promise<boolean>;
  /** The tenant of the invitation that the caller accepts. */
  acceptedTenant(ctx: HookEndpointContext): Promise<string | undefined>;
}

/** What the core asks `tenantDomains()`. */
export interface Domains {
  /** The tenant whose verified host a domain is, in its normal form. Cached like tenants. */
  tenantOf(ctx: AuthContext, domain: string): Promise<string | undefined>;
  /** The domains that a tenant has verified. */
  verifiedBy(
    ctx: AuthContext,
    tenantId: string,
    adapter?: DBTransactionAdapter,
  ): Promise<readonly string[]>;
}

export const INVITES = Symbol.for("better-auth-tenant:invites");
export const DOMAINS = Symbol.for("better-auth-tenant:domains");

const offered = <T>({ options }: { options: BetterAuthOptions }, key: symbol) => {
  const plugin = options.plugins?.find((plugin) => key in plugin);
  return (plugin as { [key: symbol]: T } | undefined)?.[key];
};

export const invitingOf = (ctx: AuthContext) => offered<Inviting>(ctx, INVITES);
export const domainsIn = (ctx: { options: BetterAuthOptions }) => offered<Domains>(ctx, DOMAINS);

/** What the invitation of a sign-up writes into its user, and the email that it is for. */
export const invited = requestSlot<{ email: string; data: Row }>();
