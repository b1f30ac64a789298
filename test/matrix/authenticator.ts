import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** What keys are made for, whichever host they are used on. */
export const RP_ID = "localhost";

/** A passkey in software: a real key, which signs real challenges. */
export function createAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  // A COSE key: { 1: EC2, 3: ES256, -1: P-256, -2: x, -3: y }.
  const cose = Buffer.concat([
    Buffer.from([0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 0x20]),
    Buffer.from(x, "base64url"),
    Buffer.from([0x22, 0x58, 0x20]),
    Buffer.from(y, "base64url"),
  ]);
  const id = randomBytes(16).toString("base64url");
  return {
    id,
    publicKey: cose.toString("base64"),

    /** The browser's answer to a challenge of the page at an origin. */
    assert(challenge: string, origin: string) {
      const clientData = Buffer.from(
        JSON.stringify({ type: "webauthn.get", challenge, origin, crossOrigin: false }),
      );
      // User present and verified; the counter is one higher than the stored one.
      const data = Buffer.concat([sha256(RP_ID), Buffer.from([0x05, 0, 0, 0, 1])]);
      const signature = sign("sha256", Buffer.concat([data, sha256(clientData)]), privateKey);
      return {
        id,
        rawId: id,
        type: "public-key",
        clientExtensionResults: {},
        response: {
          clientDataJSON: clientData.toString("base64url"),
          authenticatorData: data.toString("base64url"),
          signature: signature.toString("base64url"),
        },
      };
    },
  };
}

const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest();
