import type { GenericEndpointContext } from "better-auth";
import { signInEmail, signUpEmail } from "better-auth/api";
import { parseSessionOutput } from "better-auth/db";
import * as z from "zod";
import type { ResolvedOptions, TenantSession } from "../options";
import { type runEndpoint, standIn } from "../scope/run";
import { tenantId } from "../tenants/input";
import { runForTenant } from "./run";

type TenantUser = TenantSession["user"];

export interface SignUpInput {
  tenantId?: string;
  name: string;
  email: string;
  password: string;
  image?: string;
  callbackURL?: string;
  rememberMe?: boolean;
}

export interface SignUpAnswer {
  token: string | null;
  user: TenantUser;
  session: TenantSession["session"] | null;
}

const signUp = signUpEmail();
const signIn = signInEmail();

const signUpBody = z.object({ tenantId: tenantId.optional() }).and(signUp.options.body);

export const signUpEmailTenant = (options: ResolvedOptions) =>
  standIn(
    "/tenant/sign-up/email",
    {
      method: "POST",
      cloneRequest: true, // Mail senders get the request, and may read its body.
      body: signUpBody,
      metadata: {
        openapi: { description: "Sign up with e-mail and password under a tenant" },
        $Infer: {
          // Additional fields of the application's users pass through.
          body: {} as SignUpInput & { [field: string]: unknown },
        },
      },
    },
    async (ctx) => {
      type Answer = { token: string | null; user: TenantUser };
      return withSession(ctx, await runForTenant<Answer>(ctx, options, signUp));
    },
  );

const signInBody = signIn.options.body.extend({ tenantId: tenantId.optional() });

export const signInEmailTenant = (options: ResolvedOptions) =>
  standIn(
    "/tenant/sign-in/email",
    {
      method: "POST",
      cloneRequest: true,
      body: signInBody,
      metadata: { openapi: { description: "Sign in with e-mail and password under a tenant" } },
    },
    async (ctx) => {
      type Answer = { redirect: boolean; token: string; url?: string; user: TenantUser };
      return withSession(ctx, await runForTenant<Answer>(ctx, options, signIn));
    },
  );

/**
 * better-auth's answer, with the session that its token stands for. There is none when the e-mail
 * has to be verified first, or when a hook (two-factor, say) took the session back.
 */
function withSession<Response extends { token: string | null }>(
  ctx: GenericEndpointContext,
  { newSession, ...answer }: Awaited<ReturnType<typeof runEndpoint<Response>>>,
) {
  const { response } = answer;
  const signedIn = newSession !== null && newSession.session.token === response.token;
  const session = signedIn ? parseSessionOutput(ctx.context.options, newSession.session) : null;
  return {
    ...answer,
    response: { ...response, session: session as TenantSession["session"] | null },
  };
}
