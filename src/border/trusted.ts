import type { AuthContext } from "better-auth";
import { notes } from "../scope/scope";
import type { Opening, Row } from "./border";

/**
 * Says whether somebody was invited. May be asked twice for one user, so it changes nothing: what
 * there is to change comes with `accept`. Where users are made in any case, only an invitation
 * counts that the call itself carries.
 */
export type Opener = (
  ctx: AuthContext,
  user: Row,
  counts: "any invitation" | "a carried one",
) => Promise<Opening | undefined>;

/**
 * On the plugin that invites: it is there wherever that plugin stands, whatever adapter others
 * bring, and in no other instance.
 */
export const OPENER = Symbol.for("better-auth-tenant:opener");

export function openerOf({ options }: AuthContext): Opener | undefined {
  const plugins: { id: string; [OPENER]?: Opener }[] = options.plugins ?? [];
  return plugins.find((plugin) => plugin[OPENER])?.[OPENER];
}

/**
 * Code of the server's own: a job in `runInTenant`, or a call of `auth.api` with neither request nor
 * headers. What a request calls through `auth.api` is that request's.
 */
export const isTrusted = (): boolean => !notes().isVisited;
