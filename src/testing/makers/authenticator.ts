/** A passkey in software: a real key, which signs real challenges. */
export async function createAuthenticator(rpId: string) {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const { x = "", y = "" } = await crypto.subtle.exportKey("jwk", pair.publicKey);
  // A COSE key: { 1: EC2, 3: ES256, -1: P-256, -2: x, -3: y }.
  const cose = concat(
    Uint8Array.of(0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20),
    fromBase64Url(x),
    Uint8Array.of(0x22, 0x58, 0x20),
    fromBase64Url(y),
  );
  const rawId = crypto.getRandomValues(new Uint8Array(16));
  const id = toBase64Url(rawId);
  const credential = { id, rawId: id, type: "public-key", clientExtensionResults: {} };
  const clientDataFor = (type: string, challenge: string, origin: string) =>
    encode({ type, challenge, origin, crossOrigin: false });
  return {
    id,
    publicKey: btoa(String.fromCharCode(...cose)),

    /** The browser's answer when a key is added. */
    async register(challenge: string, origin: string) {
      const data = concat(
        await sha256(new TextEncoder().encode(rpId)),
        // User present and verified, with a key; no counter, no maker, and how long its id is.
        Uint8Array.of(0x45, 0, 0, 0, 0, ...new Uint8Array(16), 0, rawId.length),
        rawId,
        cose,
      );
      // CBOR: { fmt: "none", attStmt: {}, authData: data }.
      const attestation = concat(
        Uint8Array.of(0xa3, 0x63, ...text("fmt"), 0x64, ...text("none")),
        Uint8Array.of(0x67, ...text("attStmt"), 0xa0, 0x68, ...text("authData")),
        Uint8Array.of(0x58, data.length),
        data,
      );
      return {
        ...credential,
        response: {
          clientDataJSON: toBase64Url(clientDataFor("webauthn.create", challenge, origin)),
          attestationObject: toBase64Url(attestation),
        },
      };
    },

    /** The browser's answer to a challenge of the page at an origin. */
    async assert(challenge: string, origin: string) {
      const clientData = clientDataFor("webauthn.get", challenge, origin);
      // User present and verified; the counter is one higher than the stored one.
      const data = concat(
        await sha256(new TextEncoder().encode(rpId)),
        Uint8Array.of(5, 0, 0, 0, 1),
      );
      const signed = concat(data, await sha256(clientData));
      const signer = { name: "ECDSA", hash: "SHA-256" };
      const signature = new Uint8Array(await crypto.subtle.sign(signer, pair.privateKey, signed));
      return {
        ...credential,
        response: {
          clientDataJSON: toBase64Url(clientData),
          authenticatorData: toBase64Url(data),
          signature: toBase64Url(toDer(signature)),
        },
      };
    },
  };
}

type Bytes = Uint8Array<ArrayBuffer>;

/** A key that signs tokens as an identity provider does, and what that provider publishes. */
export async function createSigningKey() {
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    modulusLength: 2048,
    publicExponent: Uint8Array.of(1, 0, 1),
    hash: "SHA-256",
  };
  const pair = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const published = await crypto.subtle.exportKey("jwk", pair.publicKey);
  const kid = toBase64Url(crypto.getRandomValues(new Uint8Array(8)));
  return {
    keys: [{ ...published, kid, alg: "RS256", use: "sig" }],

    async sign(claims: object): Promise<string> {
      const iat = Math.floor(Date.now() / 1000);
      const parts = [
        { alg: "RS256", typ: "JWT", kid },
        { iat, exp: iat + 3600, ...claims },
      ];
      const content = parts.map((part) => toBase64Url(encode(part))).join(".");
      const bytes = new TextEncoder().encode(content);
      const signature = await crypto.subtle.sign(algorithm.name, pair.privateKey, bytes);
      return `${content}.${toBase64Url(new Uint8Array(signature))}`;
    },
  };
}

const text = (value: string) => new TextEncoder().encode(value);

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

const sha256 = async (data: Bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", data));

function concat(...parts: Bytes[]): Bytes {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

const toBase64Url = (bytes: Bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

export function fromBase64Url(text: string): Bytes {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** WebCrypto signs with two plain numbers, WebAuthn wants them in ASN.1. */
function toDer(signature: Bytes): Bytes {
  const numbers = [signature.slice(0, 32), signature.slice(32)].map((part) => {
    const first = part.findIndex((byte) => byte !== 0);
    const digits = part.slice(first);
    const positive = (digits[0] ?? 0) >= 0x80 ? concat(Uint8Array.of(0), digits) : digits;
    return concat(Uint8Array.of(2, positive.length), positive);
  });
  const content = concat(...numbers);
  return concat(Uint8Array.of(0x30, content.length), content);
}
