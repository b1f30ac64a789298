import { getCurrentAdapter } from "@better-auth/core/context";
import { type AuthContext, generateId } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { tenantError } from "../errors";
import {
  type AdapterMethod,
  type Isolation,
  type PolicyEnforcement,
  requireUserInScope,
} from "../isolation/isolation";
import type { Act } from "../isolation/roles";
import { refuseEscalation } from "../isolation/roles";
import { type Reservation, reserveInScope } from "../isolation/single-use";
import type { ResolvedOptions } from "../options";
import { currentEndpoint, effectiveScope, isServerCall } from "../request/endpoint";
import { tenantInPrefix, withPrefix } from "../request/prefix";
import { notes } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import { admitAddress, admitRow, capExpiry, refuseEarly } from "./admission";
import { invitingOf } from "./inviting";
import { type Call, changeOf, mayRemoveAdmin, requireAnotherAdmin } from "./last-admin";

/** What the policy of a tenant decides. It comes with the tenant that this process remembers. */
export function policyOf(
  ctx: AuthContext,
  options: ResolvedOptions,
  isolation: () => Isolation,
): PolicyEnforcement {
  const roles = Object.keys(options.tenantRoles);
  const runGuarded = async (
    name: string,
    call: Call,
    run: AdapterMethod,
    transaction: DBTransactionAdapter | undefined,
  ) => {
    const change = changeOf(name, call);
    const { tenantId } = effectiveScope();
    if (change?.email !== undefined && tenantId) {
      const adapter = transaction ?? (await getCurrentAdapter(ctx.adapter));
      const policy = (await lookUpTenant(ctx, tenantId, adapter))?.policy;
      if (policy) await admitAddress(policy, adapter, call.where, change);
    }
    if (roles.length && mayRemoveAdmin(name, call)) {
      const { where } = call;
      await requireAnotherAdmin(isolation(), roles, { where, update: change }, transaction);
    }
    return run(call as never);
  };
  return {
    refuseEarly: async (endpoint) => {
      const { tenantId } = effectiveScope();
      const policy = tenantId && (await lookUpTenant(ctx, tenantId))?.policy;
      if (policy) await refuseEarly(policy, endpoint);
    },
    admitRow: async (model, scope, row, adapter) => {
      if (!scope.tenantId || (model !== "user" && model !== "session")) return undefined;
      const tenant = await lookUpTenant(ctx, scope.tenantId, adapter);
      // Deleted in the meantime, or a wrong id in `runInTenant`.
      if (!tenant) throw tenantError("TENANT_NOT_FOUND");
      const { policy } = tenant;
      // Where everybody may come, an invitation still says in which role.
      if (!policy && (model !== "user" || !invitingOf(currentEndpoint()?.context ?? ctx)))
        return undefined;
      return admitRow(policy ?? {}, model, scope, row, adapter);
    },
    capExpiry: async ({ tenantId }, session, adapter) => {
      if (!tenantId || !("expiresAt" in session)) return undefined;
      const policy = (await lookUpTenant(ctx, tenantId, adapter))?.policy;
      return policy?.session && capExpiry(policy, session);
    },
    guard: (name, call: Call, run, _raw, transaction) => {
      if (isolation().isolatedModel(call.model) === "verification") {
        return guardReservation(isolation(), name, call, run);
      }
      if (name.startsWith("find") && isolation().isolatedModel(call.model) === "account") {
        return run(call as never).then(noteAccounts);
      }
      const isAddress = changeOf(name, call)?.email !== undefined;
      const isGuarded = isAddress || (roles.length > 0 && mayRemoveAdmin(name, call));
      if (!isGuarded || isolation().isolatedModel(call.model) !== "user") return undefined;
      return runGuarded(name, call, run, transaction);
    },
  };
}

function noteAccounts(found: unknown): unknown {
  const rows = [found].flat().filter(Boolean) as Record<string, unknown>[];
  const note = notes();
  note.accounts = [...(note.accounts ?? []), ...rows];
  return found;
}

/** Marks a value as used, and finds a mark that exists already. */
function guardReservation(
  isolation: Isolation,
  name: string,
  call: Call,
  run: AdapterMethod,
): Promise<unknown> | undefined {
  const { reserved } = notes();
  if (!reserved) return undefined;
  const reservation = call as unknown as Reservation;
  if (name === "create" && reservation.forceAllowId) {
    return reserveInScope(isolation, reserved, reservation, run);
  }
  const [clause] = name === "findOne" ? call.where : [];
  return clause?.field === "id" ? reserved.get(clause.value)?.(run) : undefined;
}

