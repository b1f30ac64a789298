import { getCurrentAdapter } from "@better-auth/core/context";
import { type AuthContext, generateId } from "better-auth";
import { currentScope } from "../current-scope";
import { isServerCall } from "../endpoint";
import { tenantError } from "../errors";
import type { Isolation } from "../isolation";
import { tenantInPrefix, withPrefix } from "../prefix";
import { currentRequest, getTenantId, runInScope, scopeOf } from "../request";
import { lookUpTenant } from "../tenants/tenants";
import { askAboutSession, capExpiry } from "./admission";
import { findNewGeneration } from "./generations";
import { noteStoredSession, removeIfLate } from "./stored-sessions";
import { requireUserInScope } from "./users";

/**
 * Wraps the functions of better-auth that create users (ids that a request sends are ignored),
 * create and change sessions, and reserve single-use marks (opens the map that `guardReservations`
 * fills).
 */
export function guardInternalAdapter(ctx: AuthContext, isolation: Isolation): void {
  const { internalAdapter } = ctx;
  ignoreSentIds(ctx);
  isolateSessions(ctx, isolation);
  const { reserveVerificationValue } = internalAdapter;
  internalAdapter.reserveVerificationValue = (mark) => {
    currentRequest().reservations ??= new Map();
    return reserveVerificationValue(mark);
  };
}

/**
 * Guards the functions with which better-auth creates and changes sessions. For a new session, the
 * user must be in the scope (R8), the tenant active, and the extensions must admit the session
 * (R14). Its token gets the tenant prefix, which tells later requests the tenant (R4). Of a change,
 * the extensions are asked about `expiresAt`.
 */
function isolateSessions(ctx: AuthContext, isolation: Isolation): void {
  const { internalAdapter } = ctx;
  const { createSession, updateSession } = internalAdapter;
  internalAdapter.createSession = async (...call) => {
    const [userId, dontRememberMe, given, overrideAll, storage] = call;
    const tenantId = await requireUserInScope(isolation, currentScope(), userId);
    if (tenantId !== null) await requireActiveTenant(ctx, tenantId);
    const generation = await findNewGeneration(isolation, userId);
    const session = buildSession(ctx, tenantId, generation, call);
    const adapter = await getCurrentAdapter(ctx.adapter);
    const changes = await askAboutSession(isolation, { tenantId, session, isNew: true, adapter });
    if (tenantId === null && !changes) {
      return createSession(userId, dontRememberMe, { ...given, generation }, overrideAll, storage);
    }
    const { token } = session;
    const note = await runInScope(scopeOf(tenantId), () => noteStoredSession(isolation, token));
    const admitted = { ...session, ...changes };
    const created = await createSession(userId, dontRememberMe, admitted, true, storage);
    await removeIfLate(isolation, { tenantId, userId, token, note });
    return created;
  };
  internalAdapter.updateSession = async (token, change) => {
    if ("expiresAt" in change) await noteStoredSession(isolation, token);
    const tenantId = getTenantId();
    return updateSession(token, { ...change, ...(await capExpiry(isolation, tenantId, change)) });
  };
}

/**
 * Returns the values of the session that better-auth would create, with its tenant. An extension
 * may then change them.
 */
function buildSession(
  { options }: AuthContext,
  tenantId: string | null,
  generation: string | null,
  [userId, dontRememberMe, given, overrideAll]: Parameters<CreateSession>,
) {
  // better-auth ignores these fields unless `overrideAll` is true.
  const { token, expiresAt, userId: _, createdAt, updatedAt, ...rest } = given ?? {};
  const seconds = dontRememberMe ? DAY : options.session?.expiresIn || WEEK;
  const random = overrideAll && typeof token === "string" && token ? token : generateId(32);
  const hasPrefix = tenantId === null || tenantInPrefix(random) === tenantId;
  return {
    expiresAt: new Date(Date.now() + seconds * 1000),
    ...(overrideAll ? given : rest),
    generation,
    userId,
    ...(tenantId !== null && { tenantId }),
    token: hasPrefix ? random : withPrefix(tenantId, random),
  };
}

type CreateSession = AuthContext["internalAdapter"]["createSession"];

async function requireActiveTenant(ctx: AuthContext, tenantId: string): Promise<void> {
  const tenant = await lookUpTenant(ctx, tenantId);
  if (!tenant) throw tenantError("TENANT_NOT_FOUND");
  if (tenant.status !== "active") throw tenantError("TENANT_SUSPENDED");
}

const DAY = 24 * 60 * 60;
const WEEK = 7 * DAY;

/**
 * Ignores the id that a request gives a new user. better-auth would use this id, and the admin
 * plugin passes it on. With numeric ids, the database would later give the same id to another user,
 * perhaps in another tenant. Database hooks and server code may choose ids.
 */
function ignoreSentIds({ internalAdapter, logger }: AuthContext): void {
  const { createUser } = internalAdapter;
  internalAdapter.createUser = (user, source) => {
    if (!("id" in user) || isServerCall()) return createUser(user, source);
    logger.warn("The id that a request gave a new user is ignored. databaseHooks may choose one.");
    const { id: _, ...rest } = user;
    return createUser(rest, source);
  };
}
