import type { User } from "better-auth";
import { tenantError } from "../errors";
import {
  adminPlugin,
  currentEndpoint,
  type Endpoint,
  isOutermost,
  settledScope,
} from "../scope/endpoint";
import { notes, type SessionRow } from "../scope/scope";
import { type Border, belowBorder } from "./border";
import { isOrWouldBeOperator, mayManageUsers } from "./operators";
import { canDoAsMuch } from "./roles";

/*
 * The admin plugin has one permission for giving any role, and one for acting on any user. A caller
 * could give themselves a greater role, or take over the account of a user who has one. Checked where
 * better-auth acts, after its own checks and with what it is about to write. Banning or removing a
 * user, or ending sessions, gives the caller nothing.
 */

/** A list of sessions has their tokens, which are good as bearer tokens. */
const GUARDED = new Set(
  "set-role create-user update-user set-user-password impersonate-user list-user-sessions"
    .split(" ")
    .map((name) => `/admin/${name}`),
);

type Person = User & { tenantId?: string | null; role?: string | null };

/** What is about to happen: to a user who is there or to a new one, perhaps with a role. */
export interface Act {
  userId?: string | undefined;
  data?: object | undefined;
}

/** Refuses an act of an admin endpoint by which the caller would get more rights than they have. */
export async function refuseEscalation(border: Border, { userId, data }: Act): Promise<void> {
  const endpoint = currentEndpoint();
  const session = endpoint && callerIn(endpoint);
  if (!endpoint || !session) return;
  const { tenantId, reach } = settledScope();
  // Only operators get here.
  if (reach !== "own") return;
  const find = (id: string): Promise<Person | null> => border.ctx.internalAdapter.findUserById(id);
  const target = userId === undefined ? null : await find(userId);
  // The border keeps an id and a tenant that the caller has sent out of the row.
  const kept = { id: target?.id ?? "", tenantId };
  const changed = data && ({ ...target, ...data, ...kept } as Person);
  const isRefused =
    tenantId === null
      ? await operatorGuard(border, endpoint, session)
      : await rankGuard(border, await find(String(session.userId)));
  if (target && (await isRefused(target))) {
    throw tenantError("ROLE_NOT_ALLOWED", "This user has a role that you may not give");
  }
  if (changed && (await isRefused(changed))) throw tenantError("ROLE_NOT_ALLOWED");
}

/** The session that an endpoint acts for. Hooks around it, and the server's own calls, are trusted. */
function callerIn(endpoint: Endpoint): SessionRow | undefined {
  if (!GUARDED.has(endpoint.path ?? "") || !adminPlugin(endpoint.context)) return undefined;
  if (isOutermost(endpoint) && !notes().isOpen) return undefined;
  return endpoint.context.session?.session;
}

type Guard = (user: Person) => boolean | Promise<boolean>;

/** In a tenant: a user who can do more than the caller. */
async function rankGuard({ ctx, options }: Border, caller: Person | null): Promise<Guard> {
  return (user) => !caller || !canDoAsMuch(ctx, options, caller, user);
}

/**
 * On the platform: an operator, unless the caller is one. An operator's password would be the way
 * into every tenant.
 */
async function operatorGuard(
  border: Border,
  endpoint: Endpoint,
  session: SessionRow,
): Promise<Guard> {
  const adapter = await belowBorder(border);
  if (await mayManageUsers(border, endpoint, session, undefined, adapter)) return () => false;
  return (user) => isOrWouldBeOperator(border, endpoint, user);
}
