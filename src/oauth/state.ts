import { tryGetCurrentAuthEndpointContext } from "@better-auth/core/context";
import { appendQueryParams } from "@better-auth/core/utils/url";
import type { AuthContext } from "better-auth";
import { APIError, addOAuthServerContext, getOAuthState, isAPIError } from "better-auth/api";
import { rootCause } from "../scope/root-cause";
import { currentScope, settleByState } from "../scope/scope";

/** What an OAuth state is bound to: it is good for exactly this and for nothing else (R6). */
export interface Binding {
  tenantId: string;
  providerId: string;
  /** Which credentials the flow was started with. */
  credentials: string;
}

/** Where the binding travels: in the part of the state that no client can write to. */
const SERVER_CONTEXT_KEY = "tenantAuth";

export const CALLBACK_PATH = "/callback/:id";

export function isCallback(): boolean {
  return tryGetCurrentAuthEndpointContext()?.path === CALLBACK_PATH;
}

/** Binds the state that better-auth is about to make. */
export async function bindState(binding: Binding): Promise<void> {
  await addOAuthServerContext({ [SERVER_CONTEXT_KEY]: binding });
  const scope = currentScope();
  if (scope) scope.startsOAuth = true;
}

/** What the state is bound to that better-auth's callback has just read. */
export async function readBinding() {
  const state = await getOAuthState();
  const binding = state?.serverContext?.[SERVER_CONTEXT_KEY] as Binding | undefined;
  const scope = currentScope();
  // A state in a cookie or in secondary storage did not come through the border of the database:
  // it names its tenant here.
  const pastBorder = scope?.awaitsState !== undefined && binding !== undefined;
  if (pastBorder) settleByState(scope, binding.tenantId);
  return { binding, pastBorder };
}

/** Refuses a state of another tenant or provider, and one whose config has changed since. */
export function assertSameBinding(started: Binding | undefined, now: Binding): void {
  const same =
    started?.tenantId === now.tenantId &&
    started.providerId === now.providerId &&
    started.credentials === now.credentials;
  if (!same) throw stateMismatch();
}

export const stateMismatch = () => APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });

/** In a callback an error is a redirect to where the flow wanted its errors; elsewhere an answer. */
export async function redirectFromCallback(error: unknown): Promise<never> {
  const { context } = tryGetCurrentAuthEndpointContext() ?? {};
  if (!context || !isCallback()) throw error;
  return redirectWithError(context, error);
}

export async function redirectWithError(context: AuthContext, error: unknown): Promise<never> {
  // Drivers put whole rows into their errors.
  if (!isAPIError(error)) {
    const { name, code } = rootCause(error);
    context.logger.error(`The OAuth callback failed: ${name} ${code ?? ""}`);
  }
  const fallback = context.options.onAPIError?.errorURL ?? `${context.baseURL}/error`;
  const errorURL = (await getOAuthState())?.errorURL ?? fallback;
  const code = isAPIError(error) ? error.body?.code : undefined;
  const params = new URLSearchParams({ error: (code ?? "internal_server_error").toLowerCase() });
  throw redirect(appendQueryParams(errorURL, params));
}

export const redirect = (location: string) => new APIError("FOUND", undefined, { location });
