import type { AuthContext, HookEndpointContext } from "better-auth";
import type { Where } from "better-auth/types";
import { notes } from "../scope/scope";
import type { Opening, Row } from "./border";

/**
 * What the border asks the plugin that invites. It is on that plugin: so it is there wherever the
 * plugin stands, whatever adapter others bring, and in no other instance.
 */
export interface Inviting {
  /**
   * Says whether somebody was invited. May be asked twice for one user, so it changes nothing: what
   * there is to change comes with `accept`. Where users are made in any case, only an invitation
   * counts that the call itself carries.
   */
  openingFor(
    ctx: AuthContext,
    user: Row,
    counts: "any invitation" | "a carried one",
  ): Promise<Opening | undefined>;
  /** The tenant that somebody accepts an invitation of: the token names it. */
  acceptedTenant(ctx: HookEndpointContext): Promise<string | undefined>;
}

export const INVITES = Symbol.for("better-auth-tenant:invites");

export function invitingOf({ options }: AuthContext): Inviting | undefined {
  const plugin = options.plugins?.find((plugin) => INVITES in plugin);
  return (plugin as { [INVITES]?: Inviting } | undefined)?.[INVITES];
}

/**
 * Whether a lookup by address must not find a user: one that a link to `/verify-email` was not mailed
 * for. The token of that link names an address alone, and would change the address of, and sign in
 * as, the user who has it by now.
 */
export function isHidden([clause, ...rest]: Where[], user: Row | null): boolean {
  if (!user?.tenantId || clause?.field !== "email" || rest.length) return false;
  const { userId, email } = notes().openedToken ?? {};
  return userId !== undefined && email === user.email && userId !== String(user.id);
}
