import { BASE_ERROR_CODES, type GenericEndpointContext } from "better-auth";
import { APIError, createAuthEndpoint } from "better-auth/api";
import * as z from "zod";
import { tenantError } from "../../core/errors";
import { get, limit, limited, offset, post, tenantId, text } from "../../core/input";
import { getTenantId, runInScope, scopeOf } from "../../core/request";
import { ownerOf } from "../../core/resolve/addresses";
import { emit, type TenantActor, type TenantInvitation } from "../management/events";
import { assertTarget, requireManager, requireTarget } from "../management/management";
import { oneAtATime } from "../management/one-at-a-time";
import { managementOptions, type TenantManagementAction } from "../management/options";
import { requireTenant } from "../management/tenant";
import { whyNotAdmitted } from "../policy/email-domains";
import { policyError } from "../policy/errors";
import { withVerifiedDomains } from "../policy/policy-of";
import { seconds } from "../policy/schema";
import { invitationError } from "./errors";
import { requireGiver, requireRole } from "./inviter";
import { linkOf } from "./link";
import { replacementOf } from "./opener";
import type { Inviter, ResolvedInvitationOptions } from "./options";
import * as store from "./store";

/** An invitation that was just mailed, or whose link the caller will send. */
export type SentInvitation = TenantInvitation & {
  /** The link, only with `send: false`. Anyone with the link can accept the invitation. */
  url?: string;
};

const CREATE_PATH = "/tenant/invitation/create";
const RESEND_PATH = "/tenant/invitation/resend";

/** Endpoints that send a mail to an address of the caller's choice. */
export const SENDING_PATHS = [CREATE_PATH, RESEND_PATH];

const ANY_BASE = "http://base.invalid";
const isPage = (address: string) =>
  /^(\/(?![/\\])|https?:\/\/)/i.test(address) && URL.canParse(address, ANY_BASE);

/** Returns whether a page already has a token, which could be read instead of the link's. */
const hasToken = (address: string) => new URL(address, ANY_BASE).searchParams.has("token");

/** The schema of a page of the application. `assertOwnPage` checks its host. */
const page = text(2048)
  .refine(isPage, { error: "expected a page", abort: true })
  .refine((address) => !hasToken(address), "expected a page without a token")
  .meta({ description: "The page that the link leads to; /accept-invitation by default" });

/** One role of the admin plugin, or several roles separated by commas. */
type Roles<Role extends string> = Role | `${Role},${string}`;

const createBody = <Role extends string>({ maxExpiresIn }: ResolvedInvitationOptions) =>
  z.object({
    tenantId: tenantId.optional(),
    email: limited(254).check(z.email()).meta({ description: "The address to invite" }),
    role: (text(255) as z.ZodType as z.ZodType<Roles<Role>, Roles<Role>>)
      .nullish()
      .meta({ description: "The role of the admin plugin" }),
    expiresIn: seconds({ max: maxExpiresIn })
      .optional()
      .meta({ description: "How long the invitation is valid, in seconds" }),
    redirectTo: page.optional(),
    send: z.boolean().optional().meta({ description: "False mails nothing, and returns the link" }),
  });

export const createInvitationEndpoint = <Role extends string>(
  settings: ResolvedInvitationOptions,
) =>
  createAuthEndpoint(
    CREATE_PATH,
    {
      ...post(createBody<Role>(settings), "Invite an address, or send its invitation again"),
      cloneRequest: true, // Mail senders get the request, and may read its body.
    },
    async (ctx) => {
      const { context, body } = ctx;
      const { tenantId, actor } = await requireTarget(ctx, INVITE);
      const email = body.email.toLowerCase();
      const call = await requireSender(ctx, tenantId, actor, email);
      const sent = await runInScope(scopeOf(tenantId), async () => {
        const pending = await store.findPending(context, email);
        const given = body.role === undefined ? (pending?.role ?? null) : body.role;
        const role = requireRole(context, given, call.inviter);
        // This call replaces the pending invitation, whose role the caller must be able to give.
        if (pending?.role) requireGiver(context, pending.role, call.inviter);
        const redirectTo = body.redirectTo ?? pending?.redirectTo ?? null;
        const { expiresIn = settings.expiresIn, send: mailed = true } = body;
        return send(ctx, settings, call, { email, mailed, redirectTo, expiresIn }, (sending) =>
          store.issue(context, { ...sending, role }),
        );
      });
      return ctx.json(sent);
    },
  );

