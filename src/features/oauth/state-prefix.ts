import type { AuthContext } from "better-auth";
import { constantTimeEqual } from "better-auth/crypto";
import * as z from "zod";
import { signFor } from "../../core/keys";
import { decodeBase64url } from "../../core/utils";
import type { OAuthConfigKey } from "./config-store";

/*
 * The state of a tenant's flow has a prefix: the tenant, and with `redirectBaseURL` the host where
 * the flow started. With a host, and in SSO flows, the prefix is signed, because the callback
 * relies on it before better-auth reads the stored state.
 */

/** The tenant, provider and credentials of the flow that a state belongs to. */
export type Binding = OAuthConfigKey & { credentials: string };

/** A state that a provider returned, split into its prefix and better-auth's part. */
export interface ReturnedState {
  state: string;
  tenantId: string;
  /** The host where the flow started, if `redirectBaseURL` is set. */
  host?: string | undefined;
  signature?: string | undefined;
}

/** The state and the `tenant` parameter in the query of a callback. */
export interface Callback {
  state: ReturnedState | undefined;
  hasState: boolean;
  tenant: string | undefined;
}

export function prefixState(state: string, tenantId: string, signature?: string, host?: string) {
  const text = host ? `${tenantId}@${host}` : tenantId;
  const tenant = z.util.uint8ArrayToBase64url(new TextEncoder().encode(text));
  const length = String(tenant.length).padStart(LENGTH, "0");
  return (signature ? `s${signature}` : "") + length + tenant + state;
}

// Letters, digits, "-" and "_" only: some providers accept no other characters.
const PREFIXED = /^(?:s([\w-]{43}))?(\d{3})([\w-]+)$/;
const LENGTH = 3;

/** Splits a returned state. Undefined for a state without a prefix. */
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

/** Removes the state's prefix and the `tenant` parameter from a query, and returns them. */
export function takeStatePrefix(query: URLSearchParams): Callback {
  const [sent = null, ...others] = query.getAll("state");
  const state = others.length ? undefined : readState(sent);
  const hasState = sent !== null;
  const [tenant, ...more] = query.getAll("tenant");
  if (state) query.set("state", state.state);
  query.delete("tenant");
  return { state: more.length ? undefined : state, hasState, tenant };
}
