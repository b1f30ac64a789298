import type { AuthContext, HookEndpointContext } from "better-auth";
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

/** On the same plugin. */
export const INVITER = Symbol.for("better-auth-tenant:inviter");

/** The tenant that somebody accepts an invitation of: the token names it. */
export type Inviter = (ctx: HookEndpointContext) => Promise<string | undefined>;

type Inviting = { id: string; [OPENER]?: Opener; [INVITER]?: Inviter };

const invitingPlugin = ({ options }: AuthContext): Inviting | undefined =>
  options.plugins?.find((plugin: Inviting) => plugin[OPENER]);

export const openerOf = (ctx: AuthContext) => invitingPlugin(ctx)?.[OPENER];

export const inviterOf = (ctx: AuthContext) => invitingPlugin(ctx)?.[INVITER];

/**
 * Code of the server's own: a job in `runInTenant`, or a call of `auth.api` with neither request nor
 * headers. What a request calls through `auth.api` is that request's.
 */
export const isTrusted = (): boolean => !notes().isVisited;