const INVITE = "invitation:create";
const STATUSES = ["pending", "accepted", "expired", "revoked"] as const;

const listQuery = z
  .object({ tenantId: tenantId.optional(), status: z.enum(STATUSES).optional(), limit, offset })
  .optional();

export const listInvitationsEndpoint = createAuthEndpoint(
  "/tenant/invitation/list",
  get(listQuery, "List a tenant's invitations, newest first", {
    tenantId: { type: "string" },
    status: { type: "string", enum: [...STATUSES] },
    limit: { type: "integer" },
    offset: { type: "integer" },
  }),
  async (ctx) => {
    const { context } = ctx;
    const { tenantId } = await requireTarget(ctx, "invitation:list");
    const find = () => store.list(context, ctx.query ?? {});
    return ctx.json(await runInScope(scopeOf(tenantId), find));
  },
);

const idBody = z.object({ id: text(255).meta({ description: "Id of the invitation" }) });

export const resendInvitationEndpoint = (settings: ResolvedInvitationOptions) =>
  createAuthEndpoint(
    RESEND_PATH,
    { ...post(idBody, "Send an invitation again, with a new token"), cloneRequest: true },
    async (ctx) => {
      const { context } = ctx;
      const { row, actor } = await requireInvitation(ctx, "invitation:resend");
      const { tenantId, email, role, redirectTo } = row;
      const call = await requireSender(ctx, tenantId, actor, email);
      requireRole(context, role ?? null, call.inviter);
      const mail = { email, mailed: true, redirectTo, expiresIn: settings.expiresIn };
      const renew = (sending: Sending) => store.renew(context, row, sending);
      const resend = () => send(ctx, settings, call, mail, renew);
      return ctx.json(await runInScope(scopeOf(tenantId), resend));
    },
  );

export const revokeInvitationEndpoint = createAuthEndpoint(
  "/tenant/invitation/revoke",
  post(idBody, "Revoke an invitation"),
  async (ctx) => {
    const { context } = ctx;
    const { row, actor } = await requireInvitation(ctx, "invitation:revoke");
    const revoked = await runInScope(scopeOf(row.tenantId), () => store.revoke(context, row));
    if (!revoked) throw store.notFound();
    const change = { type: "invitation:revoked", invitation: store.toInvitation(revoked) } as const;
    await emit(context, actor, row.tenantId, change);
    return ctx.json(change.invitation);
  },
);

/** Returns the pending invitation with the id in the body, if the caller may take the action. */
async function requireInvitation(ctx: GenericEndpointContext, action: TenantManagementAction) {
  const options = managementOptions(ctx.context);
  const row = await store.findAnywhere(ctx.context, ctx.body.id);
  // A tenant's administrator must not learn whether the id exists in another tenant. So an id that
  // does not exist is refused like an id of another tenant.
  const unknown = options.canManageTenants ? undefined : NO_TENANT;
  const actor = await requireManager(ctx, action, row?.tenantId ?? unknown);
  if (!row) throw store.notFound();
  await assertTarget(ctx, row.tenantId);
  store.assertPending(row);
  return { row, actor };
}

/** An id that no tenant has. */
const NO_TENANT = "-";

/**
 * Returns the tenant and the inviter. Refuses an address that the tenant's policy does not admit,
 * because its link would not work.
 */
async function requireSender(
  ctx: GenericEndpointContext,
  tenantId: string,
  actor: TenantActor,
  email: string,
) {
  const tenant = await requireTenant(ctx, tenantId);
  const policy = await withVerifiedDomains(ctx.context, tenant.id, tenant.policy ?? {});
  const refusal = whyNotAdmitted(policy, email);
  if (refusal) throw policyError(refusal);
  return { tenant, actor, inviter: await findInviter(ctx, actor) };
}

