import type { AuthContext } from "better-auth";
import { makeSignature, parseEnvelope } from "better-auth/crypto";
import { toHex } from "./utils";

type Secret = AuthContext["secretConfig"];

const encoder = new TextEncoder();

/**
 * Derives a key for one purpose, by HKDF: "link", "state", or a feature's own. No two purposes
 * share a key. `makeSignature(text, secret)` would not be safe: better-auth signs cookies in the
 * same way, and some endpoints let a caller choose the text, so the server could be made to reveal
 * the key.
 */
export async function deriveKey(purpose: string, secret: string): Promise<string> {
  const material = await crypto.subtle.importKey("raw", encoder.encode(secret), "HKDF", false, [
    "deriveBits",
  ]);
  const salt = encoder.encode("better-auth-tenant");
  const info = encoder.encode(`better-auth-tenant:${purpose}:v1`);
  const bits = await crypto.subtle.deriveBits(
    { name: "HKDF", hash: "SHA-256", salt, info },
    material,
    256,
  );
  return toHex(bits);
}

/**
 * Derives a key from each of better-auth's secrets, for `symmetricEncrypt` and `symmetricDecrypt`.
 */
export async function deriveKeys(purpose: string, secret: Secret): Promise<Secret> {
  if (typeof secret === "string") return deriveKey(purpose, secret);
  const keys = Array.from(
    secret.keys,
    async ([version, value]) => [version, await deriveKey(purpose, value)] as const,
  );
  const { legacySecret, currentVersion } = secret;
  return {
    currentVersion,
    keys: new Map(await Promise.all(keys)),
    ...(legacySecret && { legacySecret: await deriveKey(purpose, legacySecret) }),
  };
}

/** Returns whether a text was encrypted with the newest of better-auth's secrets. */
export const isNewest = ({ secretConfig }: AuthContext, cipher: string): boolean =>
  parseEnvelope(cipher)?.version ===
  (typeof secretConfig === "string" ? undefined : secretConfig.currentVersion);

/** Signs a text with a key for one purpose, with which better-auth signs nothing. */
export const signFor = async (purpose: string, text: string, { secret }: AuthContext) =>
  makeSignature(text, await deriveKey(purpose, secret));
