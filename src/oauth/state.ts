import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, addOAuthServerContext, getOAuthState, isAPIError } from "better-auth/api";
import { makeSignature } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { CALLBACK_PATH } from "../constants";
import { errorRedirect, rootCause } from "../framework";
import { heldState } from "../isolation/single-use";
import { currentEndpoint } from "../request/endpoint";
import { requestedTenantId } from "../request/resolve";
import { enter, getTenantId, requestSlot, scopeOf } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import { callbackBase, openSealedCode, sendToStartHost, startedState } from "./return-host";
import { type Binding, type Callback, refuseState, toText } from "./state-prefix";

/*
 * A provider sends users back with the state that it was given, and nothing else. A tenant's flow
 * puts its tenant in front of that state, so it is known before anything is read. Tenant, provider
 * and credentials of the flow (R6) are in what better-auth stores for the state, where no client can
 * write.
 */

/** What a provider's callback came back with: its state, and the tenant in its redirect URI. */
export const returned = requestSlot<Callback>();

/** The state of a callback resolves the tenant. Without a state, the request has to. */
export async function enterByState(ctx: HookEndpointContext, callback: Callback): Promise<void> {
  const { state, hasState } = callback;
  const tenantId = state?.tenantId ?? (hasState ? undefined : await requestedTenantId(ctx));
  if (!hasState && tenantId === undefined) throw errorRedirect(ctx.context, "state_not_found");
  // A suspended tenant is entered: the flow then fails with a redirect to its error page.
  if (!tenantId || !(await lookUpTenant(ctx.context, tenantId))) return refuseState(ctx);
  enter(scopeOf(tenantId));
  if (state) {
    const isRight = await sendToStartHost(ctx, state, callback);
    if (!isRight || !(await openSealedCode(ctx, state))) return refuseState(ctx);
    holdState(ctx, state.state);
  }
  returned.set(callback);
}

/** Lets the state be consumed if the browser has its cookie: others must not use it up. */
export function holdState(ctx: HookEndpointContext, state: string): void {
  const held = isHeld(ctx, state).then((isHeld) => (isHeld ? state : undefined));
  // The request that reads the state handles an error. Without one, it must not end the process.
  held.catch(() => {});
  heldState.set(held);
}

/**
 * Whether the browser sent the cookie of the state. It may send several cookies of that name.
 *
 * Guarded by "better-auth signs the cookie of a state with the secret alone".
 */
async function isHeld({ headers, context }: HookEndpointContext, state: string): Promise<boolean> {
  if (context.oauthConfig.skipStateCookieCheck) return true;
  const { name } = context.createAuthCookie("state");
  // Before the first await, because a hook may change the headers meanwhile.
  const sent = headers?.get("cookie")?.split(/;\s*/) ?? [];
  const value = `${state}.${await makeSignature(state, context.secret)}`;
  return sent.includes(`${name}=${encodeURIComponent(value)}`) || sent.includes(`${name}=${value}`);
}

/** The key of the binding in the part of a state that no client can write. */
const SERVER_CONTEXT_KEY = "tenantAuth";

/** Binds the state that the running request is about to start. */
export const keepBinding = (binding: Binding) =>
  addOAuthServerContext({ [SERVER_CONTEXT_KEY]: toText(binding) });

/** The tenant that started the state which was just read; undefined if none was read. */
export async function starterOf(): Promise<string | null | undefined> {
  const kept = await startedFor();
  if (kept) return JSON.parse(String(kept))[0];
  return (await getOAuthState()) ? null : undefined;
}

/**
 * A tenant's provider, which puts the tenant into the state that it is given, and sends users back
 * to the tenants' callback, from every endpoint of better-auth that starts a flow.
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
      // A plugin that makes states itself, as oauthPopup() does, cannot bind them to a tenant.
      await assertBound(binding);
      const state = await startedState(context, flow.state, binding.tenantId);
      const redirectURI = callbackBase(context) + provider.callbackPath;
      return provider.createAuthorizationURL({ ...flow, state, redirectURI });
    },
  };
}

/** Refuses a state that was made for another tenant, provider or config (R6). */
export async function assertBound(binding: Binding): Promise<void> {
  if ((await startedFor()) !== toText(binding)) throw stateMismatch();
}

/** Whether the state that better-auth's own callback has just read was started by a tenant. */
export const isTenantsState = async () => (await startedFor()) !== undefined;

const startedFor = async () => (await getOAuthState())?.serverContext?.[SERVER_CONTEXT_KEY];

export const stateMismatch = () => APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });

/** In a callback, an error becomes a redirect to the flow's error page. */
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
