import type { HookEndpointContext } from "better-auth";
import { APIError, createAuthMiddleware, isAPIError } from "better-auth/api";
import type { AfterHook, BeforeHook } from "../framework";
import {
  type Binding,
  holdState,
  isSignedFor,
  keepBinding,
  prefixState,
  readState,
  sign,
  starterOf,
  stateMismatch,
} from "../oauth/state";
import { refuseEarly } from "../policy/admission";
import { changeCall, currentEndpoint, effectiveScope } from "../request/endpoint";
import { getTenantId } from "../request/scope";
import { ACS } from "./saml-response";

/*
 * The state of an OpenID Connect flow that a tenant has started carries the tenant in front, as
 * the states of social sign-in do. Providers that the application has configured for everybody have
 * no row that could name it. Which provider a state is for is in the part of better-auth's state that
 * no client can write, and which one has answered is in the address of its callback.
 */

const bindingOf = (tenantId: string): Binding => ({
  tenantId,
  providerId: "sso",
  credentials: "sso",
});

/** The tenant in the state of a callback, and what to change once the request runs there. */
export async function openReturnedState(ctx: HookEndpointContext) {
  const returned = readState(ctx.query?.state);
  if (!returned) return undefined;
  const { tenantId, state } = returned;
  const isGood = await isSignedFor(ctx.context, returned, bindingOf(tenantId));
  if (!isGood) return undefined;
  return {
    tenantId,
    async apply() {
      if (getTenantId() !== tenantId) return undefined;
      holdState(ctx, state);
      changeCall("query", { state });
    },
  };
}

const SIGN_IN = "/sign-in/sso";
const CALLBACK = "/sso/callback/:providerId";
const SHARED_CALLBACK = "/sso/callback";

/**
 * better-auth has it whether `redirectURI` is set or not. No flow ends there, but a provider may know
 * the address from before, and a code that arrives there would go to whichever provider the state
 * names: to that of another tenant, too.
 */
export const refuseSharedCallback: BeforeHook = {
  matcher: ({ path }) => path === SHARED_CALLBACK,

  handler: createAuthMiddleware(async () => {
    throw new APIError("NOT_FOUND", {
      message: `Each identity provider has a callback of its own: ${CALLBACK}`,
    });
  }),
};

/**
 * A state that is kept in a cookie is no row of a tenant's, and its label can be taken away. So the
 * tenant is in the state as well.
 */
export const nameStartedFlow: BeforeHook = {
  matcher: ({ path }) => path === SIGN_IN || path === CALLBACK,

  handler: createAuthMiddleware(async () => {
    const { tenantId } = effectiveScope();
    if (tenantId) await keepBinding(bindingOf(tenantId));
  }),
};

/** Asked before people are looked up: what somebody has started elsewhere does not end here. */
export async function assertStartedHere(): Promise<void> {
  if (currentEndpoint()?.path !== CALLBACK) return;
  const starter = await starterOf();
  if (starter !== undefined && starter !== getTenantId()) throw stateMismatch();
}

/**
 * Asked before anything is written where a flow ends. better-auth locks the row of the provider first,
 * if it has one, and tells the page of the flow what is thrown from there. A session by a way that
 * the policy does not allow any more would be refused as well, but after the account is linked.
 *
 * Guarded by "%s that the policy has come to forbid leaves nothing behind: %s".
 */
export async function askPolicyOfFlow(): Promise<void> {
  const endpoint = currentEndpoint();
  if (endpoint) await refuseEarly(endpoint);
}

const ENDS = [CALLBACK, ACS];

/** Whether the running endpoint signs people in who come from a provider. */
export const isEndOfFlow = () => ENDS.includes(currentEndpoint()?.path ?? "");

/** Puts the tenant into the address that a flow starts with, be it an answer or a redirect. */
export const labelStartedFlow: AfterHook = {
  matcher: ({ path }) => getTenantId() !== null && (path === SIGN_IN || path === CALLBACK),

  handler: createAuthMiddleware(async (ctx) => {
    const { returned, responseHeaders } = ctx.context;
    if (ctx.path === SIGN_IN) {
      if (typeof returned !== "object" || returned === null || isAPIError(returned)) return;
      const { url } = returned as { url?: unknown };
      const labelled = typeof url === "string" && (await withLabel(ctx, url));
      if (labelled) ctx.context.returned = { ...returned, url: labelled };
      return;
    }
    // A provider has sent somebody without a state, and better-auth starts the flow by itself.
    if (ctx.query?.state !== undefined) return;
    const location = responseHeaders?.get("location");
    const labelled = location && (await withLabel(ctx, location));
    if (labelled) ctx.setHeader("location", labelled);
  }),
};

/** Undefined for an address without a state: SAML has a relay state, which may be signed. */
async function withLabel({ context }: HookEndpointContext, address: string) {
  const tenantId = getTenantId();
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const state = url?.searchParams.get("state");
  if (!url || !state || !tenantId) return undefined;
  const signature = await sign(context, state, bindingOf(tenantId));
  url.searchParams.set("state", prefixState(state, tenantId, signature));
  return url.href;
}
