import type { AuthContext } from "better-auth";
import type { ReturnedState } from "../scope/scope";

/** A call that came to an endpoint of ours and goes on at better-auth's, inside a tenant. */
export interface StandIn {
  /** The path that the request came to; a call of `auth.api` goes through both endpoints. */
  path?: string;
  /** The tenant of the call around this one, which need not be named again. */
  tenantId?: string | null;
  /** For a provider's callback: what it came back with, and by which redirect URI. */
  callback?: { state: ReturnedState | undefined; hasState: boolean; tenant: string | undefined };
}

const STAND_IN = Symbol.for("better-auth-tenant:stands-in");

type Marked = { [STAND_IN]?: StandIn };

/**
 * The mark is on the context: better-auth makes one for each request, hands it to `onRequest`, and
 * copies it for the endpoint. Nobody outside can write it, and no plugin in between can lose it.
 *
 * Guarded by "what onRequest writes on its context reaches the endpoint of that request alone".
 */
export const standInOf = ({ context }: { context: object }): StandIn | undefined =>
  (context as Marked)[STAND_IN];

export const markStandIn = (context: object, standIn: StandIn): void =>
  void Object.assign(context, { [STAND_IN]: standIn });

/** The path that a request came to before it went on at another endpoint. */
export const cameTo = ({ context }: { context: object }): string | undefined =>
  standInOf({ context })?.path;

/** The context for a call of `auth.api` that goes on at another endpoint. */
export const asStandIn = (context: AuthContext, standIn: StandIn): AuthContext =>
  Object.assign({ ...context }, { [STAND_IN]: standIn, session: null });
