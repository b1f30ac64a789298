import {
  BASE_ERROR_CODES,
  type BetterAuthPlugin,
  type GenericEndpointContext,
  type HookEndpointContext,
} from "better-auth";
import { APIError, isAPIError } from "better-auth/api";
import { createEndpoint, createRouter } from "better-call";
import { SIGN_UP_PATH } from "../constants";
import { type Answer, textOf } from "../framework";
import { whyNotAdmitted } from "../policy/email-domains";
import type { Inviting } from "../policy/inviting";
import type { SignInMethods } from "../policy/sign-in-methods";
import { asTenantRoute } from "../request/endpoint";
import { requestedTenantId, requireTenantId } from "../request/resolve";
import { runInScope, scopeOf } from "../request/scope";
import { runEndpoint, type SignUpAnswer, signInMethodsEndpoint } from "../request/tenant-routes";
import { lookUpTenant } from "../tenants/cache";
import { INVITATION_HEADER } from "./error-codes";
import { invitationError } from "./errors";
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

/** The tenant of the link that somebody accepts. Whether it is still good is asked later. */
export const tenantOfLink: Inviting["acceptedTenant"] = async ({ context, body }) =>
  (await openLink(context, body?.token))?.tenantId;

/** The invitation of a link, for whoever has the link. It leads into its tenant by itself. */
async function open(ctx: GenericEndpointContext, token: unknown): Promise<StoredInvitation> {
  const link = await openLink(ctx.context, token);
  if (!link) throw notFound();
  const name = () => requestedTenantId(ctx, tenantOptions(ctx.context));
  // Whoever is signed in elsewhere has not named that tenant, though a hook may have read the session.
  const isServerCall = !ctx.request && !ctx.headers;
  const named = await (isServerCall ? name() : runInScope(undefined, name));
  if (named !== undefined && named !== link.tenantId) throw notFound();
  return runInScope(scopeOf(link.tenantId), async () => {
    await requireTenantId(ctx, link.tenantId);
    return findByLink(ctx.context, link);
  });
}

export async function getInvitation(
  ctx: GenericEndpointContext,
  token: string,
): Promise<OpenInvitation> {
  const { tenantId, email, role, expiresAt } = await open(ctx, token);
  const input = { ...ctx, method: "GET" as const, query: { tenantId } };
  const answer = { asResponse: false, returnHeaders: false, returnStatus: false } as const;
  const methods = await runInScope(scopeOf(tenantId), () =>
    signInMethodsEndpoint(tenantOptions(ctx.context))({ ...input, ...answer }),
  );
  // The tenant may be closed to everybody else.
  const { enabled } = methods.emailAndPassword;
  const signUp = enabled && (await canSignUp(ctx, tenantId, email));
  const emailAndPassword = { enabled, signUp };
  return { ...methods, emailAndPassword, email, role: role ?? null, expiresAt };
}

async function canSignUp({ context }: GenericEndpointContext, tenantId: string, email: string) {
  const { emailAndPassword, disabledPaths } = context.options;
  if (emailAndPassword?.disableSignUp || disabledPaths?.includes(SIGN_UP_PATH)) return false;
  return !whyNotAdmitted((await lookUpTenant(context, tenantId))?.policy, email);
}

/** R12: what guards better-auth's sign-up guards this one. Its hooks run with it in any case. */
export async function guardLikeSignUp(ctx: HookEndpointContext): Promise<Response | undefined> {
  if (ctx.context.options.disabledPaths?.includes(SIGN_UP_PATH)) throw new APIError("NOT_FOUND");
  return runMiddlewares(ctx, SIGN_UP_PATH);
}

/**
 * Signs up whoever has the link, with the address of the invitation: better-auth's own sign-up,
 * inside the tenant, with the token along. The invitation is accepted where the user is made.
 */
export async function acceptInvitation(ctx: GenericEndpointContext): Promise<Answer<SignUpAnswer>> {
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
      // Somebody else may have accepted, or a manager revoked it, a moment ago: that is the reason.
      await open(ctx, token);
      // An attacker who signs up with the address in the same instant must not stop this one.
      if (tries === TRIES || !isRefusedByDatabase(error)) throw error;
    }
  }
}

const TRIES = 3;

/** As better-auth says it of a new user. */
const isRefusedByDatabase = (error: unknown) =>
  isAPIError(error) &&
  error.statusCode === 422 &&
  error.body?.code === BASE_ERROR_CODES.FAILED_TO_CREATE_USER.code;

type Middleware = NonNullable<BetterAuthPlugin["middlewares"]>[number];

/** R12: middlewares of plugins that guard a path of better-auth guard what runs its endpoint. */
export async function runMiddlewares(
  ctx: HookEndpointContext,
  path: string,
): Promise<Response | undefined> {
  const { plugins = [] } = ctx.context.options;
  const all = plugins.flatMap(({ middlewares = [] }) => middlewares);
  if (!all.length) return undefined;
  const haveRun = await matching(all, ctx.path ?? "");
  for (const [one, params] of await matching(all, path)) {
    if (haveRun.has(one)) continue;
    // In a hook, better-auth asks for headers along with every response: here it is the response alone.
    const input = { ...ctx, path, params, returnHeaders: false };
    const response = await one.middleware(input as Parameters<typeof one.middleware>[0]);
    if (response instanceof Response) return response;
  }
  return undefined;
}

/** As a router of better-auth's own kind finds them: reading the patterns here could miss a guard. */
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
