import type { AuthContext, HookEndpointContext } from "better-auth";
import {
  APIError,
  addOAuthServerContext,
  createAuthMiddleware,
  getOAuthState,
  isAPIError,
} from "better-auth/api";
import { constantTimeEqual, makeSignature } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import { CALLBACK_PATH } from "../constants";
import { errorRedirect, rootCause } from "../framework";
import type { ResolvedOptions } from "../options";
import { currentEndpoint, type StandIn } from "../scope/endpoint";
import { enter, getTenantId, notes, type ReturnedState, settled } from "../scope/scope";
import { namedTenantId, statusOf } from "./request";

/*
 * A provider sends people back without a word about a tenant, but for the state that it was given.
 * So a tenant's flow puts its tenant there: in front of the state that better-auth has made, with a
 * signature that binds it to the tenant, the provider and the credentials that the flow was started
 * with (R6). That names the tenant of the callback before anything is read.
 */

/** What a state is bound to: it is good for exactly this and for nothing else. */
export interface Binding {
  tenantId: string;
  /** When the tenant was created: a number may be given to a second tenant. */
  since: string | undefined;
  providerId: string;
  /** Which credentials the flow was started with. */
  credentials: string;
}

export async function labelState(
  ctx: AuthContext,
  state: string,
  binding: Binding,
): Promise<string> {
  const tenant = toText(binding.tenantId);
  const length = String(tenant.length).padStart(LENGTH, "0");
  return (await sign(ctx, state, binding)) + length + tenant + state;
}

// Letters, digits, "-" and "_" only: there are providers that take nothing else.
const LABELLED = /^([\w-]{43})(\d{3})([\w-]+)$/;
const LENGTH = 3;

/** Undefined for a state that no tenant has started. */
export function readState(labelled: unknown): ReturnedState | undefined {
  const [, signature, length, rest = ""] = LABELLED.exec(String(labelled)) ?? [];
  const tenantId = fromText(rest.slice(0, Number(length)));
  const state = rest.slice(Number(length));
  return signature && tenantId && state ? { state, tenantId, signature } : undefined;
}

const toText = (value: string) =>
  toSafe(btoa(String.fromCharCode(...new TextEncoder().encode(value))));

function fromText(text: string): string | undefined {
  try {
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

const toSafe = (base64: string) =>
  base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** Refuses a state of another tenant or provider, and one whose config has changed since. */
export async function isBoundTo(
  ctx: AuthContext,
  { state, signature }: ReturnedState,
  binding: Binding,
): Promise<boolean> {
  return constantTimeEqual(signature, await sign(ctx, state, binding));
}

const sign = async (ctx: AuthContext, state: string, binding: Binding) => {
  const { tenantId, since, providerId, credentials } = binding;
  const bound = ["better-auth-tenant:state", state, tenantId, since, providerId, credentials];
  return toSafe(await makeSignature(JSON.stringify(bound), ctx.secret));
};

/** Leaves better-auth's own state in the query of a callback, and returns what came with it. */
export function takeLabel(query: URLSearchParams): NonNullable<StandIn["callback"]> {
  const state = readState(query.get("state"));
  const hasState = query.has("state");
  const [tenant, ...more] = query.getAll("tenant");
  if (state) query.set("state", state.state);
  query.delete("tenant");
  return { state: more.length ? undefined : state, hasState, tenant };
}

/** The state of a provider's callback names the tenant. Without one, the request has to. */
export async function enterByState(
  ctx: HookEndpointContext,
  options: ResolvedOptions,
  { state, hasState, tenant }: NonNullable<StandIn["callback"]>,
): Promise<void> {
  const tenantId = state?.tenantId ?? (hasState ? undefined : await namedTenantId(ctx, options));
  if (!hasState && tenantId === undefined) throw errorRedirect(ctx.context, "state_not_found");
  // One that is suspended is entered: the flow fails where it gets its provider, and tells its page.
  if (!tenantId || !(await statusOf(ctx, tenantId))) return refuseState(ctx);
  enter(settled(tenantId));
  notes().returned = { state, tenant };
  if (state && (await isHeld(ctx, state.state))) notes().heldState = state.state;
}

/** better-auth refuses a state that it has not made, as it does everywhere, and its hooks see it. */
function refuseState({ query }: HookEndpointContext): void {
  enter(settled(null));
  if (query) query.state = "-";
}

/** Whether the browser has shown the cookie that better-auth gave it along with the state. */
export async function isHeld(ctx: HookEndpointContext, state: string): Promise<boolean> {
  if (ctx.context.oauthConfig.skipStateCookieCheck) return true;
  const input = { headers: ctx.headers, context: ctx.context } as Parameters<typeof readCookie>[0];
  return (await readCookie(input)) === state;
}

const readCookie = createAuthMiddleware(async (ctx) =>
  ctx.getSignedCookie(ctx.context.createAuthCookie("state").name, ctx.context.secret),
);

/** Says in a state that a tenant has started it, where no client can write to. */
const SERVER_CONTEXT_KEY = "tenantAuth";

export const isCallback = () => currentEndpoint()?.path === CALLBACK_PATH;

/** Says it in the state that the running request is about to start. */
export const nameFlow = (tenantId: string) =>
  addOAuthServerContext({ [SERVER_CONTEXT_KEY]: tenantId });

/** Who has started the state that was just read; undefined where none was. */
export async function starterOf(): Promise<unknown> {
  const state = await getOAuthState();
  return state ? (state.serverContext?.[SERVER_CONTEXT_KEY] ?? null) : undefined;
}

/**
 * A tenant's provider, which puts the tenant into the state that it is given, and sends people back
 * to the tenants' callback, whichever of better-auth's endpoints starts the flow.
 */
export async function startingFlows(
  context: AuthContext,
  provider: OAuthProvider,
  binding: Binding,
): Promise<OAuthProvider> {
  await nameFlow(binding.tenantId);
  return {
    ...provider,
    createAuthorizationURL: async (flow) => {
      const state = await labelState(context, flow.state, binding);
      const redirectURI = `${context.baseURL}${provider.callbackPath}`;
      return provider.createAuthorizationURL({ ...flow, state, redirectURI });
    },
  };
}

/** Refuses a callback whose state was made for another tenant, provider or config (R6). */
export async function assertReturned(context: AuthContext, binding: Binding): Promise<void> {
  const { state } = notes().returned ?? {};
  if (!state || !(await isBoundTo(context, state, binding))) throw stateMismatch();
}

/** Whether the state that better-auth's own callback has just read was started by a tenant. */
export async function isTenantsState(): Promise<boolean> {
  return ((await starterOf()) ?? null) !== null;
}

export const stateMismatch = () => APIError.fromStatus("FORBIDDEN", { code: "state_mismatch" });

/** In a callback an error is a redirect to where the flow wanted its errors; elsewhere an answer. */
export async function redirectFromCallback(error: unknown): Promise<never> {
  const { context, params } = currentEndpoint() ?? {};
  if (!context || !isCallback()) throw error;
  // Drivers put whole rows into their errors.
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
