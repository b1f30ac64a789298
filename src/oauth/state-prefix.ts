import type { AuthContext, HookEndpointContext } from "better-auth";
import { constantTimeEqual } from "better-auth/crypto";
import * as z from "zod";
import { decodeBase64url } from "../framework";
import { signFor } from "../keys";
import type { ReturnedState, TenantRoute } from "../request/endpoint";
import { enter, scopeOf } from "../request/scope";
import type { OAuthConfigKey } from "./config-store";

/*
 * What stands in front of the state of a tenant's flow: its tenant, the host where it was started if
 * all tenants share a redirect URI, and for SSO a signature, because there the tenant has to be
 * known before a state is read.
 */

/** What a state is bound to, with the credentials that its flow was started with. */
export type Binding = OAuthConfigKey & { credentials: string };

export type Callback = NonNullable<TenantRoute["callback"]>;

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

export const toText = ({ tenantId, providerId, credentials }: Binding) =>
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

/** Lets better-auth refuse the state, as one that it has not made. */
export function refuseState({ query }: HookEndpointContext): void {
  enter(scopeOf(null));
  // better-auth refuses a missing, empty or repeated state itself.
  if (query?.state && typeof query.state === "string") query.state = "-";
}
