import { getCurrentAdapter, queueAfterTransactionHook } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { belowBorder, borderOf, type Row } from "../border/border";
import type { Inviting } from "../border/inviting";
import { refusalOf } from "../border/late-policy";
import { wayOf } from "../border/ways";
import { SIGN_UP_PATH } from "../constants";
import { boundedMap } from "../framework";
import { adminPlugin, currentEndpoint, type Endpoint } from "../scope/endpoint";
import { keeperOf } from "../scope/instance";
import { recentlySeen } from "../tenants/find";
import { carriedInvitation } from "./opener";
import type { StoredInvitation } from "./schema";
import { findOpen } from "./store";

/*
 * Users who have never verified their address. Anyone can sign up with an address that was invited,
 * so such a user must not block the invitation: the person who proves the address gets a new user,
 * and the old one loses the address and every way to sign in. A new user and not the old one,
 * because what an attacker may hold (sessions in cookies, one-time tokens, keys, a sign-in that is
 * under way) belongs to the id of the old one, and not all of it can be found and deleted.
 */

const clauses = (fields: Record<string, string | boolean>): Where[] =>
  Object.entries(fields).map(([field, value]) => ({ field, value }));

/**
 * Whether an invitation can take the place of a user. A role or a ban was given by a manager, who
 * has decided about this very user.
 */
export async function isReplaceable(ctx: AuthContext, user: Row): Promise<boolean> {
  const { id, emailVerified, banned, role } = user;
  if (emailVerified !== false || banned || !isDefaultRole(ctx, role)) return false;
  const userId = String(id);
  if (!(await isFromDirectory(ctx, userId))) return true;
  // With an account, someone has signed in already. They need no invitation.
  const isUsed = (await ctx.internalAdapter.findAccounts(userId)).length > 0;
  return !isUsed && !(await borderOf(ctx)?.isBarred?.(String(user.tenantId), userId));
}

function isDefaultRole(ctx: AuthContext, role: unknown): boolean {
  const { defaultRole = "user" } = (adminPlugin(ctx)?.options ?? {}) as { defaultRole?: string };
  return !role || role === defaultRole;
}

/** Whether a directory of the tenant knows the user by its id. */
async function isFromDirectory({ adapter, tables }: AuthContext, userId: string) {
  if (!tables.scimUser) return false;
  const where = clauses({ userId });
  return (await (await getCurrentAdapter(adapter)).count({ model: "scimUser", where })) > 0;
}

/** Whether an endpoint may create the user who has an address, or signs in as that one. */
function createsUser(endpoint: Endpoint): boolean {
  if (endpoint.path === SIGN_UP_PATH) return true;
  if (endpoint.path === "/email-otp/verify-email") return false;
  return /^(social:|sso$|magic-link$|email-otp$)/.test(wayOf(endpoint) ?? "");
}

/** Those that better-auth gets to once a mail has proven the address, by the plugin that they are of. */
const PROVEN_BY_MAIL: Readonly<Record<string, string>> = {
  "/magic-link/verify": "magic-link",
  "/sign-in/email-otp": "email-otp",
};

/**
 * Whether a user is about to be replaced: by a token that was mailed, or at an endpoint that the
 * owner of the mailbox has got to, if an invitation is open for the address.
 */
export const replacesUser: Inviting["replaces"] = async (ctx, user) => {
  const endpoint = currentEndpoint();
  if (!endpoint || !createsUser(endpoint)) return false;
  const { path = "" } = endpoint;
  const email = String(user.email);
  const carried = await carriedInvitation(ctx).catch(() => undefined);
  const isProven =
    (carried?.mailed && carried.email === email) ||
    (Object.hasOwn(PROVEN_BY_MAIL, path) && (await canJoinByMail(ctx, path, user)));
  return isProven && isReplaceable(ctx, user);
};

/** Whether better-auth would create a user for the address, with an open invitation. */
async function canJoinByMail(ctx: AuthContext, path: string, user: Row): Promise<boolean> {
  const plugin = ctx.options.plugins?.find(({ id }) => id === PROVEN_BY_MAIL[path]);
  if (plugin?.options?.disableSignUp) return false;
  const tenant = await recentlySeen(ctx, String(user.tenantId));
  if (refusalOf(tenant?.policy, user.email)) return false;
  return (await findOpen(ctx, String(user.email))) !== undefined;
}

