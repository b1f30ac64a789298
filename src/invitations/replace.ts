import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import type { DBTransactionAdapter, Where } from "better-auth/types";
import { SIGN_UP_PATH } from "../constants";
import { REPLACED, removeCredentials } from "../isolation/changed-hands";
import { isolationOf, type Row } from "../isolation/isolation";
import { whyNotAdmitted } from "../policy/email-domains";
import type { Inviting } from "../policy/inviting";
import { methodOf } from "../policy/methods";
import { adminPlugin, currentEndpoint, type Endpoint } from "../request/endpoint";
import { lookUpTenant } from "../tenants/cache";
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
  return !isUsed && !(await isolationOf(ctx)?.directory?.isBarred(String(user.tenantId), userId));
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
  return /^(social:|sso$|magic-link$|email-otp$)/.test(methodOf(endpoint) ?? "");
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
  const tenant = await lookUpTenant(ctx, String(user.tenantId));
  if (whyNotAdmitted(tenant?.policy, user.email)) return false;
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
 * transaction that creates the new user, with the adapter below the isolation.
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
    await removeCredentials(ctx, raw, id);
    return { keptUserId: id };
  }
  // The user may have been verified or replaced a moment ago.
  const where = clauses({ id, tenantId, email, emailVerified: false });
  const { username, displayUsername } = ctx.tables.user?.fields ?? {};
  const update = {
    // Not by its id: an attacker could sign up with that address first.
    email: crypto.randomUUID() + REPLACED,
    updatedAt: new Date(),
    // The person may want the same.
    ...(username && { username: null }),
    ...(displayUsername && { displayUsername: null }),
  };
  if (!(await raw.updateMany({ model: "user", where, update }))) return {};
  await removeCredentials(ctx, raw, id);
  return { replacedUserId: id };
}
