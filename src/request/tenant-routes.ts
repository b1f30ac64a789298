import { type AuthContext, type GenericEndpointContext, HIDE_METADATA } from "better-auth";
import {
  APIError,
  callbackOAuth,
  createAuthEndpoint,
  dispatchAuthEndpoint,
  isAPIError,
  signInEmail,
  signInSocial,
  signUpEmail,
} from "better-auth/api";
import { parseSessionOutput } from "better-auth/db";
import type { SocialProviderList } from "better-auth/social-providers";
import { kAPIErrorHeaderSymbol } from "better-call";
import * as z from "zod";
import { type AfterHook, type Answer, redirect, silentHook, tenantRoute } from "../framework";
import { takeStatePrefix } from "../oauth/state-prefix";
import type { TenantSession } from "../options";
import { signInMethods } from "../policy/sign-in-methods";
import { getOfTenant, tenantId } from "../tenants/input";
import { asTenantRoute, runSeparately, tenantRouteOf } from "./endpoint";
import { requestedTenantId, requireTenant } from "./resolve";
import { getTenantId } from "./scope";

/*
 * Over HTTP, requests to these endpoints are rewritten to better-auth's own (rewrite.ts). What is here
 * describes them, and serves calls of `auth.api`.
 */

type TenantUser = TenantSession["user"];

export interface SignUpInput {
  /** The tenant; not needed where the request names it otherwise. */
  tenantId?: string;
  name: string;
  /** Another person in every tenant: the same address may sign up in several. */
  email: string;
  /** As long as the tenant's policy, or else better-auth's options, require. */
  password: string;
  image?: string;
  /** Where the link in the verification mail leads to. */
  callbackURL?: string;
  /** False ends the session with the browser. */
  rememberMe?: boolean;
}

export interface SignUpAnswer {
  /** Null where the address has to be verified first. */
  token: string | null;
  user: TenantUser;
  /** Null where the address has to be verified first. */
  session: TenantSession["session"] | null;
}

export interface SignInAnswer {
  redirect: boolean;
  token: string;
  url?: string;
  user: TenantUser;
  session: TenantSession["session"] | null;
}

/** Where to go to sign in; or, with an id token, the user who is signed in. */
export type SocialAnswer =
  | { redirect: boolean; url: string; token?: undefined; user?: undefined }
  | { redirect: boolean; url?: undefined; token: string; user: TenantUser };

const signUp = signUpEmail();
export const signIn = signInEmail();
const social = signInSocial();

/** better-auth's own endpoints, by their names in `auth.api`. */
const ENDPOINTS = { signUpEmail: signUp, signInEmail: signIn, signInSocial: social, callbackOAuth };

/** Runs better-auth's endpoint for the tenant that the call names, or that it is made in. */
const runFor =
  <Response>(name: keyof typeof ENDPOINTS) =>
  (ctx: GenericEndpointContext) =>
    runEndpoint<Response>(ctx, name, {
      body: { ...ctx.body },
      context: asTenantRoute(ctx.context, { tenantId: getTenantId() }),
    });

export const signUpEmailTenant = tenantRoute(
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
  runFor<SignUpAnswer>("signUpEmail"),
);

export const signInEmailTenant = tenantRoute(
  "/tenant/sign-in/email",
  {
    method: "POST",
    cloneRequest: true,
    body: signIn.options.body.extend({ tenantId: tenantId.optional() }),
    metadata: { openapi: { description: "Sign in with email and password at a tenant" } },
  },
  runFor<SignInAnswer>("signInEmail"),
);

export type ProviderName = SocialProviderList[number] | (string & {});

export const signInSocialTenant = tenantRoute(
  "/tenant/sign-in/social",
  {
    method: "POST",
    body: social.options.body.extend({
      tenantId: tenantId.optional(),
      // better-auth's own leaves the type of the input open, and closes it for its own path only.
      provider: social.options.body.shape.provider as z.ZodType<ProviderName, ProviderName>,
    }),
    metadata: { openapi: { description: "Start social sign-in for a tenant" } },
  },
  runFor<SocialAnswer>("signInSocial"),
);

