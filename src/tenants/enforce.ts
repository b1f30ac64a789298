import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter } from "better-auth/types";
import { type AdapterMethod, type Border, type PolicyOf, vouchForUser } from "../border/border";
import type { Act } from "../border/escalation";
import { invitingOf } from "../border/inviting";
import {
  administrators,
  type Call,
  changeOf,
  keepAdmins,
  mayTakeAdmin,
} from "../border/keep-admin";
import { requiresVerification } from "../border/late-policy";
import { lazy } from "../framework";
import type { ResolvedOptions } from "../options";
import { currentEndpoint, isServersOwn, runAsOwn, settledScope } from "../scope/endpoint";
import { notes } from "../scope/scope";
import { settle } from "../scope/settle";
import { recentlySeen, rememberedPolicy } from "./find";
import type { Reservation } from "./reservations";

/** Loaded by the first tenant that has a policy. */
const admission = lazy(() => import("../border/admission"));

/** Loaded with the first call of an admin endpoint that acts on a user. */
const escalation = lazy(() => import("../border/escalation"));

/** Loaded by the first thing that is good once. */
const reservations = lazy(() => import("./reservations"));

/** Loaded by the first member of an organization that all tenants share. */
const memberships = lazy(() => import("../border/memberships"));

/** What the policy of a tenant decides. It comes with the tenant that this process remembers. */
export function policyOf(
  ctx: AuthContext,
  options: ResolvedOptions,
  border: () => Border,
): PolicyOf {
  const roles = Object.keys(options.tenantRoles);
  const now = () => {
    const { tenantId } = settledScope() ?? {};
    return tenantId ? rememberedPolicy(ctx, tenantId) : undefined;
  };
  const runGuarded = async (
    name: string,
    call: Call,
    run: AdapterMethod,
    transaction: DBTransactionAdapter | undefined,
  ) => {
    if (!settledScope()) {
      // Through the transaction: a database may have no second connection to ask for the session.
      if (transaction) await transaction.findOne({ model: "user", where: call.where });
      else await settle(border().readSession);
    }
    const change = changeOf(name, call);
    const { tenantId } = settledScope() ?? {};
    if (change?.email !== undefined && tenantId) {
      const adapter = transaction ?? (await getCurrentAdapter(ctx.adapter));
      const policy = (await recentlySeen(ctx, tenantId, adapter))?.policy;
      if (policy) await (await admission()).admitAddress(policy, adapter, call.where, change);
    }
    const takesAdmin = roles.length > 0 && mayTakeAdmin(name, call);
    return takesAdmin ? keepAdmins(roles, border(), name, call, transaction) : run(call as never);
  };
  return {
    now,
    requiresVerification: () => requiresVerification(now()),
    refuseEarly: async (endpoint) => {
      const policy = now();
      if (policy) await (await admission()).refuseEarly(policy, endpoint);
    },
    admitRow: async (model, scope, row, adapter) => {
      if (!scope.tenantId || (model !== "user" && model !== "session")) return undefined;
      const policy = (await recentlySeen(ctx, scope.tenantId, adapter))?.policy;
      // Where everybody may come, an invitation still says in which role.
      if (!policy && (model !== "user" || !invitingOf(currentEndpoint()?.context ?? ctx)))
        return undefined;
      return (await admission()).admitRow(policy ?? {}, model, scope, row, adapter);
    },
    capExpiry: async ({ tenantId }, session, adapter) => {
      if (!tenantId || !("expiresAt" in session)) return undefined;
      const policy = (await recentlySeen(ctx, tenantId, adapter))?.policy;
      return policy?.session && (await admission()).capExpiry(policy, session);
    },
    guard: (name, call: Call, run, raw, transaction) => {
      if (isAboutMembers(border(), call))
        return guardMembers(border(), name, call, run, raw, transaction);
      if (border().confinedModel(call.model) === "verification") {
        return guardReservation(border(), name, call, run, transaction);
      }
      if (name.startsWith("find") && border().confinedModel(call.model) === "account") {
        return run(call as never).then(noteAccounts);
      }
      const isAddress = changeOf(name, call)?.email !== undefined;
      const isGuarded = isAddress || (roles.length > 0 && mayTakeAdmin(name, call));
      if (!isGuarded || border().confinedModel(call.model) !== "user") return undefined;
      return runGuarded(name, call, run, transaction);
    },
  };
}

/** Whether a call is about members of better-auth's organizations, where all tenants share those. */
function isAboutMembers({ ctx, confinedModel }: Border, { model, join }: Call): boolean {
  const isAbout = model === "organization" ? join?.member : ABOUT_MEMBERS.includes(model);
  if (!isAbout) return false;
  return !confinedModel("member") && hasPlugin(ctx, "organization");
}

const ABOUT_MEMBERS = ["member", "teamMember", "invitation"];

const hasPlugin = ({ options }: AuthContext, name: string) =>
  options.plugins?.some(({ id }) => id === name) === true;

