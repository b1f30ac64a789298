import type { AuthContext, HookEndpointContext } from "better-auth";
import { APIError, addOAuthServerContext, getOAuthState, isAPIError } from "better-auth/api";
import { constantTimeEqual, makeSignature } from "better-auth/crypto";
import type { OAuthProvider } from "better-auth/oauth2";
import * as z from "zod";
import { CALLBACK_PATH } from "../constants";
import { decodeBase64url, errorRedirect, rootCause } from "../framework";
import { heldState } from "../isolation/single-use";
import { signFor } from "../keys";
import { currentEndpoint, type ReturnedState, type TenantRoute } from "../request/endpoint";
import { requestedTenantId } from "../request/resolve";
import { enter, getTenantId, requestSlot, scopeOf } from "../request/scope";
import { lookUpTenant } from "../tenants/cache";
import type { OAuthConfigKey } from "./config-store";
import { callbackBase, openSealedCode, sendToStartHost, startedState } from "./return-host";

/*
 * A provider sends users back with the state that it was given, and nothing else. A tenant's flow
 * puts its tenant in front of that state, so it is known before anything is read. Tenant, provider
 * and credentials of the flow (R6) are in what better-auth stores for the state, where no client can
 * write. SSO has to know them before it reads a state: there, a signature is in front.
 */

type Callback = NonNullable<TenantRoute["callback"]>;

/** What a provider's callback came back with: its state, and the tenant in its redirect URI. */
export const returned = requestSlot<Callback>();

/** What a state is bound to, with the credentials that its flow was started with. */
export type Binding = OAuthConfigKey & { credentials: string };

export function prefixState(state: string, tenantId: string, signature?: string, host?: string) {
  const text = host ? `${tenantId}@${host}` : tenantId;
  const tenant = z.util.uint8ArrayToBase64url(new TextEncoder().encode(text));
  const length = String(tenant.length).padStart(LENGTH, "0");
  return (signature ? `s${signature}` : "") + length + tenant + state;
}

// Letters, digits, "-" and "_" only: some providers accept no other characters.
const PREFIXED = /^(?:s([\w-]{43}))?(\d{3})([\w-]+)$/;
const LENGTH = 3;

/** Undefined for a state that no tenant started. */
export function readState(returned: unknown): ReturnedState | undefined {
  const [, signature, length, rest = ""] = PREFIXED.exec(String(returned)) ?? [];
  const [tenantId, host] = decodeBase64url(rest.slice(0, Number(length)))?.split("@") ?? [];
  const state = rest.slice(Number(length));
  return tenantId && state ? { state, tenantId, host, signature } : undefined;
}

export async function sign(ctx: AuthContext, state: string, binding: Binding): Promise<string> {
  const signature = await signFor("state", JSON.stringify([state, toText(binding)]), ctx);
  return signature.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export async function isSignedFor(
  ctx: AuthContext,
  { state, signature }: ReturnedState,
  binding: Binding,
): Promise<boolean> {
  return signature !== undefined && constantTimeEqual(signature, await sign(ctx, state, binding));
}

const toText = ({ tenantId, providerId, credentials }: Binding) =>
  JSON.stringify([tenantId, providerId, credentials]);

/** Leaves better-auth's own state in the query of a callback, and returns what came with it. */
export function takeStatePrefix(query: URLSearchParams): Callback {
  const [sent = null, ...others] = query.getAll("state");
  const state = others.length ? undefined : readState(sent);
  const hasState = sent !== null;
  const [tenant, ...more] = query.getAll("tenant");
  if (state) query.set("state", state.state);
  query.delete("tenant");
  return { state: more.length ? undefined : state, hasState, tenant };
}

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

/** Lets better-auth refuse the state, as one that it has not made. */
export function refuseState({ query }: HookEndpointContext): void {
  enter(scopeOf(null));
  // better-auth refuses a missing, empty or repeated state itself.
  if (query?.state && typeof query.state === "string") query.state = "-";
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