const WITH_SESSION = ["/sign-up/email", "/sign-in/email"];

/**
 * Adds the session to the response. There is none if the email has to be verified first, or if a
 * hook (two-factor) removed it.
 */
export const answerWithSession: AfterHook = {
  matcher: (ctx) => WITH_SESSION.includes(ctx.path ?? "") && tenantRouteOf(ctx) !== undefined,

  handler: silentHook(({ context }) => {
    const { returned, newSession, options } = context;
    if (typeof returned !== "object" || returned === null || isAPIError(returned)) return;
    if (returned instanceof Response) return;
    const isSignedIn = newSession?.session.token === (returned as { token?: unknown }).token;
    const session =
      isSignedIn && newSession ? parseSessionOutput(options, newSession.session) : null;
    context.returned = { ...returned, session };
  }),
};

const { body, query, metadata } = callbackOAuth.options;

/** Where providers redirect back to: better-auth's own callback, in the tenant of its state. */
export const callbackTenantOAuth = tenantRoute(
  "/tenant/callback/:id",
  {
    method: ["GET", "POST"],
    body,
    query,
    metadata: { ...HIDE_METADATA, allowedMediaTypes: metadata.allowedMediaTypes },
  },
  async (ctx) => {
    if (ctx.method === "POST") {
      // A form post comes from the provider's site, without our cookies. The GET has them.
      const sent = query.safeParse({ ...ctx.body, ...ctx.query });
      if (!sent.success) throw APIError.fromStatus("BAD_REQUEST", { code: "VALIDATION_ERROR" });
      const params = new URLSearchParams(sent.data);
      const { tenant } = ctx.query ?? {};
      if (typeof tenant === "string") params.set("tenant", tenant);
      // As it came, which better-auth does not decode either.
      throw redirect(`${ctx.context.baseURL}/tenant/callback/${ctx.params?.id}?${params}`);
    }
    const params = new URLSearchParams(ctx.query);
    const context = asTenantRoute(ctx.context, { callback: takeStatePrefix(params) });
    return runEndpoint<never>(ctx, "callbackOAuth", {
      query: Object.fromEntries(params),
      context,
    });
  },
);

type Endpoint = Parameters<typeof dispatchAuthEndpoint>[0];

/**
 * Runs one of better-auth's endpoints, with all hooks, in a request of its own. A plugin may have
 * replaced it (a sign-in that asks a directory): of two with one name, better-auth takes the last.
 */
export async function runEndpoint<Response>(
  ctx: GenericEndpointContext,
  name: keyof typeof ENDPOINTS,
  input: Partial<Pick<GenericEndpointContext, "body" | "query" | "headers">> & {
    context: AuthContext;
  },
): Promise<Answer<Response>> {
  const { plugins = [] } = ctx.context.options;
  const bringing = plugins.findLast(({ endpoints }) => endpoints?.[name]);
  const endpoint: Endpoint = bringing?.endpoints?.[name] ?? ENDPOINTS[name];
  const everything = { asResponse: false, returnHeaders: true, returnStatus: true };
  const answer = await runSeparately(() =>
    dispatchAuthEndpoint(endpoint, { ...ctx, ...input, ...everything }),
  ).catch(withFinalHeaders);
  return answer as Answer<Response>;
}

/** An error has the headers it was thrown with, and those after the hooks. Only the latter count. */
function withFinalHeaders(error: unknown): never {
  const headers = (error as { [kAPIErrorHeaderSymbol]?: Headers })?.[kAPIErrorHeaderSymbol];
  if (isAPIError(error) && headers) error.headers = headers;
  throw error;
}

export const signInMethodsEndpoint = createAuthEndpoint(
  "/tenant/sign-in-methods",
  getOfTenant("How people can sign in at a tenant"),
  async (ctx) => {
    const tenant = await requireTenant(ctx, await requestedTenantId(ctx));
    return ctx.json(await signInMethods(ctx.context, tenant));
  },
);
