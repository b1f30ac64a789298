/* A SAML provider with WebCrypto alone. Its XML is canonical, so the text itself is signed. */

import * as z from "zod";
import { type Bytes, bytesOf, concat, createRsaKey, sha256 } from "./authenticator";

/** What a response is made of. */
export type SamlAnswer = Record<"acs" | "audience" | "inResponseTo" | "email", string>;

export type SamlProvider = Awaited<ReturnType<typeof createSamlProvider>>;

const ASSERTION = "urn:oasis:names:tc:SAML:2.0:assertion";
const PROTOCOL = "urn:oasis:names:tc:SAML:2.0:protocol";
const SIGNATURE = "http://www.w3.org/2000/09/xmldsig#";
const CANONICAL = "http://www.w3.org/2001/10/xml-exc-c14n#";
const EMAIL = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress";
const BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer";
const SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success";
const HOUR_MS = 3_600_000;

export async function createSamlProvider(entityID: string) {
  const { publicKey, sign } = await createRsaKey();
  const exported = new Uint8Array(await crypto.subtle.exportKey("spki", publicKey));
  const issuer = `<saml:Issuer>${entityID}</saml:Issuer>`;
  return {
    entityID,
    certificate: await certificateOf(exported, sign),

    /** With an assertion that may be edited before it is signed. */
    async respond(
      { acs, audience, inResponseTo, email }: SamlAnswer,
      edit = (assertion: string) => assertion,
    ): Promise<string> {
      const [now, later] = [0, HOUR_MS].map((ms) => new Date(Date.now() + ms).toISOString());
      const id = newId();
      const assertion = edit(
        [
          `<saml:Assertion xmlns:saml="${ASSERTION}" ID="${id}" IssueInstant="${now}" Version="2.0">${issuer}`,
          `<saml:Subject><saml:NameID Format="${EMAIL}">${email}</saml:NameID>`,
          `<saml:SubjectConfirmation Method="${BEARER}"><saml:SubjectConfirmationData InResponseTo="${inResponseTo}" NotOnOrAfter="${later}" Recipient="${acs}"></saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject>`,
          `<saml:Conditions NotBefore="${now}" NotOnOrAfter="${later}"><saml:AudienceRestriction><saml:Audience>${audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>`,
          `<saml:AttributeStatement><saml:Attribute Name="email"><saml:AttributeValue>${email}</saml:AttributeValue></saml:Attribute></saml:AttributeStatement></saml:Assertion>`,
        ].join(""),
      );
      const signature = await signatureOf(id, assertion, sign);
      const signed = assertion.replace("</saml:Issuer>", `$&${signature}`);
      return toBase64(
        bytesOf(
          `<samlp:Response xmlns:samlp="${PROTOCOL}" xmlns:saml="${ASSERTION}" Destination="${acs}" ID="${newId()}" InResponseTo="${inResponseTo}" IssueInstant="${now}" Version="2.0">${issuer}<samlp:Status><samlp:StatusCode Value="${SUCCESS}"></samlp:StatusCode></samlp:Status>${signed}</samlp:Response>`,
        ),
      );
    },

    /** A signature for an element, which goes into it. */
    signatureOf: (id: string, canonical: string) => signatureOf(id, canonical, sign),

    /** A logout that the provider has started, as it is posted and as it goes along in an address. */
    logout(destination: string, email: string) {
      const now = new Date().toISOString();
      const request = bytesOf(
        `<samlp:LogoutRequest xmlns:samlp="${PROTOCOL}" xmlns:saml="${ASSERTION}" Destination="${destination}" ID="${newId()}" IssueInstant="${now}" Version="2.0">${issuer}<saml:NameID Format="${EMAIL}">${email}</saml:NameID></samlp:LogoutRequest>`,
      );
      return { posted: toBase64(request), inAddress: toBase64(stored(request)) };
    },
  };
}

type Sign = (data: Bytes) => Promise<Bytes>;

async function signatureOf(id: string, signed: string, sign: Sign): Promise<string> {
  const digest = await sha256(bytesOf(signed));
  const info = [
    `<ds:SignedInfo xmlns:ds="${SIGNATURE}">`,
    `<ds:CanonicalizationMethod Algorithm="${CANONICAL}"></ds:CanonicalizationMethod>`,
    '<ds:SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"></ds:SignatureMethod>',
    `<ds:Reference URI="#${id}"><ds:Transforms>`,
    `<ds:Transform Algorithm="${SIGNATURE}enveloped-signature"></ds:Transform>`,
    `<ds:Transform Algorithm="${CANONICAL}"></ds:Transform></ds:Transforms>`,
    '<ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"></ds:DigestMethod>',
    `<ds:DigestValue>${toBase64(digest)}</ds:DigestValue></ds:Reference></ds:SignedInfo>`,
  ].join("");
  const value = toBase64(await sign(bytesOf(info)));
  return `<ds:Signature xmlns:ds="${SIGNATURE}">${info}<ds:SignatureValue>${value}</ds:SignatureValue></ds:Signature>`;
}

/** The id of the request that a sign-in has started with, and what to send back beside. */
export async function requestIn(address: string) {
  const { searchParams } = new URL(address);
  const deflated = z.util.base64ToUint8Array(searchParams.get("SAMLRequest") ?? "") as Bytes;
  const inflated = new Blob([deflated])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw" as CompressionFormat));
  const xml = await new Response(inflated).text();
  return {
    id: /\bID="([^"]+)"/.exec(xml)?.[1] ?? "",
    relayState: searchParams.get("RelayState") ?? undefined,
  };
}

const newId = () => `_${crypto.randomUUID()}`;

const toBase64 = (bytes: Bytes) => z.util.uint8ArrayToBase64(bytes);

/** Deflated without being compressed: one block, with its length and the complement of that. */
function stored(bytes: Bytes): Bytes {
  const [low, high] = [bytes.length & 0xff, bytes.length >> 8];
  return Uint8Array.of(1, low, high, low ^ 0xff, high ^ 0xff, ...bytes);
}

/** A certificate that a key has signed for itself, in ASN.1. */
async function certificateOf(publicKey: Bytes, sign: Sign): Promise<string> {
  // sha256WithRSAEncryption, without parameters.
  const algorithm = der(0x30, [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 0x0b, 5, 0]);
  const commonName = der(0x30, [6, 3, 0x55, 4, 3], der(0x0c, bytesOf("isolation kit")));
  const name = der(0x30, der(0x31, commonName));
  const times = [-24, 24].map((hours) => {
    const [date = ""] = new Date(Date.now() + hours * HOUR_MS).toISOString().split(".");
    return der(0x17, bytesOf(`${date.slice(2).replaceAll(/\D/g, "")}Z`));
  });
  const thirdVersion = [0xa0, 3, 2, 1, 2, 2, 1, 1];
  const validity = der(0x30, ...times);
  const content = der(0x30, thirdVersion, algorithm, name, validity, name, publicKey);
  const signature = der(3, [0], await sign(content));
  const lines = toBase64(der(0x30, content, algorithm, signature)).replaceAll(/.{64}/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----`;
}

function der(tag: number, ...parts: Iterable<number>[]): Bytes {
  const content = concat(...parts);
  const { length } = content;
  return concat([tag], length < 0x80 ? [length] : [0x82, length >> 8, length & 0xff], content);
}
