import { webcrypto } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import * as x509 from "@peculiar/x509";
import * as saml from "samlify";

/*
 * A stand-in identity provider that speaks SAML, made with the library that better-auth's package
 * itself uses. Its responses are really signed.
 */

x509.cryptoProvider.set(webcrypto as Crypto);

const ALGORITHM = {
  name: "RSASSA-PKCS1-v1_5",
  hash: "SHA-256",
  publicExponent: new Uint8Array([1, 0, 1]),
  modulusLength: 2048,
};

async function makeKeys(name: string) {
  const keys = (await webcrypto.subtle.generateKey(ALGORITHM, true, [
    "sign",
    "verify",
  ])) as CryptoKeyPair;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: `CN=${name}`,
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
    signingAlgorithm: ALGORITHM,
    keys,
  });
  const exported = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
  const privateKey = x509.PemConverter.encode(exported, "PRIVATE KEY");
  return { privateKey, certificate: certificate.toString("pem") };
}

/** What a response is made of; what is left out is as it should be. */
export interface SamlResponse {
  /** Where it is to be posted. */
  acs: string;
  audience: string;
  /** The id of the request that it answers; none for a sign-in that the provider starts. */
  inResponseTo?: string | undefined;
  email: string;
  emailVerified?: boolean;
  isSigned?: boolean;
  assertionId?: string;
  /** Another provider, which signs in this one's name. */
  signedBy?: SamlProvider;
}

export type SamlProvider = Awaited<ReturnType<typeof createSamlProvider>>;

const POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST";

export async function createSamlProvider(name: string) {
  const keys = await makeKeys(name);
  const entityID = `https://${name}.idp.example/metadata`;
  const entryPoint = `https://${name}.idp.example/sso`;
  let count = 0;

  async function respond({ acs, audience, email, ...response }: SamlResponse): Promise<string> {
    const signer = response.signedBy?.keys ?? keys;
    const idp = saml.IdentityProvider({
      entityID,
      signingCert: signer.certificate,
      privateKey: signer.privateKey,
      isAssertionEncrypted: false,
      requestSignatureAlgorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
      singleSignOnService: [{ Binding: POST, Location: entryPoint }],
      loginResponseTemplate: {
        context: saml.SamlLib.defaultLoginResponseTemplate.context,
        attributes: [attribute("email"), attribute("displayName"), attribute("verified")],
      },
    });
    const sp = saml.ServiceProvider({
      entityID: audience,
      wantAssertionsSigned: true,
      assertionConsumerService: [{ Binding: POST, Location: acs }],
    });
    const now = new Date().toISOString();
    const soon = new Date(Date.now() + 300_000).toISOString();
    const values = {
      ID: `_response-${name}-${++count}`,
      AssertionID: response.assertionId ?? `_assertion-${name}-${count}-${Date.now()}`,
      Destination: acs,
      Audience: audience,
      SubjectRecipient: acs,
      Issuer: entityID,
      IssueInstant: now,
      AssertionConsumerServiceURL: acs,
      EntityID: audience,
      StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success",
      ConditionsNotBefore: now,
      ConditionsNotOnOrAfter: soon,
      SubjectConfirmationDataNotOnOrAfter: soon,
      NameIDFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
      NameID: email,
      InResponseTo: response.inResponseTo ?? "",
      AuthnStatement: "",
      attrEmail: email,
      attrDisplayName: "Ada",
      attrVerified: String(response.emailVerified ?? false),
    };
    const withoutEmptyAnswer = (template: string) =>
      response.inResponseTo ? template : template.replace(/ InResponseTo="[^"]*"/g, "");
    const { context } = await idp.createLoginResponse(sp, {} as never, "post", { email }, {
      customTagReplacement: (template: string) => ({
        id: values.ID,
        context: withoutEmptyAnswer(saml.SamlLib.replaceTagsByValue(template, values)),
      }),
    } as never);
    return response.isSigned === false ? withoutSignature(context) : context;
  }

  return { name, keys, entityID, entryPoint, respond };
}

const attribute = (name: string) => ({
  name,
  valueTag: name,
  nameFormat: "urn:oasis:names:tc:SAML:2.0:attrname-format:basic",
  valueXsiType: "xs:string",
});

function withoutSignature(response: string): string {
  const xml = Buffer.from(response, "base64").toString();
  const unsigned = xml.replace(/<ds:Signature[\s\S]*?<\/ds:Signature>/g, "");
  if (unsigned === xml) throw new Error("There was no signature to take away");
  return Buffer.from(unsigned).toString("base64");
}

/** The id of the request that a sign-in has started with. */
export function requestIn(address: string): { id: string; relayState: string } {
  const { searchParams } = new URL(address);
  const xml = inflateRawSync(
    Buffer.from(searchParams.get("SAMLRequest") ?? "", "base64"),
  ).toString();
  return {
    id: /\bID="([^"]+)"/.exec(xml)?.[1] ?? "",
    relayState: searchParams.get("RelayState") ?? "",
  };
}

const STAND_IN = await createSamlProvider("stand-in");

export const PRIVATE_KEY = STAND_IN.keys.privateKey;

/** What a tenant registers for a provider. */
export const samlConfig = (
  more: Record<string, unknown> = {},
  { entityID, entryPoint, keys }: SamlProvider = STAND_IN,
) => ({
  entryPoint,
  cert: keys.certificate,
  wantAssertionsSigned: true,
  idpMetadata: { entityID },
  mapping: { email: "email", name: "displayName", emailVerified: "verified" },
  ...more,
});
