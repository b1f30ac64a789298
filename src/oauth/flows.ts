import type { AuthContext } from "better-auth";
import { APIError, addOAuthServerContext, getOAuthState, isAPIError } from "better-auth/api";
import type { OAuthProvider } from "better-auth/oauth2";
import { CALLBACK_PATH } from "../constants";
import { errorRedirect, rootCause } from "../framework";
import { stateLabels } from "../naming/guards";
import type { Binding } from "../naming/state-label";
import { currentEndpoint } from "../scope/endpoint";
import { notes } from "../scope/scope";

/** Says in a state that a tenant has started it, where no client can write to. */
const SERVER_CONTEXT_KEY = "tenantAuth";

export const isCallback = () => currentEndpoint()?.path === CALLBACK_PATH;

/**
 * A tenant's provider, which puts the tenant into the state that it is given, and sends people back
 * to the tenants' callback, whichever of better-auth's endpoints starts the flow.
 */
export async function startingFlows(
  context: AuthContext,
  provider: OAuthProvider,
  binding: Binding,
): Promise<OAuthProvider> {
  await addOAuthServerContext({ [SERVER_CONTEXT_KEY]: binding.tenantId });
  return {
    ...provider,
    createAuthorizationURL: async (flow) => {
      const { labelState } = await stateLabels();
      const state = await labelState(context, flow.state, binding);
      const redirectURI = `${context.baseURL}${provider.callbackPath}`;
      return provider.createAuthorizationURL({ ...flow, state, redirectURI });
    },
  };
}

/** Refuses a callback whose state was made for another tenant, provider or config (R6). */
export async function assertReturned(context: AuthContext, binding: Binding): Promise<void> {
  const { state } = notes().returned ?? {};
  const { isBoundTo } = await stateLabels();
  if (!state || !(await isBoundTo(context, state, binding))) throw stateMismatch();
}

/** Whether the state that better-auth's own callback has just read was started by a tenant. */
export async function isTenantsState(): Promise<boolean> {
  return (await getOAuthState())?.serverContext?.[SERVER_CONTEXT_KEY] !== undefined;
}

export const stateMismatch = () => APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });

/** In a callback an error is a redirect to where the flow wanted its errors; elsewhere an answer. */
export async function redirectFromCallback(error: unknown): Promise<never> {
  const { context } = currentEndpoint() ?? {};
  if (!context || !isCallback()) throw error;
  // Drivers put whole rows into their errors.
  if (!isAPIError(error)) {
    const { name, code } = rootCause(error);
    context.logger.error(`The OAuth callback failed: ${name} ${code ?? ""}`);
  }
  const code = isAPIError(error) ? error.body?.code : undefined;
  const errorURL = (await getOAuthState())?.errorURL;
  throw errorRedirect(context, (code ?? "internal_server_error").toLowerCase(), errorURL);
}