/** What became of the user whose address an invitation needs. */
export interface Room {
  /** The user that is left without an address. */
  replacedUserId?: string;
  /** The user of a directory, which knows it by this id: it is kept, and becomes the invited one. */
  keptUserId?: string;
}

/**
 * Makes the address of an invitation free, if a user has it who can be replaced. Runs in the
 * transaction that creates the new user, with the adapter below the border.
 */
export async function makeRoom(
  ctx: AuthContext,
  raw: DBTransactionAdapter,
  { tenantId, email }: StoredInvitation,
): Promise<Room> {
  const user = await raw.findOne<Row>({ model: "user", where: clauses({ email, tenantId }) });
  // MySQL ignores accents when it compares, and that address is not this one.
  if (!user || user.email !== email || !(await isReplaceable(ctx, user))) return {};
  const id = String(user.id);
  if (await isFromDirectory(ctx, id)) {
    await removeCredentials(ctx, id);
    return { keptUserId: id };
  }
  // The user may have been verified or replaced a moment ago.
  const where = clauses({ id, tenantId, email, emailVerified: false });
  const { phoneNumber } = ctx.tables.user?.fields ?? {};
  const update = {
    // Not by its id: an attacker could sign up with that address first.
    email: crypto.randomUUID() + REPLACED,
    updatedAt: new Date(),
    // One can sign in with it.
    ...(phoneNumber && { phoneNumber: null, phoneNumberVerified: false }),
  };
  if (!(await raw.updateMany({ model: "user", where, update }))) return {};
  await removeCredentials(ctx, id);
  await queueAfterTransactionHook(async () => void notReplaced(ctx).delete(id));
  return { replacedUserId: id };
}

/** An address that no mail can reach. */
const REPLACED = "@replaced.invalid";

/** Columns of better-auth's plugins with the id of a user who can sign in by what is in the row. */
const CREDENTIALS = [
  ["passkey", "userId"],
  ["twoFactor", "userId"],
  ["walletAddress", "userId"],
  ["deviceCode", "userId"],
  // Links that reset a password or delete an account.
  ["verification", "value"],
] as const;

/** Removes every way to sign in as a user. */
async function removeCredentials(ctx: AuthContext, userId: string): Promise<void> {
  const { internalAdapter, tables } = ctx;
  await internalAdapter.deleteAccounts(userId);
  await internalAdapter.deleteUserSessions(userId);
  const adapter = await getCurrentAdapter(ctx.adapter);
  for (const [model, field] of CREDENTIALS) {
    if (!tables[model]?.fields[field]) continue;
    await adapter.deleteMany({ model, where: [{ field, value: userId }] });
  }
  // Their plugin reads them outside the transaction, for which a database may have no connection.
  await queueAfterTransactionHook(async () => {
    const { deleteKeysOf } = await import("../enterprise/scim-keys");
    await deleteKeysOf(ctx, userId);
  });
}

const KEPT_MS = 10_000;
const note = boundedMap<number>(10_000);
const notReplacedIn = new WeakMap<object, Map<string, number>>();

/** Users that were not replaced, and until when this process need not ask again. */
function notReplaced(ctx: AuthContext): Map<string, number> {
  const instance = keeperOf(ctx);
  const known = notReplacedIn.get(instance) ?? new Map<string, number>();
  notReplacedIn.set(instance, known);
  return known;
}

/**
 * Whether the user of a session in a cookie was replaced since. The cookie is read without asking
 * the database, which is asked here at most every ten seconds, and only about unverified users.
 */
export async function isReplaced(ctx: AuthContext, { id, emailVerified }: Row): Promise<boolean> {
  const border = borderOf(ctx);
  if (!border || emailVerified !== false) return false;
  const known = notReplaced(ctx);
  const userId = String(id);
  const now = Date.now();
  if ((known.get(userId) ?? 0) > now) return false;
  const where = clauses({ id: userId });
  const user = await (await belowBorder(border)).findOne<Row>({ model: "user", where });
  if (String(user?.email).endsWith(REPLACED)) return true;
  note(known, userId, now + KEPT_MS);
  return false;
}
