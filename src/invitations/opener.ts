import type { AuthContext } from "better-auth";
import { addOAuthServerContext, getOAuthState } from "better-auth/api";
import type { DBTransactionAdapter } from "better-auth/types";
import * as z from "zod";
import { SIGN_UP_PATH } from "../constants";
import { tenantError } from "../errors";
import { type BeforeHook, silentHook, textOf } from "../framework";
import { isolationOf, type Row } from "../isolation/isolation";
import { type Inviting, invited } from "../policy/inviting";
import { type Endpoint, effectiveScope, requestEndpoint } from "../request/endpoint";
import { getTenantId } from "../request/scope";
import { emit } from "../tenants/events";
import { INVITATION_HEADER } from "./error-codes";
import { invitationError } from "./errors";
import { openLink } from "./link";
import { tenantOptions } from "./options";
import type { Room } from "./replace";
import { makeRoom } from "./replace";
import type { StoredInvitation } from "./schema";
import {
  findByHash,
  findByLink,
  findOpen,
  isAcceptedBy,
  markAccepted,
  notFound,
  toInvitation,
} from "./store";

/**
 * R13: says whether somebody who is about to become a user was invited: by the token that the
 * request carries, or by an address that is known to be theirs. An address that nobody has verified
 * is a claim, and lets nobody in.
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
    data: carried ? writtenByToken(carried) : writtenBy(row),
    makeRoom: async (raw) => {
      if (isProven) room = await makeRoom(ctx, raw, row);
      const { keptUserId: id } = room;
      // First, where a user is kept: not every database takes back what is written to it.
      if (id) await accept(ctx, raw, row, { id }, room);
      return id;
    },
    accept: (created, raw) => accept(ctx, raw, row, created, room),
  };
};

/** What an invitation writes into its user. */
const writtenBy = ({ role }: StoredInvitation): Row => (role ? { role } : {});

/** A token that was mailed proves the address. One that somebody else has sent proves nothing. */
const writtenByToken = (row: StoredInvitation): Row => ({
  ...writtenBy(row),
  ...(row.mailed && { emailVerified: true }),
});

function assertSameAddress({ email }: StoredInvitation, given: unknown): void {
  if (textOf(given).toLowerCase() === email) return;
  throw invitationError("INVITATION_EMAIL_MISMATCH");
}

/** Runs in the transaction that makes the user, where there is one. */
async function accept(
  ctx: AuthContext,
  raw: DBTransactionAdapter,
  row: StoredInvitation,
  { id }: Row,
  { keptUserId, replacedUserId }: Room,
): Promise<void> {
  const userId = String(id);
  const accepted = await markAccepted(raw, row, userId);
  // Where a plugin brings an adapter around the confined one, there are two borders, and each asks.
  if (!accepted && (await isAcceptedBy(raw, row, userId))) return;
  if (!accepted) {
    // Not every database takes the user back by itself.
    if (!keptUserId) await raw.delete({ model: "user", where: [{ field: "id", value: userId }] });
    throw notFound();
  }
  const { tenantId } = row;
  const invitation = toInvitation(accepted);
  const change = {
    type: "invitation:accepted" as const,
    invitation,
    ...(replacedUserId && { replacedUserId }),
  };
  await emit(ctx, tenantOptions(ctx), { userId, tenantId }, tenantId, change);
}

/** The invitation whose token came with the request, or with the flow that it is the end of. */
export async function carriedInvitation(ctx: AuthContext): Promise<StoredInvitation | undefined> {
  const endpoint = requestEndpoint.get();
  const token = endpoint && tokenIn(endpoint);
  if (endpoint && token) return invitationOf(endpoint.context, token);
  const { success, data } = inState.safeParse((await getOAuthState())?.serverContext?.[STATE_KEY]);
  return success ? findByHash(ctx, data.id, data.tokenHash) : undefined;
}

async function invitationOf(ctx: AuthContext, token: string): Promise<StoredInvitation> {
  const link = await openLink(ctx, token);
  const tenantId = getTenantId();
  if (!link || tenantId === null || link.tenantId !== tenantId) throw notFound();
  return findByLink(ctx, link);
}

const tokenIn = ({ headers, request }: Pick<Endpoint, "headers" | "request">) =>
  new Headers(headers ?? request?.headers).get(INVITATION_HEADER);

/** In the state of a social sign-in, where no client can write to. */
const STATE_KEY = "tenantInvitation";
const inState = z.object({ id: z.string(), tokenHash: z.string() });

/**
 * A token in the header is looked at before anything else happens, so that the page can say what is
 * wrong with it, and goes along with a flow that ends in another request.
 */
export const carryToken: BeforeHook = {
  matcher: (ctx) =>
    !ctx.path?.startsWith("/tenant/invitation/") && Boolean(tokenIn(ctx as Endpoint)),

  handler: silentHook(async (ctx) => {
    const isolation = isolationOf(ctx.context);
    const scope = isolation && effectiveScope();
    // The header names no tenant: a request that names none would make a user of the platform.
    if (!scope?.tenantId) throw tenantError("TENANT_ID_REQUIRED");
    const invitation = await invitationOf(ctx.context, tokenIn(ctx as Endpoint) ?? "");
    const { id, tokenHash, email } = invitation;
    await addOAuthServerContext({ [STATE_KEY]: { id, tokenHash } });
    if (ctx.path !== SIGN_UP_PATH) return;
    // Here, because better-auth hides a refusal from where the user is made, where it hides that an
    // address is taken.
    assertSameAddress(invitation, ctx.body?.email);
    invited.set({ email, data: writtenByToken(invitation) });
  }),
};
