import { getCurrentAdapter } from "@better-auth/core/context";
import { type AuthContext, generateId } from "better-auth";
import { tenantError } from "../errors";
import { admitSession, capExpiry } from "../policy/admission";
import { requireAnotherAdmin } from "../policy/last-admin";
import { currentFactors } from "../policy/second-factor";
import { currentEndpoint, effectiveScope, isServerCall } from "../request/endpoint";
import { tenantInPrefix, withPrefix } from "../request/prefix";
import { lookUpTenant } from "../tenants/cache";
import type { Isolation } from "./isolation";
import { type Act, refuseEscalation } from "./roles";
import { reservations } from "./single-use";
import { requireUserInScope } from "./users";

/** Guards what better-auth does in several steps, as a whole. */
export function guardInternalAdapter(ctx: AuthContext, isolation: Isolation): void {
  const { internalAdapter } = ctx;
  ignoreSentIds(ctx);
  guardRoles(internalAdapter, isolation);
  isolateSessions(ctx, isolation);
  const { deleteUser, reserveVerificationValue } = internalAdapter;
  internalAdapter.reserveVerificationValue = (mark) => {
    if (!reservations.get()) reservations.set(new Map());
    return reserveVerificationValue(mark);
  };
  // better-auth deletes sessions and accounts first: the refusal has to come before that.
  internalAdapter.deleteUser = async (userId) => {
    await requireAnotherAdmin(isolation, { where: [{ field: "id", value: userId }] });
    return deleteUser(userId);
  };
}

/**
 * The one place where sessions are created. The user has to be in the scope (R8), the tenant active,
 * and the sign-in method one that the policy allows (R14). The token gets the tenant prefix, under
 * which everything else about the session is kept (R4).
 */
function isolateSessions(ctx: AuthContext, isolation: Isolation): void {
  const { internalAdapter } = ctx;
  const { createSession, updateSession } = internalAdapter;
  type Call = Parameters<typeof createSession>;
  const createIn = async (tenantId: string | null, ...call: Call) => {
    const [userId, dontRememberMe, given, overrideAll, storage] = call;
    const tenant =
      tenantId === null
        ? { status: "active", policy: isolation.options.platformPolicy }
        : await lookUpTenant(ctx, tenantId);
    if (!tenant) throw tenantError("TENANT_NOT_FOUND");
    if (tenant.status !== "active") throw tenantError("TENANT_SUSPENDED");
    // better-auth ignores these, unless it is told to take everything that it is given.
    const { token, expiresAt, userId: _, createdAt, updatedAt, ...rest } = given ?? {};
    const own = overrideAll && typeof token === "string" && token ? token : generateId(32);
    const seconds = dontRememberMe ? DAY : ctx.options.session?.expiresIn || WEEK;
    const session = {
      expiresAt: new Date(Date.now() + seconds * 1000),
      ...(overrideAll ? given : rest),
      ...currentFactors(tenantId),
      userId,
      ...(tenantId !== null && { tenantId }),
      token:
        tenantId === null || tenantInPrefix(own) === tenantId ? own : withPrefix(tenantId, own),
    };
    const { policy } = tenant;
    if (policy || isolation.directory) {
      const adapter = await getCurrentAdapter(ctx.adapter);
      if (tenantId) await isolation.directory?.admitSession(tenantId, session, adapter);
      if (policy) Object.assign(session, await admitSession(policy, adapter, tenantId, session));
    }
    return createSession(userId, dontRememberMe, session, true, storage);
  };
  internalAdapter.createSession = async (...call) => {
    const owner = requireUserInScope(isolation, effectiveScope(), call[0]);
    const tenantId = owner instanceof Promise ? await owner : owner;
    const isPlain = tenantId === null && !isolation.options.platformPolicy;
    return isPlain ? createSession(...call) : createIn(tenantId, ...call);
  };
  internalAdapter.updateSession = async (token, change) =>
    updateSession(token, { ...change, ...(await capExpiry(ctx, effectiveScope(), change)) });
}

const DAY = 24 * 60 * 60;
const WEEK = 7 * DAY;

/**
 * better-auth creates a user with the id that it is given, and the admin plugin passes on what a
 * request says. With numeric ids, the chosen one would be given to another user next, perhaps in
 * another tenant. Only database hooks and server code choose ids.
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

type Method = (...call: never[]) => Promise<unknown>;

/** Everything by which an admin endpoint gives a role, or hands an account to its caller. */
function guardRoles(internalAdapter: AuthContext["internalAdapter"], isolation: Isolation): void {
  const methods = internalAdapter as unknown as Record<string, Method>;
  const guard = (name: string, actOf: (...call: never[]) => Act) => {
    const run = methods[name];
    if (!run) return;
    methods[name] = (...call) =>
      currentEndpoint()?.path?.startsWith("/admin/")
        ? refuseEscalation(isolation, actOf(...call)).then(() => run(...call))
        : run(...call);
  };
  guard("createUser", (data: object) => ({ data }));
  guard("updateUser", (userId: string, data: object) => ({ userId, data }));
  guard("createAccount", ({ userId }: Act) => ({ userId }));
  for (const name of ["updatePassword", "createSession", "listSessions"]) {
    guard(name, (userId: string) => ({ userId }));
  }
}
