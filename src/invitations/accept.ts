import type { GenericEndpointContext } from "better-auth";
import { APIError, signUpEmail } from "better-auth/api";
import type { Answer } from "../framework";
import { namedTenantId, requireTenantId } from "../naming/request";
import { runEndpoint, type SignUpAnswer, signInMethodsEndpoint } from "../routes/sign-in";
import type { SignInMethods } from "../routes/sign-in-methods";
import { asStandIn } from "../scope/endpoint";
import { runInScope, settled } from "../scope/scope";
import { INVITATION_HEADER } from "./constants";
import { TENANT_INVITATION_ERROR_CODES } from "./error-codes";
import { openLink } from "./link";
import { tenantOptions } from "./options";
import type { StoredInvitation } from "./schema";
import { findByLink, notFound } from "./store";

/** What the page that a link leads to has to know. */
export interface OpenInvitation extends SignInMethods {
  email: string;
  role: string | null;
  expiresAt: Date;
}

/** The invitation of a link, for whoever has the link. It leads into its tenant by itself. */
async function open(ctx: GenericEndpointContext, token: unknown): Promise<StoredInvitation> {
  const link = await openLink(ctx.context, token);
  if (!link) throw notFound();
  const named = await namedTenantId(ctx, tenantOptions(ctx.context));
  if (named !== undefined && named !== link.tenantId) throw notFound();
  const tenantId = await requireTenantId(ctx, link.tenantId, link.since);
  return runInScope(settled(tenantId), () => findByLink(ctx.context, link));
}

export async function getInvitation(
  ctx: GenericEndpointContext,
  token: string,
): Promise<OpenInvitation> {
  const { tenantId, email, role, expiresAt } = await open(ctx, token);
  const input = { ...ctx, method: "GET" as const, query: { tenantId } };
  const answer = { asResponse: false, returnHeaders: false, returnStatus: false } as const;
  const methods = await runInScope(settled(tenantId), () =>
    signInMethodsEndpoint(tenantOptions(ctx.context))({ ...input, ...answer }),
  );
  const { enabled } = methods.emailAndPassword;
  // The tenant may be closed to everybody else.
  const signUp = enabled && !ctx.context.options.emailAndPassword?.disableSignUp;
  const emailAndPassword = { ...methods.emailAndPassword, signUp };
  return { ...methods, emailAndPassword, email, role: role ?? null, expiresAt };
}

const signUp = signUpEmail();

/**
 * Signs up whoever has the link, with the address of the invitation: better-auth's own sign-up,
 * inside the tenant, with the token along. The invitation is accepted where the user is made.
 */
export async function acceptInvitation(ctx: GenericEndpointContext): Promise<Answer<SignUpAnswer>> {
  const { token, tenantId: _, email, ...body } = (ctx.body ?? {}) as Record<string, unknown>;
  const invitation = await open(ctx, token);
  if (email !== undefined && String(email).toLowerCase() !== invitation.email) {
    throw APIError.from("FORBIDDEN", TENANT_INVITATION_ERROR_CODES.INVITATION_EMAIL_MISMATCH);
  }
  const headers = new Headers(ctx.headers ?? ctx.request?.headers);
  headers.set(INVITATION_HEADER, String(token));
  try {
    return await runEndpoint<SignUpAnswer>(ctx, signUp, {
      body: { ...body, email: invitation.email },
      headers,
      context: asStandIn(ctx.context, { tenantId: invitation.tenantId }),
    });
  } catch (error) {
    // Somebody else may have accepted, or a manager revoked it, a moment ago: that is the reason.
    await open(ctx, token);
    throw error;
  }
}