/** What better-auth does in several steps is guarded as a whole. */
export function guardInternalAdapter(
  ctx: AuthContext,
  options: ResolvedOptions,
  isolation: Isolation,
): void {
  const { internalAdapter, logger } = ctx;
  takeNoIds(internalAdapter, logger);
  guardRoles(internalAdapter, isolation);
  const { deleteUser, reserveVerificationValue } = internalAdapter;
  internalAdapter.reserveVerificationValue = (mark) => {
    notes().reserved ??= new Map();
    return reserveVerificationValue(mark);
  };
  isolateSessions(ctx, isolation);
  // better-auth deletes sessions and accounts first: the refusal has to come before that.
  const roles = Object.keys(options.tenantRoles);
  if (!roles.length) return;
  internalAdapter.deleteUser = async (userId) => {
    await requireAnotherAdmin(isolation, roles, { where: [{ field: "id", value: userId }] });
    return deleteUser(userId);
  };
}

/**
 * better-auth makes a user or an account with whatever id it is given, so that hooks can choose
 * one, and the admin plugin gives it what a request says. A number that was chosen is the one that
 * somebody gets next, perhaps in another tenant: so only hooks and the server's own code choose.
 */
function takeNoIds(
  internalAdapter: AuthContext["internalAdapter"],
  logger: AuthContext["logger"],
): void {
  const { createUser, createOAuthUser, createAccount, linkAccount } = internalAdapter;
  const withoutId = <Row extends object>(row: Row): Row => {
    if (!("id" in row) || isServerCall()) return row;
    logger.warn(
      "The id of a new row that a request has given is ignored. databaseHooks may choose one.",
    );
    const { id: _, ...rest } = row;
    return rest as Row;
  };
  Object.assign(internalAdapter, {
    createUser: (user, source) => createUser(withoutId(user), source),
    createOAuthUser: (user, account) => createOAuthUser(withoutId(user), withoutId(account)),
    createAccount: (account) => createAccount(withoutId(account)),
    linkAccount: (account) => linkAccount(withoutId(account)),
  } satisfies Partial<typeof internalAdapter>);
}

type Method = (...call: never[]) => Promise<unknown>;

/** Everything by which an admin endpoint gives a role, or hands an account to its caller. */
function guardRoles(internalAdapter: AuthContext["internalAdapter"], isolation: Isolation): void {
  const check = async (act: Act) => {
    if (!currentEndpoint()?.path?.startsWith("/admin/")) return;
    await refuseEscalation(isolation, act);
  };
  const methods = internalAdapter as unknown as Record<string, Method>;
  const guard = (name: string, actOf: (...call: never[]) => Act) => {
    const run = methods[name];
    if (!run) return;
    methods[name] = async (...call) => {
      await check(actOf(...call));
      return run(...call);
    };
  };
  guard("createUser", (data: object) => ({ data }));
  guard("updateUser", (userId: string, data: object) => ({ userId, data }));
  guard("createAccount", ({ userId }: Act) => ({ userId }));
  for (const name of ["updatePassword", "createSession", "listSessions"]) {
    guard(name, (userId: string) => ({ userId }));
  }
}

/**
 * The one place where sessions are created. The user has to be in the scope (R8), the tenant active,
 * and the sign-in method one that the policy allows (R14). The token gets the tenant's prefix, under
 * which everything else about the session is kept (R4).
 */
function isolateSessions(ctx: AuthContext, isolation: Isolation): void {
  const { internalAdapter } = ctx;
  const { createSession, updateSession } = internalAdapter;
  internalAdapter.createSession = async (userId, dontRememberMe, given, overrideAll, storage) => {
    const adapter = await getCurrentAdapter(ctx.adapter);
    const scope = effectiveScope();
    const tenantId = await requireUserInScope(isolation, adapter, scope, userId);
    if (tenantId === null)
      return createSession(userId, dontRememberMe, given, overrideAll, storage);
    const refusal = await refusalAt(ctx, tenantId);
    if (refusal) throw refusal;
    // better-auth ignores these, unless it is told to take all of what it is given.
    const { token, expiresAt, userId: _, createdAt, updatedAt, ...rest } = given ?? {};
    const own = overrideAll && typeof token === "string" && token ? token : generateId(32);
    const seconds = dontRememberMe ? DAY : ctx.options.session?.expiresIn || WEEK;
    const session = {
      expiresAt: new Date(Date.now() + seconds * 1000),
      ...(overrideAll ? given : rest),
      userId,
      tenantId,
      token: tenantInPrefix(own) === tenantId ? own : withPrefix(tenantId, own),
    };
    await isolation.policy.admitRow("session", { ...scope, tenantId }, session, adapter);
    return createSession(userId, dontRememberMe, session, true, storage);
  };
  internalAdapter.updateSession = async (token, change) => {
    const cap = await isolation.policy.capExpiry(effectiveScope(), change);
    return updateSession(token, { ...change, ...cap });
  };
}

const DAY = 24 * 60 * 60;
const WEEK = 7 * DAY;

/** Why a tenant has no new sessions: it is gone, or suspended. */
async function refusalAt(ctx: AuthContext, tenantId: string) {
  const tenant = await lookUpTenant(ctx, tenantId);
  if (!tenant) return tenantError("TENANT_NOT_FOUND");
  return tenant.status === "active" ? undefined : tenantError("TENANT_SUSPENDED");
}
