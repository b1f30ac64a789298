import * as z from "zod";

export type Bytes = Uint8Array<ArrayBuffer>;

const toBase64Url = (bytes: Bytes) => z.util.uint8ArrayToBase64url(bytes);

/** A passkey in software: a real key, which signs real challenges. */
export async function createAuthenticator(rpId: string, verifiesUser = true) {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { x = "", y = "" } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  // A COSE key: { 1: EC2, 3: ES256, -1: P-256, -2: x, -3: y }.
  const cose = concat(
    [0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20],
    z.util.base64urlToUint8Array(x),
    [0x22, 0x58, 0x20],
    z.util.base64urlToUint8Array(y),
  );
  const rawId = crypto.getRandomValues(new Uint8Array(16));
  const id = toBase64Url(rawId);
  const verified = verifiesUser ? 4 : 0;
  const credential = { id, rawId: id, type: "public-key", clientExtensionResults: {} };
  const clientDataFor = (type: string, challenge: string, origin: string) =>
    encode({ type, challenge, origin, crossOrigin: false });
  return {
    id,
    publicKey: z.util.uint8ArrayToBase64(cose),

    /** The browser's answer when a key is added. */
    async register(challenge: string, origin: string) {
      const data = concat(
        await sha256(bytesOf(rpId)),
        // User present, with a key; no counter, no maker, and how long its id is.
        [0x41 | verified, 0, 0, 0, 0, ...new Uint8Array(16), 0, rawId.length],
        rawId,
        cose,
      );
      // CBOR: { fmt: "none", attStmt: {}, authData: data }.
      const attestation = concat(
        [0xa3, 0x63, ...bytesOf("fmt"), 0x64, ...bytesOf("none")],
        [0x67, ...bytesOf("attStmt"), 0xa0, 0x68, ...bytesOf("authData"), 0x58, data.length],
        data,
      );
      const clientData = clientDataFor("webauthn.create", challenge, origin);
      const clientDataJSON = toBase64Url(clientData);
      const attestationObject = toBase64Url(attestation);
      return { ...credential, response: { clientDataJSON, attestationObject } };
    },

    /** The browser's answer to a challenge of the page at an origin. */
    async assert(challenge: string, origin: string) {
      const clientData = clientDataFor("webauthn.get", challenge, origin);
      // User present; the counter is one higher than the stored one.
      const data = concat(await sha256(bytesOf(rpId)), [1 | verified, 0, 0, 0, 1]);
      const signed = concat(data, await sha256(clientData));
      const signer = { name: "ECDSA", hash: "SHA-256" };
      const signature = new Uint8Array(await crypto.subtle.sign(signer, pair.privateKey, signed));
      const response = {
        clientDataJSON: toBase64Url(clientData),
        authenticatorData: toBase64Url(data),
        signature: toBase64Url(toDer(signature)),
      };
      return { ...credential, response };
    },
  };
}

/** A key that signs as an identity provider does. */
export async function createRsaKey() {
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength: 2048,
    publicExponent: Uint8Array.of(1, 0, 1),
    hash: "SHA-256",
  };
  const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const sign = async (data: Bytes) =>
    new Uint8Array(await crypto.subtle.sign(algorithm.name, pair.privateKey, data));
  return { publicKey: pair.publicKey, sign };
}

/** A key that signs tokens, and what its provider publishes. */
export async function createSigningKey() {
  const { publicKey, sign } = await createRsaKey();
  const published = await crypto.subtle.exportKey("jwk", publicKey);
  const kid = crypto.randomUUID();
  return {
    keys: [{ ...published, kid, alg: "RS256", use: "sig" }],

    async sign(claims: object): Promise<string> {
      const iat = Math.floor(Date.now() / 1000);
      const header = { alg: "RS256", typ: "JWT", kid };
      const parts = [header, { iat, exp: iat + 3600, ...claims }];
      const content = parts.map((part) => toBase64Url(encode(part))).join(".");
      return `${content}.${toBase64Url(await sign(bytesOf(content)))}`;
    },
  };
}

export const bytesOf = (text: string): Bytes => new TextEncoder().encode(text);

const encode = (value: unknown) => bytesOf(JSON.stringify(value));

export const sha256 = async (data: Bytes) =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", data));

export const concat = (...parts: Iterable<number>[]): Bytes =>
  Uint8Array.from(parts.flatMap((part) => [...part]));

/** WebCrypto signs with two plain numbers, WebAuthn wants them in ASN.1. */
function toDer(signature: Bytes): Bytes {
  const numbers = [signature.slice(0, 32), signature.slice(32)].map((part) => {
    const digits = part.slice(part.findIndex((byte) => byte !== 0));
    const positive = (digits[0] ?? 0) >= 0x80 ? concat([0], digits) : digits;
    return concat([2, positive.length], positive);
  });
  const content = concat(...numbers);
  return concat([0x30, content.length], content);
}
