import type { BetterAuthOptions } from "better-auth";
import { lazy } from "../framework";
import type { SessionRow } from "../scope/scope";
import type { Border, Row } from "./border";
import { invitingOf } from "./inviting";
import { mayUse } from "./sessions";

const credentials = lazy(() => import("./credentials"));

/**
 * A cached session is read from a signed cookie and never reaches the adapter, but better-auth asks
 * for its version first. The version of a tenant's session names the tenant (R10), and a session
 * that is not valid here has a version that matches none.
 */
export function isolateCachedSessions(options: BetterAuthOptions, border: Border): void {
  const { cookieCache } = options.session ?? {};
  if (!cookieCache) return;
  const { version = "1" } = cookieCache;
  const versionIn = async (session: Row, user: Row) => {
    if (!(await mayUse(border, session as SessionRow))) return crypto.randomUUID();
    const canChangeHands = session.tenantId && (border.isBarred || invitingOf(border.ctx));
    if (canChangeHands && (await (await credentials()).hasChangedHands(border, user))) {
      return crypto.randomUUID();
    }
    const own =
      typeof version === "function" ? await version(session as never, user as never) : version;
    return session.tenantId ? `${own}@${session.tenantId}` : own;
  };
  options.session = {
    ...options.session,
    cookieCache: { ...cookieCache, version: versionIn as NonNullable<typeof version> },
  };
}
