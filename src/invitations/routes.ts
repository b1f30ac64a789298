import { createAuthEndpoint, signUpEmail } from "better-auth/api";
import * as z from "zod";
import { type BeforeHook, silentHook, tenantRoute } from "../framework";
import type { Inviting } from "../policy/inviting";
import { limit, limited, offset, tenantId, text } from "../tenants/input";
import { acceptInvitation, getInvitation, guardLikeSignUp, tenantOfLink } from "./accept";
import { createInvitation, listInvitations, resendInvitation, revokeInvitation } from "./manage";
import type { ResolvedInvitationOptions } from "./options";

const invitationId = text(255).meta({ description: "Id of the invitation" });
const token = limited(4096).min(1).meta({ description: "The token of the link" });

/** The page looks for one token, and it has to be that of the link. */
const hasToken = (address: string) => new URL(address, ANY_BASE).searchParams.has("token");

const ANY_BASE = "http://base.invalid";
const isPage = (address: string) =>
  /^(\/(?![/\\])|https?:\/\/)/i.test(address) && URL.canParse(address, ANY_BASE);

/** A page of the application: whether its host is trusted is better-auth's to say. */
const page = text(2048)
  .refine(isPage, { error: "expected a page", abort: true })
  .refine((address) => !hasToken(address), "expected a page without a token")
  .meta({ description: "The page that the link leads to; /accept-invitation by default" });

const createBody = (maxExpiresIn: number) =>
  z.object({
    tenantId: tenantId.optional(),
    email: limited(254).check(z.email()).meta({ description: "Who is invited" }),
    role: text(255).nullish().meta({ description: "The role of the admin plugin" }),
    expiresIn: z
      .int()
      .positive()
      .max(maxExpiresIn)
      .optional()
      .meta({ description: "How long the invitation is good, in seconds" }),
    redirectTo: page.optional(),
    send: z.boolean().optional().meta({ description: "False mails nothing, and returns the link" }),
  });

const CREATE_PATH = "/tenant/invitation/create";
const RESEND_PATH = "/tenant/invitation/resend";

/** Endpoints that send a mail to an address of the caller's choice. */
export const SENDING_PATHS = [CREATE_PATH, RESEND_PATH];

export const createInvitationEndpoint = (options: ResolvedInvitationOptions) =>
  createAuthEndpoint(
    CREATE_PATH,
    {
      method: "POST",
      cloneRequest: true, // Mail senders get the request, and may read its body.
      body: createBody(options.maxExpiresIn),
      metadata: { openapi: { description: "Invite somebody, or send the invitation again" } },
    },
    async (ctx) => ctx.json(await createInvitation(ctx, options, ctx.body)),
  );

const STATUSES = ["pending", "accepted", "expired", "revoked"] as const;

export const listInvitationsEndpoint = createAuthEndpoint(
  "/tenant/invitation/list",
  {
    method: "GET",
    query: z
      .object({
        tenantId: tenantId.optional(),
        status: z.enum(STATUSES).optional(),
        limit,
        offset,
      })
      .optional(),
    metadata: {
      openapi: {
        description: "List a tenant's invitations, newest first",
        // better-auth describes a query by itself only where there has to be one.
        parameters: [
          { name: "tenantId", in: "query", schema: { type: "string" } },
          { name: "status", in: "query", schema: { type: "string", enum: [...STATUSES] } },
          { name: "limit", in: "query", schema: { type: "integer" } },
          { name: "offset", in: "query", schema: { type: "integer" } },
        ],
      },
    },
  },
  async (ctx) => ctx.json(await listInvitations(ctx, ctx.query ?? {})),
);

export const resendInvitationEndpoint = (options: ResolvedInvitationOptions) =>
  createAuthEndpoint(
    RESEND_PATH,
    {
      method: "POST",
      cloneRequest: true,
      body: z.object({ id: invitationId }),
      metadata: { openapi: { description: "Send an invitation again, with a new token" } },
    },
    async (ctx) => ctx.json(await resendInvitation(ctx, options, ctx.body.id)),
  );

export const revokeInvitationEndpoint = createAuthEndpoint(
  "/tenant/invitation/revoke",
  {
    method: "POST",
    body: z.object({ id: invitationId }),
    metadata: { openapi: { description: "Take an invitation back" } },
  },
  async (ctx) => ctx.json(await revokeInvitation(ctx, ctx.body.id)),
);

export const getInvitationEndpoint = createAuthEndpoint(
  "/tenant/invitation/get",
  {
    method: "GET",
    query: z.object({ token, tenantId: tenantId.optional() }),
    metadata: { openapi: { description: "What the page of an invitation has to know" } },
  },
  async (ctx) => ctx.json(await getInvitation(ctx, ctx.query.token)),
);

/** What somebody who accepts has to say; their address is in the invitation. */
export type AcceptInput = {
  token: string;
  name: string;
  password: string;
  image?: string;
  callbackURL?: string;
  rememberMe?: boolean;
};

export const ACCEPT_PATH = "/tenant/invitation/accept";

/** Whoever accepts has named no tenant: the page may be at any host. */
export const acceptedTenant: Inviting["acceptedTenant"] = async (ctx) =>
  ctx.path === ACCEPT_PATH ? tenantOfLink(ctx) : undefined;

/** Not for calls of `auth.api`, which better-auth's own guards leave alone as well. */
export const guardAccepting: BeforeHook = {
  matcher: ({ path, request }) => path === ACCEPT_PATH && request !== undefined,
  handler: silentHook(async (ctx) => guardLikeSignUp(ctx)),
};

export const acceptInvitationEndpoint = tenantRoute(
  ACCEPT_PATH,
  {
    method: "POST",
    cloneRequest: true,
    body: z.object({ token }).and(signUpEmail().options.body),
    metadata: {
      openapi: { description: "Accept an invitation with a password" },
      $Infer: { body: {} as AcceptInput },
    },
  },
  async (ctx) => acceptInvitation(ctx),
);
