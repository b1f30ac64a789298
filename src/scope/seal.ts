import type { AuthContext } from "better-auth";
import { symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import * as z from "zod";

/**
 * A one-time token on its way out of a tenant, in a link: the token and its tenant, encrypted
 * with the framework's secret. The link leads back into its tenant from a browser that names none,
 * nobody can make it lead into another, and nobody can take the token out and use it without (R6).
 */
export async function seal(ctx: AuthContext, token: string, tenantId: string): Promise<string> {
  const data = JSON.stringify({ sealed: token, tenantId });
  const cipher = await symmetricEncrypt({ key: ctx.secretConfig, data });
  return PREFIX + cipher.replaceAll("$", "~"); // "$" marks the version of the secret, "~" is URL-safe.
}

export interface OpenedToken {
  token: string;
  tenantId: string;
}

/** What was sealed; undefined for anything that this server has not sealed itself. */
export async function unseal(ctx: AuthContext, sealed: string): Promise<OpenedToken | undefined> {
  const cipher = sealed.slice(PREFIX.length).replaceAll("~", "$");
  try {
    const data = await symmetricDecrypt({ key: ctx.secretConfig, data: cipher });
    const { sealed: token, tenantId } = contents.parse(JSON.parse(data));
    return { token, tenantId };
  } catch {
    return undefined;
  }
}

export function looksSealed(token: unknown): token is string {
  return typeof token === "string" && SEALED.test(token);
}

const PREFIX = "tenant~";
const SEALED = /^tenant~[~0-9a-z]+$/;
const contents = z.object({ sealed: z.string().min(1), tenantId: z.string().min(1) });
