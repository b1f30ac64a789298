import { getCurrentAdapter } from "@better-auth/core/context";
import type { AuthContext } from "better-auth";
import { addOAuthServerContext, getOAuthState } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import * as z from "zod";
import { SIGN_UP_PATH } from "../../core/constants";
import { clauses, type Guard, type Row } from "../../core/database";
import { currentEndpoint } from "../../core/endpoint";
import { tenantError } from "../../core/errors";
import type { Admission, Candidate } from "../../core/extension";
import { serviceOf } from "../../core/extensions";
import { type BeforeHook, plainHook } from "../../core/hooks";
import { type Isolation, isolationOf } from "../../core/isolation";
import { currentRequest, type Endpoint, getTenantId, requestSlot } from "../../core/request";
import { methodOf } from "../../core/sign-in-endpoints";
import { textOf } from "../../core/utils";
import { emit } from "../management/events";
import { REPLACED, removeCredentials } from "../management/remove-credentials";
import { adminOptions } from "../management/roles";
import { isVouchedFor } from "../policy/admission";
import { whyNotAdmitted } from "../policy/email-domains";
import { policyOf } from "../policy/policy-of";
import { INVITATION_HEADER } from "./error-codes";
import { invitationError } from "./errors";
import { openLink } from "./link";
import type { StoredInvitation } from "./options";
import { findByLink, findOpen, markAccepted, notFound, toInvitation } from "./store";

/**
 * R13: finds the invitation of a user who is about to be created, by the token that the request
 * carries or by a verified address. Anyone may send an unverified address, so it finds no
 * invitation.
 */
export async function findAdmission(candidate: Candidate): Promise<Admission | undefined> {
  // Finds nothing on the platform, which has no invitations.
  if (candidate.tenantId === null || !currentEndpoint()) return undefined;
  const { ctx, row } = candidate;
  const isProven = row.emailVerified === true || isVouchedFor(isolationOf(ctx), row.email);
  const user = { ...row, emailVerified: isProven };
  const counts = candidate.isTrusted ? "a carried one" : "any invitation";
  return findOpening(ctx, user, counts);
}

async function findOpening(
  ctx: AuthContext,
  user: Row,
  counts: "any invitation" | "a carried one",
): Promise<Admission | undefined> {
  const email = String(user.email).toLowerCase();
  const carried = await carriedInvitation(ctx);
  if (carried) assertSameAddress(carried, email);
  const isKnown = counts === "any invitation" && user.emailVerified === true;
  const row = carried ?? (isKnown ? await findOpen(ctx, email) : undefined);
  if (!row) return undefined;
  const isProven = carried?.mailed || isKnown;
  let replacement: Replacement = {};
  return {
    data: writtenBy(row, carried?.mailed),
    replaceUnverifiedUser: async (unscoped) => {
      if (isProven) replacement = await replaceUnverifiedUser(ctx, unscoped, row);
      const { keptUserId: id } = replacement;
      // Accepts the invitation before its values are written into the kept user. If accepting
      // fails, they are not written, even without transactions.
      if (id) await accept(ctx, unscoped, row, { id }, replacement);
      return id;
    },
    accept: async (created, unscoped) => {
      if (!replacement.keptUserId) await accept(ctx, unscoped, row, created, replacement);
    },
  };
}

/**
 * Returns the values that an invitation writes into its user. A token that was mailed to the
 * address proves it. A link that a manager passed on proves nothing.
 */
const writtenBy = ({ role }: StoredInvitation, isMailedToken = false): Row => ({
  ...(role && { role }),
  ...(isMailedToken && { emailVerified: true }),
});

function assertSameAddress({ email }: StoredInvitation, given: unknown): void {
  if (textOf(given).toLowerCase() === email) return;
  throw invitationError("INVITATION_EMAIL_MISMATCH");
}

