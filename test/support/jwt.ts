import { generateKeyPairSync, sign } from "node:crypto";

const KEY_ID = "test-key";
const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** What an identity provider publishes, so that others can check its tokens. */
export const publishedKeys = {
  keys: [{ ...publicKey.export({ format: "jwk" }), kid: KEY_ID, alg: "RS256", use: "sig" }],
};

/** A token with these claims, just issued and good for ten minutes, signed with the key above. */
export function signToken(claims: Record<string, unknown>): string {
  const now = Math.floor(Date.now() / 1000);
  const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const header = { alg: "RS256", typ: "JWT", kid: KEY_ID };
  const content = `${encode(header)}.${encode({ iat: now, exp: now + 600, ...claims })}`;
  return `${content}.${sign("RSA-SHA256", Buffer.from(content), privateKey).toString("base64url")}`;
}

/** What a token says, be it true or not. */
export function claimsIn(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
}
