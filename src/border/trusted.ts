import type { Endpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";
import type { Opening, Row } from "./border";

/**
 * Says whether somebody was invited. May be asked twice for one user, so it changes nothing: what
 * there is to change comes with `accept`. Where users are made in any case, only an invitation
 * counts that the call itself carries.
 */
export type Opener = (
  user: Row,
  counts: "any invitation" | "a carried one",
) => Promise<Opening | undefined>;

/** On the adapter, like the border: a plugin may set it before or after ours has started. */
const OPENER = Symbol.for("better-auth-tenant:opener");

export const openerOf = (adapter: object | undefined): Opener | undefined =>
  (adapter as { [OPENER]?: Opener } | undefined)?.[OPENER];

export const setOpener = (adapter: object, opener: Opener) =>
  Object.assign(adapter, { [OPENER]: opener });

/**
 * Code of the server's own: a job in `runInTenant`, or a call of `auth.api` with neither request nor
 * headers. What a request calls through `auth.api` is that request's.
 */
export function isTrusted(): boolean {
  const endpoint = notes().endpoint as Endpoint | undefined;
  return !endpoint || (!endpoint.request && !endpoint.headers);
}
