import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, addOAuthServerContext, getOAuthState, isAPIError } from "better-auth/api";
import { makeSignature } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { CALLBACK_PATH } from "../../core/constants";
import { rootCause } from "../../core/database-errors";
import { currentEndpoint, tenantRouteOf } from "../../core/endpoint";
import type { Claim } from "../../core/extension";
import { consumeWhenRead } from "../../core/isolate/single-use";
import { getTenantId } from "../../core/request";
import { invalidateState } from "../../core/resolve/addresses";
import { requestedTenantId } from "../../core/resolve/resolve";
import { lookUpTenant } from "../../core/tenants/tenants";
import { errorRedirect } from "../../core/utils";
import { callbackBase, openSealedCode, sendToStartHost, startedState } from "./return-host";
import { type Binding, type Callback, toText } from "./state-prefix";

/*
 * A provider returns the state that it was given, and nothing else. So a tenant's flow puts its
 * tenant in front of the state, where the callback reads it first. better-auth stores the flow's
 * tenant, provider and credentials (R6) with the state, where no client can write.
 */

/** Returns what `takeStatePrefix` removed from the query of a callback. */
export const callbackOf = (ctx: { context: object }) =>
  tenantRouteOf(ctx)?.extracted as Callback | undefined;

/**
 * Claims (see `Claim` in core/extension.ts) a tenant's callback for that tenant, and better-auth's
 * own callback for the platform, even if the request names a tenant.
 */
export async function claimOfCallback(ctx: HookEndpointContext): Promise<Claim | undefined> {
  const callback = callbackOf(ctx);
  if (callback) return claimOfState(ctx, callback);
  return ctx.path === CALLBACK_PATH ? { tenantId: null } : undefined;
}

/** Claims a callback for the tenant of its state. A callback without a state must name a tenant. */
async function claimOfState(ctx: HookEndpointContext, callback: Callback): Promise<Claim> {
  const { state, hasState } = callback;
  const tenantId = state?.tenantId ?? (hasState ? undefined : await requestedTenantId(ctx));
  if (!hasState && tenantId === undefined) throw errorRedirect(ctx.context, "state_not_found");
  // Also enters a suspended tenant: the flow then fails with a redirect to its error page.
  if (!tenantId || !(await lookUpTenant(ctx.context, tenantId))) return refuse(ctx);
  if (state) {
    const isRight = await sendToStartHost(ctx, state, callback);
    if (!isRight || !(await openSealedCode(ctx, state))) return refuse(ctx);
    holdState(ctx, state.state);
  }
  return { tenantId, unavailable: "enter" };
}

/** Claims the request for the platform, where better-auth rejects the state. */
function refuse(ctx: HookEndpointContext): Claim {
  invalidateState(ctx);
  return { tenantId: null };
}

/**
 * Lets better-auth consume the state only if the browser sent the state's cookie. Otherwise, an
 * attacker who has seen a state could use it up before the user returns.
 */
export function holdState(ctx: HookEndpointContext, state: string): void {
  const held = isHeld(ctx, state).then((isHeld) => (isHeld ? state : undefined));
  // Code that awaits `held` gets its error. If no code does, the error must not end the process.
  held.catch(() => {});
  consumeWhenRead(held);
}

/**
 * Returns whether the browser sent the state's cookie. It may send several with that name.
 *
 * Guarded by "better-auth signs the cookie of a state with the secret alone".
 */
async function isHeld({ headers, context }: HookEndpointContext, state: string): Promise<boolean> {
  if (context.oauthConfig.skipStateCookieCheck) return true;
  const { name } = context.createAuthCookie("state");
  // Read before the first await, because a hook may change the headers later.
  const sent = headers?.get("cookie")?.split(/;\s*/) ?? [];
  const value = `${state}.${await makeSignature(state, context.secret)}`;
  return sent.includes(`${name}=${encodeURIComponent(value)}`) || sent.includes(`${name}=${value}`);
}

/**
 * Key of the binding in `serverContext`, the part of an OAuth state that no client can write.
 *
 * Guarded by "a client cannot put anything into the part of the state that the server trusts".
 */
const SERVER_CONTEXT_KEY = "tenantAuth";

/** Stores the binding with the state that the running request is about to create. */
export const keepBinding = (binding: Binding) =>
  addOAuthServerContext({ [SERVER_CONTEXT_KEY]: toText(binding) });

/**
 * Returns the tenant that started the flow whose state better-auth has just read. Null for the
 * platform, undefined if no state was read.
 */
export async function starterOf(): Promise<string | null | undefined> {
  const kept = await startedFor();
  if (kept) return JSON.parse(String(kept))[0];
  return (await getOAuthState()) ? null : undefined;
}

/**
 * Returns a provider that adds the tenant to each state and sends users back to the tenants'
 * callback, in all endpoints that start a flow.
 */
export async function startingFlows(
  context: AuthContext,
  provider: OAuthProvider,
  binding: Binding,
): Promise<OAuthProvider> {
  await keepBinding(binding);
  return {
    ...provider,
    createAuthorizationURL: async (flow) => {
      // Refuses states without this binding: another plugin, such as oauthPopup(), created them.
      await assertBound(binding);
      const state = await startedState(context, flow.state, binding.tenantId);
      const redirectURI = callbackBase(context) + provider.callbackPath;
      return provider.createAuthorizationURL({ ...flow, state, redirectURI });
    },
  };
}

/** Refuses a state of another tenant, provider or config (R6). */
export async function assertBound(binding: Binding): Promise<void> {
  if ((await startedFor()) !== toText(binding)) throw stateMismatch();
}

/** Returns whether a tenant started the state that better-auth's own callback has just read. */
export const isTenantsState = async () => (await startedFor()) !== undefined;

const startedFor = async () => (await getOAuthState())?.serverContext?.[SERVER_CONTEXT_KEY];

export const stateMismatch = () => APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });

/** Turns an error in a callback into a redirect to the flow's error page. */
export async function redirectFromCallback(error: unknown): Promise<never> {
  const { context, params, path } = currentEndpoint() ?? {};
  const isRedirect = isAPIError(error) && error.status === "FOUND";
  if (!context || path !== CALLBACK_PATH || isRedirect) throw error;
  // Drivers put whole rows into their errors, so only the code is logged.
  if (!isAPIError(error)) {
    const { name, code } = rootCause(error);
    context.logger.error(
      `The OAuth callback of ${params?.id} at tenant ${getTenantId()} failed: ${code ?? name}`,
    );
  }
  const code = isAPIError(error) ? error.body?.code : undefined;
  const errorURL = (await getOAuthState())?.errorURL;
  throw errorRedirect(context, (code ?? "internal_server_error").toLowerCase(), errorURL);
}
