import type { AuthContext } from "better-auth";
import { makeSignature } from "better-auth/crypto";

type Secret = AuthContext["secretConfig"];

/** No two purposes share a key. */
type Purpose = "link" | "state" | "oauth-credentials";

const encoder = new TextEncoder();
const derivedKeys = new Map<string, Promise<string>>();

/**
 * A key for one purpose, by HKDF. better-auth signs every cookie with `makeSignature(text, secret)`,
 * and some of its endpoints let a caller choose the text: a key derived that way could be obtained
 * from the server.
 */
export function deriveKey(purpose: Purpose, secret: string): Promise<string> {
  const name = `${purpose} ${secret}`;
  const key = derivedKeys.get(name) ?? hkdf(purpose, secret);
  derivedKeys.set(name, key);
  return key;
}

async function hkdf(purpose: Purpose, secret: string): Promise<string> {
  const secretBytes = encoder.encode(secret);
  const key = await crypto.subtle.importKey("raw", secretBytes, "HKDF", false, ["deriveBits"]);
  const salt = encoder.encode("better-auth-tenant");
  const info = encoder.encode(`better-auth-tenant:${purpose}:v1`);
  const algorithm = { name: "HKDF", hash: "SHA-256", salt, info };
  const bits = new Uint8Array(await crypto.subtle.deriveBits(algorithm, key, 256));
  return Array.from(bits, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A key for each of better-auth's secrets, for `symmetricEncrypt` and `symmetricDecrypt`. */
export async function deriveKeys(purpose: Purpose, secret: Secret): Promise<Secret> {
  if (typeof secret === "string") return deriveKey(purpose, secret);
  const { legacySecret, currentVersion } = secret;
  const keys = new Map<number, string>();
  for (const [version, value] of secret.keys) keys.set(version, await deriveKey(purpose, value));
  const legacy = legacySecret && { legacySecret: await deriveKey(purpose, legacySecret) };
  return { currentVersion, keys, ...legacy };
}

/** A signature that no caller can obtain from an endpoint of better-auth or a plugin. */
export const signFor = async (purpose: Purpose, text: string, { secret }: AuthContext) =>
  makeSignature(text, await deriveKey(purpose, secret));
