import {
  BASE_ERROR_CODES,
  type BetterAuthPlugin,
  type GenericEndpointContext,
  type HookEndpointContext,
} from "better-auth";
import { APIError, createAuthEndpoint, isAPIError, signUpEmail } from "better-auth/api";
import { createEndpoint, createRouter } from "better-call";
import * as z from "zod";
import { SIGN_UP_PATH } from "../../core/constants";
import { asTenantRoute, hasNoRequest } from "../../core/endpoint";
import { CORE_ERROR_CODES } from "../../core/error-codes";
import { type BeforeHook, defineTenantEndpoint, plainHook } from "../../core/hooks";
import { get, limited, tenantId } from "../../core/input";
import { MANAGEMENT } from "../../core/management-calls";
import { runInScope, scopeOf } from "../../core/request";
import { requestedTenantId } from "../../core/resolve/resolve";
import { runEndpoint } from "../../core/resolve/run-endpoint";
import { requireTenantId } from "../../core/tenants/require";
import { textOf } from "../../core/utils";
import type { SignUpAnswer, SignUpInput } from "../email/routes";
import { requireTenant, type Tenant } from "../management/tenant";
import { whyNotAdmitted } from "../policy/email-domains";
import { type SignInMethods, signInMethods } from "../sign-in-page/sign-in-methods";
import { INVITATION_HEADER } from "./error-codes";
import { invitationError } from "./errors";
import { openLink } from "./link";
import type { StoredInvitation } from "./options";
import { findByLink, notFound } from "./store";

/** The data for the page that the link leads to. */
export interface OpenInvitation extends SignInMethods {
  email: string;
  role: string | null;
  expiresAt: Date;
}

const token = limited(4096).min(1).meta({ description: "The token of the link" });

export const getInvitationEndpoint = createAuthEndpoint(
  "/tenant/invitation/get",
  get(z.object({ token, tenantId: tenantId.optional() }), "What the page of an invitation needs"),
  async (ctx) => {
    const { context } = ctx;
    const { tenantId, email, role, expiresAt } = await open(ctx, ctx.query.token);
    const answer = await runInScope(scopeOf(tenantId), async (): Promise<OpenInvitation> => {
      const tenant = await requireTenant(ctx, tenantId);
      const methods = await signInMethods(context, tenant);
      const { enabled } = methods.emailAndPassword;
      // Not the `signUp` of the sign-in page: an invited user may sign up even if the policy
      // requires an invitation.
      const emailAndPassword = { enabled, signUp: enabled && canSignUp(ctx, tenant, email) };
      return { ...methods, emailAndPassword, email, role: role ?? null, expiresAt };
    });
    return ctx.json(answer);
  },
);

function canSignUp({ context }: GenericEndpointContext, { policy }: Tenant, email: string) {
  const { emailAndPassword, disabledPaths } = context.options;
  if (emailAndPassword?.disableSignUp || disabledPaths?.includes(SIGN_UP_PATH)) return false;
  return !whyNotAdmitted(policy, email);
}

/** Returns the invitation of a link. Refuses a request that names another tenant. */
async function open(ctx: GenericEndpointContext, token: unknown): Promise<StoredInvitation> {
  const link = await openLink(ctx.context, token);
  if (!link) throw notFound();
  const resolve = () => requestedTenantId(ctx);
  // Runs in a new request. In this one, a hook may have read a session, whose tenant must not count
  // as named by the request.
  const requested = await (hasNoRequest(ctx) ? resolve() : runInScope(undefined, resolve));
  if (requested !== undefined && requested !== link.tenantId) throw notFound();
  return runInScope(scopeOf(link.tenantId), async () => {
    await requireTenantId(ctx, link.tenantId);
    return findByLink(ctx.context, link);
  });
}

/** The body of `/tenant/invitation/accept`. The email comes from the invitation. */
export type AcceptInput = { token: string } & Omit<SignUpInput, "tenantId" | "email">;

export const ACCEPT_PATH = "/tenant/invitation/accept";
const TRIES = 3;

/**
 * Signs up with the address of the invitation. Runs better-auth's own sign-up inside the tenant,
 * with the token in a header. `findAdmission` (see opener.ts) accepts the invitation when the user
 * is created.
 */