async function findInviter({ context }: GenericEndpointContext, actor: TenantActor) {
  if (actor === "server" || actor.userId === null) return null;
  const { userId: id, tenantId } = actor;
  const user = await runInScope(scopeOf(tenantId), () => context.internalAdapter.findUserById(id));
  if (!user) throw tenantError("UNAUTHORIZED");
  const { name, email, role = null } = user as typeof user & { role?: string | null };
  return { id, name: nameInMail(name), email, tenantId, role };
}

type Sending = Omit<store.Sending, "role">;

/** Stores an invitation, and mails its link or returns it to the caller. Runs inside the tenant. */
async function send(
  ctx: GenericEndpointContext,
  settings: ResolvedInvitationOptions,
  { tenant, actor, inviter }: Awaited<ReturnType<typeof requireSender>>,
  { expiresIn, ...link }: Pick<Sending, "email" | "mailed" | "redirectTo"> & { expiresIn: number },
  save: (sending: Sending) => ReturnType<typeof store.renew>,
): Promise<SentInvitation> {
  const { context } = ctx;
  await assertNoUser(ctx, link);
  await assertOwnPage(ctx, link.redirectTo);
  const sending = {
    ...link,
    expiresAt: new Date(Date.now() + expiresIn * 1000),
    inviterId: inviter?.id ?? null,
    inviterName: inviter?.name ?? null,
  };
  const issued = await oneAtATime(context, tenant, async () => {
    if (actor !== "server") await store.assertWithinLimits(context, settings, sending);
    return save(sending);
  });
  if (!issued) throw store.notFound();
  const invitation = store.toInvitation(issued.row);
  const url = await linkOf(context, issued.row, issued.secret);
  const type = issued.isNew ? "invitation:created" : "invitation:resent";
  await emit(context, actor, tenant.id, { type, invitation });
  if (!link.mailed) return { ...invitation, url };
  const mail = {
    invitation,
    url,
    tenant: { id: tenant.id, name: nameInMail(tenant.name), slug: tenant.slug },
    inviter: inviter && withoutRole(inviter),
  };
  const sendMail = async () => settings.sendInvitationEmail(mail, ctx.request);
  await context.runInBackgroundOrAwait(sendMail());
  return invitation;
}

const withoutRole = ({ role: _, ...inviter }: Inviter & { role: unknown }): Inviter => inviter;

/**
 * Refuses an address that belongs to a user. Allows a user who can be replaced if the link is
 * mailed, which proves the address.
 */
async function assertNoUser(
  { context }: GenericEndpointContext,
  { email, mailed }: Pick<Sending, "email" | "mailed">,
): Promise<void> {
  const found = await context.internalAdapter.findUserByEmail(email);
  if (!found || (mailed && (await replacementOf(context, found.user)))) return;
  throw invitationError("USER_ALREADY_IN_TENANT");
}

/**
 * R9: refuses a page that is not trusted in its tenant, even if the page was trusted earlier.
 * Otherwise, the owner of its host would get the token.
 */
async function assertOwnPage(ctx: GenericEndpointContext, page: string | null): Promise<void> {
  const owner = await ownerOf(ctx, page);
  const { context } = ctx;
  const isTrusted =
    owner === null
      ? page === null || context.isTrustedOrigin(page, { allowRelativePaths: true })
      : owner === getTenantId();
  if (isTrusted || context.options.advanced?.disableOriginCheck === true) return;
  context.logger.error(
    `The invitation leads to ${page}, which is not trusted in its tenant. Invite the address again with another redirectTo.`,
  );
  throw APIError.from("FORBIDDEN", BASE_ERROR_CODES.INVALID_REDIRECT_URL);
}

const NAME_LENGTH = 100;

/** Line breaks, and characters that change the direction of the text around them. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu;

/**
 * Makes a name safe for a mail and its headers. Users choose their own names, and could otherwise
 * send a whole message, or a header, to any address.
 */
function nameInMail(name: string): string {
  // Cuts before splitting, because a name may be very long. A character has at most two UTF-16
  // units.
  const characters = [...name.slice(0, 2 * NAME_LENGTH + 1)];
  const isLong = characters.length > NAME_LENGTH;
  const kept = isLong ? `${characters.slice(0, NAME_LENGTH - 1).join("")}…` : name;
  return kept.replace(UNPRINTABLE, " ");
}
