import type { AuthContext, HookEndpointContext } from "better-auth";
import type { Where } from "better-auth/types";
import type { Admission, Row } from "../isolation/isolation";
import { currentEndpoint } from "../request/endpoint";
import { notes } from "../request/scope";

/**
 * What the isolation asks the plugin that invites. It is on that plugin: so it is there wherever the
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
  ): Promise<Admission | undefined>;
  /**
   * Whether the user that was found by an address is about to be replaced: the request has proven
   * the address, which the user never has.
   */
  replaces(ctx: AuthContext, user: Row): Promise<boolean>;
  /** The tenant that somebody accepts an invitation of: the token names it. */
  acceptedTenant(ctx: HookEndpointContext): Promise<string | undefined>;
}

export const INVITES = Symbol.for("better-auth-tenant:invites");

export function invitingOf({ options }: AuthContext): Inviting | undefined {
  const plugin = options.plugins?.find((plugin) => INVITES in plugin);
  return (plugin as { [INVITES]?: Inviting } | undefined)?.[INVITES];
}

/**
 * Whether a lookup by address must not find a user: one that is about to be replaced, or one that a
 * link to `/verify-email` was not mailed for. The token of that link names an address alone, and would
 * change the address of, and sign in as, the user who has it by now.
 */
export async function isHiddenUser(
  ctx: AuthContext,
  [clause, ...rest]: Where[],
  user: Row | null,
): Promise<boolean> {
  // By its username, too: the person may want the same.
  const isByEmail = clause?.field === "email";
  if (!user?.tenantId || !(isByEmail || clause?.field === "username") || rest.length) return false;
  const { userId, email } = notes().openedToken ?? {};
  if (isByEmail && userId !== undefined && email === user.email && userId !== String(user.id))
    return true;
  if (user.emailVerified !== false) return false;
  const inviting = invitingOf(currentEndpoint()?.context ?? ctx);
  return (await inviting?.replaces(ctx, user)) ?? false;
}