/** Accepts the invitation, in the transaction that creates the user if there is one. */
async function accept(
  ctx: AuthContext,
  unscoped: DBTransactionAdapter,
  row: StoredInvitation,
  { id }: Row,
  { keptUserId, replacedUserId }: Replacement,
): Promise<void> {
  const userId = String(id);
  const accepted = await markAccepted(unscoped, row, userId);
  if (!accepted) {
    // Deletes the new user, because not every database rolls it back.
    if (!keptUserId) await unscoped.delete({ model: "user", where: clauses({ id: userId }) });
    throw notFound();
  }
  const { tenantId } = row;
  await emit(ctx, { userId, tenantId }, tenantId, {
    type: "invitation:accepted",
    invitation: toInvitation(accepted),
    ...(replacedUserId && { replacedUserId }),
  });
}

/** Returns the invitation of the token in the request, or in the OAuth flow that ends in it. */
async function carriedInvitation(ctx: AuthContext): Promise<StoredInvitation | undefined> {
  const endpoint = currentRequest().endpoint;
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

/**
 * A key in `serverContext`, the part of an OAuth state that no client can write.
 *
 * Guarded by "a client cannot put anything into the part of the state that the server trusts".
 */
const STATE_KEY = "tenantInvitation";
const inState = z.object({ id: z.string(), tokenHash: z.string() });

/**
 * Checks a token in the header first, so that the page can show what is wrong with the token. Keeps
 * the invitation in the OAuth state, for a flow that ends in another request.
 */
export const carryToken: BeforeHook = {
  matcher: (ctx) =>
    !ctx.path?.startsWith("/tenant/invitation/") && Boolean(tokenIn(ctx as Endpoint)),

  handler: plainHook(async (ctx) => {
    // The header alone does not name a tenant, so the new user would belong to the platform.
    if (!getTenantId()) throw tenantError("TENANT_ID_REQUIRED");
    const invitation = await invitationOf(ctx.context, tokenIn(ctx as Endpoint) ?? "");
    const { id, tokenHash, email } = invitation;
    await addOAuthServerContext({ [STATE_KEY]: { id, tokenHash } });
    if (ctx.path !== SIGN_UP_PATH) return;
    // Also checked here, because better-auth may hide errors of user creation.
    assertSameAddress(invitation, ctx.body?.email);
    invited.set({ email, data: writtenBy(invitation, invitation.mailed) });
  }),
};

/** The email of the invitation of a sign-up, and the values that it writes into the user. */
const invited = requestSlot<{ email: string; data: Row }>();

/** Returns the values in `invited`, if the sign-up is with this email. */
export function writtenIntoUser(given: unknown): Row {
  const { email, data = {} } = invited.get() ?? {};
  return textOf(given).toLowerCase() === email ? data : {};
}

/*
 * Replaces users who never verified their address. Anyone can sign up with an address that was
 * invited. This must not block the invitation. The person who proves the address gets a new user.
 * The old user loses the address and every sign-in method. The old user is not reused, because an
 * attacker may hold credentials for its id (session cookies, one-time tokens, keys, an unfinished
 * sign-in), and not all of them can be found and deleted.
 */

/**
 * Returns "new" if an invitation replaces this user by a new user. Returns "kept" if the invitation
 * goes to this user, because a directory of the tenant knows the id. Returns undefined if the user
 * must not be replaced, for example because a manager has banned the user or given a role.
 */
export async function replacementOf(ctx: AuthContext, user: Row) {
  const { emailVerified, banned, role } = user;
  const { defaultRole = "user" } = adminOptions(ctx);
  if (emailVerified !== false || banned || (role && role !== defaultRole)) return undefined;
  const userId = String(user.id);
  if (!(await isFromDirectory(ctx, userId))) return "new";
  // A user with an account has signed in already and needs no invitation, so the user stays.
  if ((await ctx.internalAdapter.findAccounts(userId)).length > 0) return undefined;
  const directory = serviceOf(isolationOf(ctx), "directory");
  const isBarred = await directory?.isBarred(String(user.tenantId), userId);
  return isBarred ? undefined : "kept";
}

async function isFromDirectory({ adapter, tables }: AuthContext, userId: string) {
  if (!tables.scimUser) return false;
  const where = clauses({ userId });
  return (await (await getCurrentAdapter(adapter)).count({ model: "scimUser", where })) > 0;
}

/** Returns whether an endpoint creates a user for an address, or signs in the user who has it. */
function createsUser(endpoint: Endpoint): boolean {
  if (endpoint.path === SIGN_UP_PATH) return true;
  if (endpoint.path === "/email-otp/verify-email") return false;
  return /^(social:|sso$|magic-link$|email-otp$)/.test(methodOf(endpoint) ?? "");
}

/** Endpoints that only the owner of the mailbox can complete, with the ids of their plugins. */
const PROVEN_BY_MAIL: Readonly<Record<string, string>> = {
  "/magic-link/verify": "magic-link",
  "/sign-in/email-otp": "email-otp",
};

/**
 * Hides a user who is about to be replaced from lookups by email, and by username: the invited
 * person may want the same username.
 */
export const hideReplacedUser = ({ ctx }: Isolation): Guard => ({
  models: ["user"],
  methods: ["findOne"],
  async run({ call }, next) {
    const user = (await next(call)) as Row | null;
    const [clause, ...rest] = call.where ?? [];
    const isLookup = rest.length === 0 && ["email", "username"].includes(clause?.field ?? "");
    if (!isLookup || !user?.tenantId || user.emailVerified !== false) return user;
    return (await replacesUser(currentEndpoint()?.context ?? ctx, user)) ? null : user;
  },
});

/**
 * Returns whether the request is about to replace a user. The request must carry a mailed token, or
 * prove by mail an address that has an open invitation.
 */
async function replacesUser(ctx: AuthContext, user: Row): Promise<boolean> {
  const endpoint = currentEndpoint();
  if (!endpoint || !createsUser(endpoint)) return false;
  const carried = await carriedInvitation(ctx).catch(() => undefined);
  const isProven =
    (carried?.mailed && carried.email === user.email) ||
    (await canJoinByMail(ctx, endpoint.path ?? "", user));
  return isProven && (await replacementOf(ctx, user)) !== undefined;
}

/** Returns whether a mail proves the address, and better-auth would create a user for it. */
async function canJoinByMail(ctx: AuthContext, path: string, user: Row): Promise<boolean> {
  if (!Object.hasOwn(PROVEN_BY_MAIL, path)) return false;
  const plugin = ctx.options.plugins?.find(({ id }) => id === PROVEN_BY_MAIL[path]);
  if (plugin?.options?.disableSignUp) return false;
  if (whyNotAdmitted(await policyOf(ctx, String(user.tenantId)), user.email)) return false;
  return (await findOpen(ctx, String(user.email))) !== undefined;
}

/** The outcome of `replaceUnverifiedUser`. Empty if no user was replaced or kept. */
interface Replacement {
  /** The user who lost the address. */
  replacedUserId?: string;
  /** The user of a directory who keeps the address and gets the invitation. */
  keptUserId?: string;
}

/**
 * Takes the address of an invitation from a user who can be replaced. Runs in the transaction that
 * creates the new user, with the adapter without isolation.
 */
async function replaceUnverifiedUser(
  ctx: AuthContext,
  unscoped: DBTransactionAdapter,
  { tenantId, email }: StoredInvitation,
): Promise<Replacement> {
  const user = await unscoped.findOne<Row>({ model: "user", where: clauses({ email, tenantId }) });
  // MySQL ignores accents when it compares. So the user that it finds may have another address, and
  // is not replaced.
  const replacement = user?.email === email ? await replacementOf(ctx, user) : undefined;
  if (!user || !replacement) return {};
  const id = String(user.id);
  if (replacement === "kept") {
    await removeCredentials(ctx, unscoped, id);
    return { keptUserId: id };
  }
  // Changes nothing if another request has verified or replaced the user meanwhile.
  const where = clauses({ id, tenantId, email, emailVerified: false });
  const { username, displayUsername } = ctx.tables.user?.fields ?? {};
  const update = {
    // Random. An attacker could sign up with a predictable address first, and so prevent this
    // change.
    email: crypto.randomUUID() + REPLACED,
    updatedAt: new Date(),
    // Frees the username, because the new user may want the same.
    ...(username && { username: null }),
    ...(displayUsername && { displayUsername: null }),
  };
  if (!(await unscoped.updateMany({ model: "user", where, update }))) return {};
  await removeCredentials(ctx, unscoped, id);
  return { replacedUserId: id };
}
