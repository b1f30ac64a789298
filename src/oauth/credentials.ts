import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { makeSignature, symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";

/** What a tenant has told us in confidence about its client at a provider. */
export interface Confidential {
  clientId: string;
  clientSecret: string;
  options: Record<string, unknown> | null;
}

/** The same as it is stored: cipher text. */
export interface Encrypted {
  clientId: string;
  clientSecret: string;
  options?: string | null;
}

/** Encrypts with the newest of the framework's secrets. */
export function encrypt(ctx: AuthContext, value: string): Promise<string> {
  return symmetricEncrypt({ key: ctx.secretConfig, data: value });
}

/** Decrypts what was encrypted with any of the framework's secrets. */
export async function decrypt(ctx: AuthContext, stored: Encrypted): Promise<Confidential> {
  const open = (data: string) => symmetricDecrypt({ key: ctx.secretConfig, data });
  try {
    const { clientId, clientSecret, options } = stored;
    const [id, secret, text] = await Promise.all([
      open(clientId),
      open(clientSecret),
      options ? open(options) : "null",
    ]);
    return { clientId: id, clientSecret: secret, options: JSON.parse(text) };
  } catch {
    // The cause is left out on purpose: it must not carry cipher text into an answer or a log.
    ctx.logger.error(
      "A stored OAuth credential cannot be decrypted. Is an old auth secret missing in `secrets`?",
    );
    throw APIError.from(
      "INTERNAL_SERVER_ERROR",
      TENANT_AUTH_ERROR_CODES.OAUTH_CREDENTIAL_DECRYPT_FAILED,
    );
  }
}

/** Tells whether two sets of credentials are the same, without telling what they are. */
export function fingerprint(ctx: AuthContext, parts: unknown[]): Promise<string> {
  return makeSignature(JSON.stringify(parts), ctx.secret);
}
