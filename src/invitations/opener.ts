import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { addOAuthServerContext, getOAuthState } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import * as z from "zod";
import { SIGN_UP_PATH } from "../constants";
import { tenantError } from "../errors";
import { type BeforeHook, clauses, silentHook, textOf } from "../framework";
import { REPLACED, removeCredentials } from "../isolation/changed-hands";
import { isolationOf, type Row } from "../isolation/isolation";
import { adminOptions } from "../isolation/roles";
import { whyNotAdmitted } from "../policy/email-domains";
import { methodOf } from "../policy/methods";
import {
  currentEndpoint,
  type Endpoint,
  effectiveScope,
  requestEndpoint,
} from "../request/endpoint";
import { getTenantId } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import { emit } from "../tenants/events";
import { type Inviting, invited } from "../tenants/plugins";
import { INVITATION_HEADER } from "./error-codes";
import { invitationError } from "./errors";
import { openLink } from "./link";
import type { StoredInvitation } from "./options";
import { findByLink, findOpen, markAccepted, notFound, toInvitation } from "./store";

/**
 * R13: finds the invitation of a user who is about to be created: by the token that the request
 * carries, or by a verified address. An address that is not verified is a claim, and admits no user.
 */
export const findOpening: Inviting["openingFor"] = async (ctx, user, counts) => {
  const email = String(user.email).toLowerCase();
  const carried = await carriedInvitation(ctx);
  if (carried) assertSameAddress(carried, email);
  const isKnown = counts === "any invitation" && user.emailVerified === true;
  const row = carried ?? (isKnown ? await findOpen(ctx, email) : undefined);
  if (!row) return undefined;
  const isProven = carried?.mailed || isKnown;
  let room: Room = {};
  return {
    data: writtenBy(row, carried?.mailed),
    makeRoom: async (raw) => {
      if (isProven) room = await makeRoom(ctx, raw, row);
      const { keptUserId: id } = room;
      // A user that is kept is written later, and not every database can roll that back.
      if (id) await accept(ctx, raw, row, { id }, room);
      return id;
    },
    accept: async (created, raw) => {
      if (!room.keptUserId) await accept(ctx, raw, row, created, room);
    },
  };
};

/**
 * What an invitation writes into its user. A token that the plugin mailed proves the address. A link
 * that a manager sent proves nothing.
 */
const writtenBy = ({ role }: StoredInvitation, isMailedToken = false): Row => ({
  ...(role && { role }),
  ...(isMailedToken && { emailVerified: true }),
});

function assertSameAddress({ email }: StoredInvitation, given: unknown): void {
  if (textOf(given).toLowerCase() === email) return;
  throw invitationError("INVITATION_EMAIL_MISMATCH");
}

/** Runs in the transaction that creates the user, if there is one. */
async function accept(
  ctx: AuthContext,
  raw: DBTransactionAdapter,
  row: StoredInvitation,
  { id }: Row,
  { keptUserId, replacedUserId }: Room,
): Promise<void> {
  const userId = String(id);
  const accepted = await markAccepted(raw, row, userId);
  if (!accepted) {
    // Not every database rolls the user back by itself.
    if (!keptUserId) await raw.delete({ model: "user", where: clauses({ id: userId }) });
    throw notFound();
  }
  const { tenantId } = row;
  await emit(ctx, { userId, tenantId }, tenantId, {
    type: "invitation:accepted",
    invitation: toInvitation(accepted),
    ...(replacedUserId && { replacedUserId }),
  });
}

/** The invitation whose token the request carries, or the flow that ends with it. */
async function carriedInvitation(ctx: AuthContext): Promise<StoredInvitation | undefined> {
  const endpoint = requestEndpoint.get();
  const token = endpoint && tokenIn(endpoint);
  if (endpoint && token) return invitationOf(endpoint.context, token);
  const { success, data } = inState.safeParse((await getOAuthState())?.serverContext?.[STATE_KEY]);
  return success ? findByLink(ctx, data) : undefined;
}

async function invitationOf(ctx: AuthContext, token: string): Promise<StoredInvitation> {
  const link = await openLink(ctx, token);
  const tenantId = getTenantId();
  if (!link || tenantId === null || link.tenantId !== tenantId) throw notFound();
  return findByLink(ctx, link);
}

const tokenIn = ({ headers, request }: Pick<Endpoint, "headers" | "request">) =>
  new Headers(headers ?? request?.headers).get(INVITATION_HEADER);

/** In the part of an OAuth state that no client can write. */
const STATE_KEY = "tenantInvitation";
const inState = z.object({ id: z.string(), tokenHash: z.string() });

/**
 * Checks a token in the header before anything else, so that the page can say what is wrong with it,
 * and keeps it for a flow that ends in another request.
 */
export const carryToken: BeforeHook = {
  matcher: (ctx) =>
    !ctx.path?.startsWith("/tenant/invitation/") && Boolean(tokenIn(ctx as Endpoint)),

  handler: silentHook(async (ctx) => {
    // The header does not resolve the tenant: the new user would be one of the platform.
    if (!effectiveScope().tenantId) throw tenantError("TENANT_ID_REQUIRED");
    const invitation = await invitationOf(ctx.context, tokenIn(ctx as Endpoint) ?? "");
    const { id, tokenHash, email } = invitation;
    await addOAuthServerContext({ [STATE_KEY]: { id, tokenHash } });
    if (ctx.path !== SIGN_UP_PATH) return;
    // Here, because better-auth hides errors of user creation if it hides that an address is taken.
    assertSameAddress(invitation, ctx.body?.email);
    invited.set({ email, data: writtenBy(invitation, invitation.mailed) });
  }),
};

