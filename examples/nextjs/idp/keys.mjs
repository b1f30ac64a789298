import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The files that are written into the directory of the data. */
export const KEY_FILES = ["identity-provider.key", "identity-provider.crt"];

/**
 * What the identity provider signs with. It is made once and kept: tenants that have entered the
 * certificate rely on it.
 */
export function keptKeys(directory) {
  const [keyFile, certificateFile] = KEY_FILES.map((name) => join(directory, name));
  if (!existsSync(certificateFile)) {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    mkdirSync(directory, { recursive: true });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    writeFileSync(keyFile, pem, { mode: 0o600 });
    writeFileSync(certificateFile, selfSigned(privateKey, "Stand-in identity provider"));
  }
  const privateKey = createPrivateKey(readFileSync(keyFile, "utf8"));
  return {
    privateKey,
    publicKey: createPublicKey(privateKey),
    certificate: readFileSync(certificateFile, "utf8"),
  };
}

/** A certificate for ten years, in PEM. Node reads certificates, but it does not write them. */
function selfSigned(privateKey, commonName) {
  const algorithm = sequence(SHA256_WITH_RSA, der(0x05));
  const name = sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(commonName)))));
  const now = new Date();
  const yesterday = new Date(now.getTime() - 86_400_000);
  const inTenYears = new Date(now.getTime() + 3650 * 86_400_000);
  const content = sequence(
    der(0x02, Buffer.from([1])),
    algorithm,
    name,
    sequence(time(yesterday), time(inTenYears)),
    name,
    createPublicKey(privateKey).export({ type: "spki", format: "der" }),
  );
  const signature = sign("sha256", content, privateKey);
  const certificate = sequence(content, algorithm, der(0x03, Buffer.from([0]), signature));
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

/** A value in ASN.1's distinguished encoding: its tag, its length, its content. */
function der(tag, ...contents) {
  const content = Buffer.concat(contents);
  const { length } = content;
  const bytes = length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...(length < 128 ? [length] : bytes)]), content]);
}

const sequence = (...contents) => der(0x30, ...contents);

const time = (date) =>
  der(0x17, Buffer.from(`${date.toISOString().replace(/\D/g, "").slice(2, 14)}Z`));

const SHA256_WITH_RSA = Buffer.from("06092a864886f70d01010b", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");
