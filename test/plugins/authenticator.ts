import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

const ORIGIN = "http://localhost:3000";
const RP_ID = "localhost";

type Cbor = number | string | Buffer | Map<number | string, Cbor>;

/** As much of CBOR as an authenticator needs. */
function encode(value: Cbor): Buffer {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string") {
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  }
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  const entries = [...value].flatMap(([key, item]) => [encode(key), encode(item)]);
  return Buffer.concat([head(5, value.size), ...entries]);
}

function head(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length]);
  if (length < 256) return Buffer.from([(major << 5) | 24, length]);
  return Buffer.from([(major << 5) | 25, length >> 8, length & 255]);
}

const sha256 = (data: Buffer | string) => createHash("sha256").update(data).digest();

/** A passkey in software: answers the options of WebAuthn as a browser would. */
export function createAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  const id = randomBytes(16);
  const credential = {
    id: id.toString("base64url"),
    rawId: id.toString("base64url"),
    type: "public-key",
    clientExtensionResults: {},
    authenticatorAttachment: "platform",
  };
  let counter = 0;

  const clientData = (type: string, challenge: string) =>
    Buffer.from(JSON.stringify({ type, challenge, origin: ORIGIN, crossOrigin: false }));

  function authenticatorData(flags: number, attested = Buffer.alloc(0)) {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(++counter);
    return Buffer.concat([sha256(RP_ID), Buffer.from([flags]), count, attested]);
  }

  return {
    /** The answer to the options of a registration. */
    register(challenge: string) {
      const key = new Map<number, Cbor>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x, "base64url")],
        [-3, Buffer.from(y, "base64url")],
      ]);
      const attested = Buffer.concat([
        Buffer.alloc(16),
        Buffer.from([0, id.length]),
        id,
        encode(key),
      ]);
      const attestation = new Map<string, Cbor>([
        ["fmt", "none"],
        ["attStmt", new Map()],
        // User present, user verified, credential included.
        ["authData", authenticatorData(0x45, attested)],
      ]);
      return {
        ...credential,
        response: {
          clientDataJSON: clientData("webauthn.create", challenge).toString("base64url"),
          attestationObject: encode(attestation).toString("base64url"),
          transports: ["internal"],
        },
      };
    },

    /** The answer to the options of a sign-in. */
    authenticate(challenge: string) {
      const data = clientData("webauthn.get", challenge);
      const authData = authenticatorData(0x05);
      const signature = sign("sha256", Buffer.concat([authData, sha256(data)]), privateKey);
      return {
        ...credential,
        response: {
          clientDataJSON: data.toString("base64url"),
          authenticatorData: authData.toString("base64url"),
          signature: signature.toString("base64url"),
        },
      };
    },
  };
}