/*
 * Users who have never verified their address. Anyone can sign up with an address that was invited,
 * so such a user must not block the invitation: the person who proves the address gets a new user,
 * and the old one loses the address and every sign-in method. A new user and not the old one, because
 * what an attacker may hold (sessions in cookies, one-time tokens, keys, a sign-in that is under way)
 * belongs to the id of the old one, and not all of it can be found and deleted.
 */

/**
 * Who an invitation makes of a user: a new one takes the place of this one, or this one is kept,
 * because a directory of the tenant knows it by its id. Undefined if neither: a manager who gave a
 * role or a ban has decided about this very user.
 */
export async function replacementOf(ctx: AuthContext, user: Row) {
  const { emailVerified, banned, role } = user;
  const { defaultRole = "user" } = adminOptions(ctx);
  if (emailVerified !== false || banned || (role && role !== defaultRole)) return undefined;
  const userId = String(user.id);
  if (!(await isFromDirectory(ctx, userId))) return "new";
  // A user with an account has signed in already, and needs no invitation.
  if ((await ctx.internalAdapter.findAccounts(userId)).length > 0) return undefined;
  const isBarred = await isolationOf(ctx)?.directory?.isBarred(String(user.tenantId), userId);
  return isBarred ? undefined : "kept";
}

async function isFromDirectory({ adapter, tables }: AuthContext, userId: string) {
  if (!tables.scimUser) return false;
  const where = clauses({ userId });
  return (await (await getCurrentAdapter(adapter)).count({ model: "scimUser", where })) > 0;
}

/** Whether an endpoint creates a user for an address, or signs in the one who has it. */
function createsUser(endpoint: Endpoint): boolean {
  if (endpoint.path === SIGN_UP_PATH) return true;
  if (endpoint.path === "/email-otp/verify-email") return false;
  return /^(social:|sso$|magic-link$|email-otp$)/.test(methodOf(endpoint) ?? "");
}

/** Endpoints that only the owner of the mailbox gets through, and their plugins. */
const PROVEN_BY_MAIL: Readonly<Record<string, string>> = {
  "/magic-link/verify": "magic-link",
  "/sign-in/email-otp": "email-otp",
};

/**
 * Whether the request is about to replace a user: it carries a mailed token, or has proven the address
 * by mail, and an invitation is open for it.
 */
export const replacesUser: Inviting["replaces"] = async (ctx, user) => {
  const endpoint = currentEndpoint();
  if (!endpoint || !createsUser(endpoint)) return false;
  const carried = await carriedInvitation(ctx).catch(() => undefined);
  const isProven =
    (carried?.mailed && carried.email === user.email) ||
    (await canJoinByMail(ctx, endpoint.path ?? "", user));
  return isProven && (await replacementOf(ctx, user)) !== undefined;
};

/** Whether the mail proves the address, and better-auth would create an invited user for it. */
async function canJoinByMail(ctx: AuthContext, path: string, user: Row): Promise<boolean> {
  if (!Object.hasOwn(PROVEN_BY_MAIL, path)) return false;
  const plugin = ctx.options.plugins?.find(({ id }) => id === PROVEN_BY_MAIL[path]);
  if (plugin?.options?.disableSignUp) return false;
  const tenant = await lookUpTenant(ctx, String(user.tenantId));
  if (whyNotAdmitted(tenant?.policy, user.email)) return false;
  return (await findOpen(ctx, String(user.email))) !== undefined;
}

/** What became of the user whose address an invitation needs. */
interface Room {
  /** The user who lost the address. */
  replacedUserId?: string;
  /** The user of a directory, who becomes the invited one. */
  keptUserId?: string;
}

/**
 * Frees the address of an invitation, if a user has it who can be replaced. Runs in the transaction
 * that creates the new user, with the adapter below the isolation.
 */
async function makeRoom(
  ctx: AuthContext,
  raw: DBTransactionAdapter,
  { tenantId, email }: StoredInvitation,
): Promise<Room> {
  const user = await raw.findOne<Row>({ model: "user", where: clauses({ email, tenantId }) });
  // MySQL ignores accents when it compares, and that address is not this one.
  const replacement = user?.email === email ? await replacementOf(ctx, user) : undefined;
  if (!user || !replacement) return {};
  const id = String(user.id);
  if (replacement === "kept") {
    await removeCredentials(ctx, raw, id);
    return { keptUserId: id };
  }
  // Another request may have verified or replaced the user meanwhile.
  const where = clauses({ id, tenantId, email, emailVerified: false });
  const { username, displayUsername } = ctx.tables.user?.fields ?? {};
  const update = {
    // Random: an attacker could sign up with a predictable address first.
    email: crypto.randomUUID() + REPLACED,
    updatedAt: new Date(),
    // The new user may want the same.
    ...(username && { username: null }),
    ...(displayUsername && { displayUsername: null }),
  };
  if (!(await raw.updateMany({ model: "user", where, update }))) return {};
  await removeCredentials(ctx, raw, id);
  return { replacedUserId: id };
}