export const acceptInvitationEndpoint = defineTenantEndpoint(
  ACCEPT_PATH,
  {
    method: "POST",
    cloneRequest: true,
    body: z.object({ token }).and(signUpEmail().options.body),
    metadata: {
      openapi: { description: "Accept an invitation with a password" },
      $Infer: { body: {} as AcceptInput },
      ...MANAGEMENT,
    },
  },
  async (ctx) => {
    const { token, tenantId: _, email, ...body } = (ctx.body ?? {}) as Record<string, unknown>;
    const invitation = await open(ctx, token);
    if (email !== undefined && textOf(email).toLowerCase() !== invitation.email) {
      throw invitationError("INVITATION_EMAIL_MISMATCH");
    }
    const headers = new Headers(ctx.headers ?? ctx.request?.headers);
    headers.set(INVITATION_HEADER, String(token));
    for (let tries = 1; ; tries++) {
      try {
        return await runEndpoint<SignUpAnswer>(ctx, "signUpEmail", signUpEmail(), {
          body: { ...body, email: invitation.email },
          headers,
          context: asTenantRoute(ctx.context, { tenantId: invitation.tenantId }),
        });
      } catch (error) {
        // Throws the reason if the invitation was accepted or revoked meanwhile.
        await open(ctx, token);
        // Tries again: an attacker who signs up with the address at the same moment must not win.
        if (tries === TRIES || !isRefusedByDatabase(error)) throw error;
      }
    }
  },
);

/** The error codes if the database refuses the new user. */
const REFUSED: unknown[] = [
  BASE_ERROR_CODES.FAILED_TO_CREATE_USER.code,
  BASE_ERROR_CODES.USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL.code,
  CORE_ERROR_CODES.TRY_AGAIN.code,
];

const isRefusedByDatabase = (error: unknown) =>
  isAPIError(error) && REFUSED.includes(error.body?.code);

/** Returns the tenant of the link, because an accepting call may come from any host. */
export const acceptedTenant = async ({ path, context, body }: HookEndpointContext) =>
  path === ACCEPT_PATH ? (await openLink(context, body?.token))?.tenantId : undefined;

/**
 * R12: applies better-auth's guards for sign-up to accepting: `disabledPaths`, and middlewares of
 * plugins. (Hooks run in any case.) Like better-auth, applies these over HTTP only.
 */
export const guardAccepting: BeforeHook = {
  matcher: ({ path, request }) => path === ACCEPT_PATH && request !== undefined,

  handler: plainHook(async (ctx) => {
    const { disabledPaths, plugins = [] } = ctx.context.options;
    if (disabledPaths?.includes(SIGN_UP_PATH)) throw new APIError("NOT_FOUND");
    const all = plugins.flatMap(({ middlewares = [] }) => middlewares);
    return all.length ? runSignUpMiddlewares(ctx, all) : undefined;
  }),
};

type Middleware = NonNullable<BetterAuthPlugin["middlewares"]>[number];

async function runSignUpMiddlewares(ctx: HookEndpointContext, all: Middleware[]) {
  const haveRun = await matching(all, ACCEPT_PATH);
  for (const [one, params] of await matching(all, SIGN_UP_PATH)) {
    if (haveRun.has(one)) continue;
    // Without `returnHeaders: false`, better-auth wraps the response together with headers.
    const input = { ...ctx, path: SIGN_UP_PATH, params, returnHeaders: false };
    const response = await one.middleware(input as Parameters<typeof one.middleware>[0]);
    if (response instanceof Response) return response;
  }
  return undefined;
}

/** Finds middlewares by a router like better-auth's, because other matching could miss a guard. */
async function matching(middlewares: Middleware[], path: string) {
  const found = new Map<Middleware, unknown>();
  const routerMiddleware = middlewares.map((one) => ({
    path: one.path,
    middleware: async ({ params }: { params: unknown }) => void found.set(one, params),
  })) as never;
  const any = createEndpoint("/**", { method: "GET" }, async () => null);
  const router = createRouter({ any }, { openapi: { disabled: true }, routerMiddleware });
  await router.handler(new Request(`http://localhost${path}`));
  return found;
}