function guardMembers(
  border: Border,
  name: string,
  call: Call,
  run: AdapterMethod,
  raw: DBTransactionAdapter,
  transaction: DBTransactionAdapter | undefined,
): Promise<unknown> | undefined {
  if (name === "create" && call.model !== "invitation") {
    const check = memberships().then(({ keepTogether }) => keepTogether(raw, call.data ?? {}));
    return check.then(() => run(call as never));
  }
  // Who is in a team is a member as well, and is looked at as one. The application's own code sees
  // shared rows as they are.
  const isShown = name.startsWith("find") && call.model !== "teamMember";
  if (!isShown || !currentEndpoint()?.path?.startsWith("/organization/")) return undefined;
  return Promise.all([memberships(), run(call as never)]).then(([{ withoutStrangers }, found]) =>
    withoutStrangers(border, call.model, found, raw, transaction),
  );
}

function noteAccounts(found: unknown): unknown {
  const rows = [found].flat().filter(Boolean) as Record<string, unknown>[];
  const note = notes();
  note.accounts = [...(note.accounts ?? []), ...rows];
  return found;
}

/** What is being marked as good once, and the look at a mark that was there before. */
function guardReservation(
  border: Border,
  name: string,
  call: Call,
  run: AdapterMethod,
  transaction: DBTransactionAdapter | undefined,
): Promise<unknown> | undefined {
  const { reserved } = notes();
  if (!reserved) return undefined;
  const reservation = call as unknown as Reservation;
  if (name === "create" && reservation.forceAllowId) {
    return reservations().then(({ reserve }) =>
      reserve(border, reserved, reservation, run, transaction),
    );
  }
  const [clause] = name === "findOne" ? call.where : [];
  return clause?.field === "id" ? reserved.get(clause.value)?.(run) : undefined;
}

/** What better-auth does in several steps is guarded as a whole. */
export function guardInternalAdapter(
  ctx: AuthContext,
  options: ResolvedOptions,
  border: Border,
): void {
  guardSteps(ctx, options, border);
  const { internalAdapter } = ctx;
  const methods = Object.entries(internalAdapter as unknown as Record<string, Method>);
  const entries = methods.map(([name, run]) => [
    name,
    // A hook of another instance may ask for a user here: by better-auth alone, in its own database.
    (...call: Parameters<Method>) => runAsOwn(ctx, () => run(...call)),
  ]);
  Object.assign(internalAdapter, Object.fromEntries(entries));
}

type Method = (...call: never[]) => Promise<unknown>;

function guardSteps(
  { internalAdapter, logger, options: { secondaryStorage, session } }: AuthContext,
  options: ResolvedOptions,
  border: Border,
): void {
  takeNoIds(internalAdapter, logger);
  guardRoles(internalAdapter, border);
  const { deleteUser, reserveVerificationValue } = internalAdapter;
  internalAdapter.reserveVerificationValue = (mark) => {
    notes().reserved ??= new Map();
    return reserveVerificationValue(mark);
  };
  if (secondaryStorage || session?.cookieCache?.enabled) keepAsStored(internalAdapter, border);
  // better-auth deletes sessions and accounts first: the last administrator keeps those, too.
  const roles = Object.keys(options.tenantRoles);
  if (!roles.length) return;
  internalAdapter.deleteUser = async (userId) =>
    (await administrators()).keepAdminAround(border, roles, userId, () => deleteUser(userId));
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
    if (!("id" in row) || isServersOwn()) return row;
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

/** Everything by which an admin endpoint gives a role, or hands an account to its caller. */
function guardRoles(internalAdapter: AuthContext["internalAdapter"], border: Border): void {
  const check = async (act: Act) => {
    if (!currentEndpoint()?.path?.startsWith("/admin/")) return;
    await (await escalation()).refuseEscalation(border, act);
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
 * The storage has looked at a session after all hooks. What better-auth goes on with, caches in a
 * cookie or stores after the transaction has not been looked at, and has to be the same.
 */
function keepAsStored(internalAdapter: AuthContext["internalAdapter"], border: Border): void {
  const { createSession, updateSession } = internalAdapter;
  internalAdapter.createSession = async (...call) => {
    const session = await createSession(...call);
    if (!session) return session;
    const scope = await settle(border.readSession);
    const adapter = await getCurrentAdapter(border.ctx.adapter);
    const tenantId = await vouchForUser(border, adapter, scope, session.userId);
    const cap = await border.policy.capExpiry({ ...scope, tenantId }, session, adapter);
    const { sessionTokens } = notes();
    // A hook may have given it another token, under which a plugin (a device's) is about to store it.
    if (!sessionTokens.has(session.token)) {
      sessionTokens.set(session.token, { userId: session.userId, tenantId });
    }
    return Object.assign(session, { tenantId }, cap);
  };
  internalAdapter.updateSession = async (token, change) => {
    const session = await updateSession(token, change);
    const { expiresAt, tenantId } = notes().sessionTokens.get(token) ?? {};
    if (!session || !expiresAt) return session;
    const end = new Date(expiresAt);
    return Object.assign(session, { tenantId }, session.expiresAt > end && { expiresAt: end });
  };
}
