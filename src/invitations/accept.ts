import {
  BASE_ERROR_CODES,
  type BetterAuthPlugin,
  type GenericEndpointContext,
  type HookEndpointContext,
} from "better-auth";
import { APIError, createAuthEndpoint, isAPIError, signUpEmail } from "better-auth/api";
import { createEndpoint, createRouter } from "better-call";
import * as z from "zod";
import { SIGN_UP_PATH } from "../constants";
import { type BeforeHook, silentHook, tenantRoute, textOf } from "../framework";
import { whyNotAdmitted } from "../policy/email-domains";
import { type SignInMethods, signInMethods } from "../policy/sign-in-methods";
import { asTenantRoute, hasNoRequest } from "../request/endpoint";
import { requestedTenantId, requireTenant, requireTenantId } from "../request/resolve";
import { runInScope, scopeOf } from "../request/scope";
import { runEndpoint, type SignUpAnswer, type SignUpInput } from "../request/tenant-routes";
import type { Tenant } from "../tenants/cache";
import { get, limited, tenantId } from "../tenants/input";
import type { Inviting } from "../tenants/plugins";
import { INVITATION_HEADER } from "./error-codes";
import { invitationError } from "./errors";
import { openLink } from "./link";
import type { StoredInvitation } from "./options";
import { findByLink, notFound } from "./store";

/** What the page that a link leads to needs. */
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
      // An invited user may sign up where others need an invitation.
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

/** The invitation of a link. The link alone resolves the tenant. */
async function open(ctx: GenericEndpointContext, token: unknown): Promise<StoredInvitation> {
  const link = await openLink(ctx.context, token);
  if (!link) throw notFound();
  const resolve = () => requestedTenantId(ctx);
  // A session in another tenant, which a hook may have read, does not count as requesting that tenant.
  const requested = await (hasNoRequest(ctx) ? resolve() : runInScope(undefined, resolve));
  if (requested !== undefined && requested !== link.tenantId) throw notFound();
  return runInScope(scopeOf(link.tenantId), async () => {
    await requireTenantId(ctx, link.tenantId);
    return findByLink(ctx.context, link);
  });
}

/** The body of an accepting call. The address is in the invitation. */
export type AcceptInput = { token: string } & Omit<SignUpInput, "tenantId" | "email">;

export const ACCEPT_PATH = "/tenant/invitation/accept";
const TRIES = 3;

/**
 * Signs up with the address of the invitation: better-auth's own sign-up, inside the tenant, with the
 * token in a header. The invitation is accepted where the user is created.
 */
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
        return await runEndpoint<SignUpAnswer>(ctx, "signUpEmail", {
          body: { ...body, email: invitation.email },
          headers,
          context: asTenantRoute(ctx.context, { tenantId: invitation.tenantId }),
        });
      } catch (error) {
        // If the invitation was accepted or revoked meanwhile, that is the reason to return.
        await open(ctx, token);
        // An attacker who signs up with the address in the same instant must not stop this call.
        if (tries === TRIES || !isRefusedByDatabase(error)) throw error;
      }
    }
  },
);

/** better-auth's error for a user that the database refuses. */
const isRefusedByDatabase = (error: unknown) =>
  isAPIError(error) &&
  error.statusCode === 422 &&
  error.body?.code === BASE_ERROR_CODES.FAILED_TO_CREATE_USER.code;

/** The tenant of the link: a call that accepts one may come from any host. */
export const acceptedTenant: Inviting["acceptedTenant"] = async ({ path, context, body }) =>
  path === ACCEPT_PATH ? (await openLink(context, body?.token))?.tenantId : undefined;

/**
 * R12: what guards better-auth's sign-up guards accepting: a disabled path, and middlewares of plugins
 * (hooks run in any case). Over HTTP only, as better-auth's own guards.
 */
export const guardAccepting: BeforeHook = {
  matcher: ({ path, request }) => path === ACCEPT_PATH && request !== undefined,

  handler: silentHook(async (ctx) => {
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
    // Without this, better-auth returns headers with the response, as in hooks.
    const input = { ...ctx, path: SIGN_UP_PATH, params, returnHeaders: false };
    const response = await one.middleware(input as Parameters<typeof one.middleware>[0]);
    if (response instanceof Response) return response;
  }
  return undefined;
}

/** Uses a router like better-auth's: matching the patterns ourselves could miss a guard. */
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
