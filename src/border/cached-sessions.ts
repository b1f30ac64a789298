import type { BetterAuthOptions } from "better-auth";
import { givenOf, lazy, oncePerObject, readThrough, viewOf } from "../framework";
import { notes, type SessionRow } from "../scope/scope";
import type { Border, Row } from "./border";
import { invitingOf } from "./inviting";
import { mayUse } from "./sessions";

const credentials = lazy(() => import("./credentials"));

type SessionOptions = NonNullable<BetterAuthOptions["session"]>;
type CookieCache = NonNullable<SessionOptions["cookieCache"]>;

/**
 * A cached session is read from a signed cookie and never reaches the border, but better-auth
 * asks for its version first. The version of a tenant's session has the tenant in it (R10), and a
 * session that is not good here has one that nobody expects.
 */
export function labelCachedSessions(session: SessionOptions, border: Border): SessionOptions {
  const labelled = oncePerObject((cookieCache: CookieCache) => {
    const version = viewOf(cookieCache, labelledVersion(cookieCache, border));
    return readThrough(cookieCache, { version: () => version });
  });
  return readThrough(session, {
    cookieCache: () => {
      const cookieCache = givenOf(session.cookieCache);
      return cookieCache && labelled(cookieCache);
    },
  });
}

const labelledVersion =
  (cookieCache: CookieCache, border: Border) => async (session: Row, user: Row) => {
    const isHere = notes().reading || (await mayUse(border, session as SessionRow));
    // Something new each time: what is nobody's version must never match what was written.
    if (!isHere) return crypto.randomUUID();
    const canChangeHands = session.tenantId && (border.isBarred || invitingOf(border.ctx));
    if (canChangeHands && (await (await credentials()).hasChangedHands(border, user))) {
      return crypto.randomUUID();
    }
    const version = versionOf(cookieCache);
    const own =
      typeof version === "function" ? await version(session as never, user as never) : version;
    if (!session.tenantId) return own;
    const since = await border.openSince(session as SessionRow);
    return since === undefined ? crypto.randomUUID() : `${own}@${session.tenantId}:${since}`;
  };

/** The application's own, also in a copy of what has a label. */
function versionOf({ version = "1" }: CookieCache): NonNullable<CookieCache["version"]> {
  const given = typeof version === "function" ? givenOf<object>(version) : version;
  return given === version ? version : versionOf(given as CookieCache);
}
