import type { AuthContext } from "better-auth";
import { constantTimeEqual, makeSignature } from "better-auth/crypto";

/**
 * A one-time token on its way out of a tenant, in a link: the token, the tenant and a signature
 * over both, so that the link leads back into its tenant from a browser that names none, and
 * nobody can make it lead into another (R6).
 */
export async function seal(ctx: AuthContext, token: string, tenantId: string): Promise<string> {
  const tenant = toBase64Url(tenantId);
  return `${token}~${tenant}~${await sign(ctx, token, tenant)}`;
}

export interface OpenedToken {
  token: string;
  tenantId: string;
}

/** What was sealed; undefined for anything that this server has not sealed itself. */
export async function unseal(ctx: AuthContext, sealed: string): Promise<OpenedToken | undefined> {
  const [, token, tenant, signature] = SEALED.exec(sealed) ?? [];
  if (!token || !tenant || !signature) return undefined;
  if (!constantTimeEqual(signature, await sign(ctx, token, tenant))) return undefined;
  return { token, tenantId: fromBase64Url(tenant) };
}

export function looksSealed(token: unknown): token is string {
  return typeof token === "string" && SEALED.test(token);
}

const SEALED = /^([^~]+)~([\w-]+)~([\w-]{43})$/;

async function sign(ctx: AuthContext, token: string, tenant: string): Promise<string> {
  const signature = await makeSignature(`tenant-token~${token}~${tenant}`, ctx.secret);
  return urlSafe(signature);
}

const toBase64Url = (text: string) =>
  urlSafe(btoa(String.fromCharCode(...new TextEncoder().encode(text))));

const fromBase64Url = (encoded: string) =>
  new TextDecoder().decode(
    Uint8Array.from(atob(encoded.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    ),
  );

const urlSafe = (base64: string) =>
  base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
