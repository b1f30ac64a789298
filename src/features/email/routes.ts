import { isAPIError, signInEmail, signUpEmail } from "better-auth/api";
import { parseSessionOutput } from "better-auth/db";
import * as z from "zod";
import { SIGN_UP_PATH } from "../../core/constants";
import { tenantRouteOf } from "../../core/endpoint";
import { type AfterHook, defineTenantEndpoint, onPaths, plainHook } from "../../core/hooks";
import { tenantId } from "../../core/input";
import { runFor } from "../../core/resolve/run-endpoint";
import type { TenantSession } from "../management/options";

/*
 * Over HTTP, `rewrite.ts` turns requests to these endpoints into requests to better-auth's own. The
 * definitions here describe the endpoints, and serve calls of `auth.api`.
 */

type TenantUser = TenantSession["user"];

export interface SignUpInput {
  /** The id of the tenant. Not needed if the request names the tenant in another way. */
  tenantId?: string;
  name: string;
  /** The user's email, which can sign up in several tenants, as a different user in each. */
  email: string;
  /** The password. The tenant's policy may require more characters than better-auth's options. */
  password: string;
  image?: string;
  /** The page that the link in the verification mail leads to. */
  callbackURL?: string;
  /** False ends the session with the browser. */
  rememberMe?: boolean;
}

export interface SignUpAnswer {
  /** Null if the email must be verified first. */
  token: string | null;
  user: TenantUser;
  /** Null if the email must be verified first. */
  session: TenantSession["session"] | null;
}

export interface SignInAnswer {
  redirect: boolean;
  token: string;
  url?: string;
  user: TenantUser;
  session: TenantSession["session"] | null;
}

const signUp = signUpEmail();
export const signIn = signInEmail();

export const signUpEmailTenant = defineTenantEndpoint(
  "/tenant/sign-up/email",
  {
    method: "POST",
    cloneRequest: true, // Mail senders get the request, and may read its body.
    body: z.object({ tenantId: tenantId.optional() }).and(signUp.options.body),
    metadata: {
      openapi: { description: "Sign up with email and password at a tenant" },
      $Infer: {
        // Additional fields of the application's users pass through.
        body: {} as SignUpInput & { [field: string]: unknown },
      },
    },
  },
  runFor<SignUpAnswer>("signUpEmail", signUp),
);

export const signInEmailTenant = defineTenantEndpoint(
  "/tenant/sign-in/email",
  {
    method: "POST",
    cloneRequest: true,
    body: signIn.options.body.extend({ tenantId: tenantId.optional() }),
    metadata: { openapi: { description: "Sign in with email and password at a tenant" } },
  },
  runFor<SignInAnswer>("signInEmail", signIn),
);

/**
 * Adds the session to the response. Adds null if the email must be verified first, or if a hook of
 * `twoFactor()` removed the session.
 */
export const answerWithSession: AfterHook = {
  matcher: onPaths(SIGN_UP_PATH, "/sign-in/email"),

  handler: plainHook((ctx) => {
    const { returned, newSession, options } = ctx.context;
    if (!tenantRouteOf(ctx)) return;
    if (typeof returned !== "object" || returned === null || isAPIError(returned)) return;
    if (returned instanceof Response) return;
    const isSignedIn = newSession?.session.token === (returned as { token?: unknown }).token;
    const session =
      isSignedIn && newSession ? parseSessionOutput(options, newSession.session) : null;
    ctx.context.returned = { ...returned, session };
  }),
};
