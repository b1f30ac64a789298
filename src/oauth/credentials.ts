import type { AuthContext } from "better-auth";
import { APIError } from "better-auth/api";
import { makeSignature, symmetricDecrypt, symmetricEncrypt } from "better-auth/crypto";
import { TENANT_AUTH_ERROR_CODES } from "../error-codes";

/** Encrypts with the newest of the framework's secrets. */
export function encrypt(ctx: AuthContext, value: string): Promise<string> {
  return symmetricEncrypt({ key: ctx.secretConfig, data: value });
}

/** Decrypts what was encrypted with any of the framework's secrets. */
export async function decrypt(ctx: AuthContext, stored: string): Promise<string> {
  try {
    return await symmetricDecrypt({ key: ctx.secretConfig, data: stored });
  } catch {
    // The cause is left out on purpose: it must not carry cipher text into an answer or a log.
    ctx.logger.error(
      "A stored OAuth credential cannot be decrypted. Was the auth secret changed without keeping the old one in `secrets`?",
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
