import { X509Certificate } from "node:crypto";
import { IdentityProvider } from "samlify";

/** What an administrator knows of a SAML provider: its metadata, or the three things in there. */
export type SamlInput =
  | { metadata: string }
  | { entityID: string; entryPoint: string; certificate: string };

/** Something is wrong with what was entered; the message is for who has entered it. */
export class SamlProblem extends Error {}

/** better-auth takes no more of it. */
const LONGEST = 100_000;

/** Where people are sent, and whose signature counts. */
export function readSaml(input: SamlInput) {
  const { entryPoint, certificates } =
    "metadata" in input
      ? readMetadata(input.metadata)
      : { entryPoint: input.entryPoint, certificates: [input.certificate] };
  if (!/^https?:/.test(entryPoint) || !URL.canParse(entryPoint)) {
    throw new SamlProblem(
      "metadata" in input
        ? "The metadata has no sign-in address for HTTP-Redirect."
        : "Please enter the sign-in URL as an address such as https://idp.example.com/sso.",
    );
  }
  return { entryPoint, certificates: certificates.map(readCertificate) };
}

function readMetadata(metadata: string) {
  if (metadata.length > LONGEST) throw new SamlProblem("The metadata is too long.");
  try {
    const { entityMeta } = IdentityProvider({ metadata });
    const certificates = [entityMeta.getX509Certificate("signing")].flat().filter(Boolean);
    const entryPoint = entityMeta.getSingleSignOnService("redirect");
    if (!entityMeta.getEntityID() || certificates.length === 0) throw new Error("incomplete");
    return { entryPoint: typeof entryPoint === "string" ? entryPoint : "", certificates };
  } catch {
    throw new SamlProblem(
      "This is not the metadata of an identity provider. Please copy all of its XML.",
    );
  }
}

/** In metadata, a certificate is written without its first and last line. */
function readCertificate(text: string): X509Certificate {
  const isPem = text.includes("-----BEGIN");
  try {
    return new X509Certificate(isPem ? text.trim() : Buffer.from(text, "base64"));
  } catch {
    throw new SamlProblem(
      "The certificate cannot be read. Please copy all of it, with its first and last line.",
    );
  }
}

/** What to register at better-auth for it. */
export function samlConfigFor(input: SamlInput) {
  const { entryPoint } = readSaml(input);
  return {
    entryPoint,
    wantAssertionsSigned: true,
    // As better-auth has them, and one more.
    mapping: { email: "email", name: "displayName", emailVerified: "emailVerified" },
    ...("metadata" in input
      ? { idpMetadata: { metadata: input.metadata } }
      : { cert: input.certificate.trim(), idpMetadata: { entityID: input.entityID } }),
  };
}
