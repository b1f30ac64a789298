import { deflateRawSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import { BASE_URL } from "../../support/instance";
import { outcome } from "../../support/world";
import { ADA, acsOf, post, samlRegistration, shareSSOWorld, unasked } from "./world";

/*
 * The XML libraries below sso() take quadratic time for sibling elements, before they check a
 * signature: 78 KB took 72 seconds.
 */

const idp = await createSamlProvider("https://acme.idp.example");
const slo = `${BASE_URL}/sso/saml2/sp/slo/acme-saml`;
const acs = acsOf("acme-saml");
const REFUSED = [400, "XML_TOO_LARGE"];

const world = shareSSOWorld({
  sso: { saml: { allowIdpInitiated: true, enableSingleLogout: true } },
});
beforeAll(() => world.register("acme", samlRegistration("acme-saml", idp)));

const PROTOCOL = "urn:oasis:names:tc:SAML:2.0:protocol";
const around = (xml: string) =>
  `<samlp:Response xmlns:samlp="${PROTOCOL}" ID="_a" Version="2.0"><saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">${xml}</saml:Assertion></samlp:Response>`;
const siblings = (bytes: number) => around("<a/>".repeat(bytes / 4));
const encode = (xml: string) => Buffer.from(xml).toString("base64");
const urlSafe = (xml: string) => Buffer.from(xml).toString("base64url");
const inLines = (xml: string) => encode(xml).replaceAll(/.{76}/g, "$&\r\n");
const deflate = (xml: string) => deflateRawSync(xml).toString("base64");
const KB = 1024;
/** It takes milliseconds, and longer if the machine is busy. Reading 78 KB took 72 seconds. */
const AT_ONCE = 5000;

type Where = "acme" | "globex" | "platform";

/** The answer, and how long it took. */
async function timed<T>(run: () => Promise<T>) {
  const start = performance.now();
  return { answer: await run(), ms: performance.now() - start };
}

const posted = (address: string, fields: Record<string, string>, where: Where = "platform") =>
  post(world.at("platform"), address, fields, world.naming(where));
const queried = (address: string, query: Record<string, string>, where: Where = "platform") =>
  world.at("platform").get(address, { query, headers: world.naming(where) });

describe.each<[where: Where, id: string]>([
  ["platform", "acme-saml"],
  ["acme", "acme-saml"],
  ["globex", "acme-saml"],
  ["acme", "unknown-saml"],
])("XML with thousands of elements, with the name of %s, at %s", (where, id) => {
  const at = (address: string) => address.replace("acme-saml", id);

  it.each([
    ["ACS", acs, "SAMLResponse", 78 * KB, encode],
    ["ACS, in lines", acs, "SAMLResponse", 78 * KB, inLines],
    ["ACS, in the URL-safe form", acs, "SAMLResponse", 78 * KB, urlSafe],
    ["ACS", acs, "SAMLResponse", 5120 * KB, encode],
    ["ACS, as white space", acs, "SAMLResponse", 4, () => " ".repeat(1024 * KB)],
    ["single logout", slo, "SAMLRequest", 78 * KB, encode],
    ["single logout", slo, "SAMLResponse", 78 * KB, encode],
    ["single logout", slo, "SAMLRequest", 5120 * KB, encode],
  ])("is refused at once at %s, posted to %s as %s of %i bytes", async (...row) => {
    const [, address, name, bytes, encoded] = row;
    const fields = { [name]: encoded(siblings(bytes)) };
    const { answer, ms } = await timed(() => posted(at(address), fields, where));
    expect(outcome(answer)).toEqual(REFUSED);
    expect(ms).toBeLessThan(AT_ONCE);
  });

  it.each([
    ["SAMLRequest", 78 * KB, deflate],
    ["SAMLResponse", 78 * KB, deflate],
    ["SAMLRequest", 5120 * KB, deflate],
    // samlify decodes what is left in a query once more.
    ["SAMLRequest", 78 * KB, (xml: string) => encodeURIComponent(deflate(xml))],
    ["SAMLRequest", 78 * KB, (xml: string) => deflateRawSync(xml).toString("base64url")],
  ])("is refused at once at single logout, in the query as %s of %i bytes", async (...row) => {
    const [name, bytes, encoded] = row;
    const query = { [name]: encoded(siblings(bytes)) };
    const { answer, ms } = await timed(() => queried(at(slo), query, where));
    expect(outcome(answer)).toEqual(REFUSED);
    expect(ms).toBeLessThan(AT_ONCE);
  });
});

const many = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => make(i)).join("");
const nested = (depth: number) => "<a>".repeat(depth) + "</a>".repeat(depth);
/** A text of this size as a whole. */
const filled = (bytes: number) => around("x".repeat(bytes - around("").length));

describe("XML is refused just above a limit", () => {
  /** Two elements, four attributes and two levels are around what a row makes. */
  it.each<[what: string, make: (count: number) => string, most: number]>([
    ["signatures", (count) => around("<Signature/>".repeat(count)), 4],
    ["references", (count) => around("<ds:Reference />".repeat(count)), 4],
    ["transforms", (count) => around('<\u1680:Transform a="b"/>'.repeat(count)), 8],
    ["transforms in a comment", (count) => around(`<!--${"<Transform>".repeat(count)}-->`), 8],
    ["elements", (count) => around("<a/>".repeat(count)), 998],
    ["elements that are closed", (count) => around("<a></a>".repeat(count)), 998],
    ["comments", (count) => around("<!---->".repeat(count)), 998],
    ["sections", (count) => around("<![CDATA[x]]>".repeat(count)), 998],
    ["elements in a comment", (count) => around(`<!--${"<a/>".repeat(count)}-->`), 997],
    ["elements in quotes", (count) => around(`<a b="${"<a/>".repeat(count)}"/>`), 997],
    ["attributes", (count) => around(`<a ${many(count, (i) => `a${i}=">" `)}/>`), 996],
    [
      "attributes without spaces",
      (count) => around(`<a ${many(count, (i) => `a${i}='x'`)}/>`),
      996,
    ],
    ["attributes without values", (count) => around(`<a ${many(count, (i) => `a${i} `)}/>`), 996],
    ["levels", (count) => around(nested(count)), 48],
    ["levels that seem closed", (count) => around("<a><!--</a>-->".repeat(count)), 48],
    ["levels that seem empty", (count) => around('<a b="/>">'.repeat(count)), 48],
    ["bytes", filled, 256 * KB],
    [
      "bytes that are encrypted",
      (count) => filled(count).replace(/x{21}/, "<EncryptedAssertion/>"),
      40 * KB,
    ],
  ])("%s", async (_, make, most) => {
    for (const [count, isRefused] of [
      [most, false],
      [most + 1, true],
    ] as const) {
      const xml = make(count);
      for (const answer of [
        await posted(acs, { SAMLResponse: encode(xml) }),
        await posted(slo, { SAMLRequest: encode(xml) }),
        await queried(slo, { SAMLResponse: deflate(xml) }),
      ]) {
        expect(outcome(answer)[1] === "XML_TOO_LARGE", `${count}`).toBe(isRefused);
        expect(answer.status).toBeLessThan(500);
      }
    }
  });
});

describe("XML that is sent in two parameters, or twice", () => {
  const [small, large] = [around(""), siblings(78 * KB)];

  it.each([
    [
      "a small one in the query",
      { query: { SAMLRequest: deflate(small) }, body: { SAMLRequest: encode(large) } },
    ],
    [
      "a small one in the body",
      { query: { SAMLRequest: deflate(large) }, body: { SAMLRequest: encode(small) } },
    ],
    [
      "a small one of the other kind",
      { query: { SAMLResponse: deflate(small) }, body: { SAMLRequest: encode(large) } },
    ],
    ["JSON", { query: {}, body: { SAMLRequest: encode(large) }, json: true }],
  ])(
    "is refused: %s",
    async (_, {
      query,
      body,
      json,
    }: { query: Record<string, string>; body: Record<string, string>; json?: boolean }) => {
      const address = `${slo}?${new URLSearchParams(query)}`;
      const answer = json
        ? await world.at("platform").post(address, body)
        : await posted(address, body);
      expect(outcome(answer)).toEqual(REFUSED);
    },
  );

  it.each([
    [
      "in the query",
      `?SAMLRequest=${encodeURIComponent(deflate(large))}&SAMLRequest=${encodeURIComponent(deflate(small))}`,
      "",
    ],
    [
      "in the body",
      "",
      `SAMLRequest=${encodeURIComponent(encode(small))}&SAMLRequest=${encodeURIComponent(encode(large))}`,
    ],
  ])("is refused twice %s", async (_, query, body) => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const { answer, ms } = await timed(() =>
      body
        ? world.at("platform").post(slo, body, { headers })
        : world.at("platform").get(slo + query),
    );
    expect(answer.status).toBe(400);
    expect(ms).toBeLessThan(AT_ONCE);
  });

  it.each([
    ["not deflated", encode(large)],
    [
      "deflated, with more behind",
      Buffer.concat([deflateRawSync(large), Buffer.from("x")]).toString("base64"),
    ],
    ["deflated and cut off", deflateRawSync(large).subarray(0, -4).toString("base64")],
    ["with letters that decoders skip", `*${deflate(large)}`],
    ["ended in the middle", `${deflate(large).slice(0, 8)}==${deflate(large)}`],
  ])("is refused in a query %s", async (_, SAMLRequest) => {
    const { answer, ms } = await timed(() => queried(slo, { SAMLRequest }));
    expect(answer.status).toBe(400);
    expect(ms).toBeLessThan(AT_ONCE);
  });
});

/** Each transform of an unsigned signature writes and reads the whole text: 62 KB took 8 seconds. */
it.each([
  ["ACS", acs, "SAMLResponse", "Response"],
  ["single logout", slo, "SAMLRequest", "LogoutRequest"],
])("hundreds of transforms are refused at once at %s", async (_, address, name, root) => {
  const asking = (references: number, transforms: number) => {
    const canonical = "http://www.w3.org/2001/10/xml-exc-c14n#";
    const transform = `<Transform Algorithm="${canonical}"/>`.repeat(transforms);
    const reference = `<Reference URI="#_b"><Transforms>${transform}</Transforms><DigestMethod Algorithm="http://www.w3.org/2000/09/xmldsig#sha1"/><DigestValue>AAAA</DigestValue></Reference>`;
    const signature = `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo><CanonicalizationMethod Algorithm="${canonical}"/><SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"/>${reference.repeat(references)}</SignedInfo><SignatureValue>AAAA</SignatureValue></Signature>`;
    return `<p:${root} xmlns:p="${PROTOCOL}" ID="_a" Version="2.0">${signature}<b ID="_b">${">".repeat(10 * KB)}</b></p:${root}>`;
  };
  const send = (xml: string) => timed(() => posted(address, { [name]: encode(xml) }));
  for (const xml of [asking(1, 900), asking(300, 0)]) {
    const { answer, ms } = await send(xml);
    expect(outcome(answer)).toEqual(REFUSED);
    expect(ms).toBeLessThan(AT_ONCE);
  }
  // As many as a response that is signed twice may need are read, and refused for what they are.
  const { answer, ms } = await send(asking(4, 2));
  expect(outcome(answer)).not.toEqual(REFUSED);
  expect(answer.status).toBeLessThan(500);
  expect(ms).toBeLessThan(AT_ONCE);
});

it("a genuine response with 150 groups signs in, and its user logs out", async () => {
  const groups = many(
    150,
    (i) => `<saml:AttributeValue>${crypto.randomUUID()}-${i}</saml:AttributeValue>`,
  );
  const edit = (assertion: string) =>
    assertion.replace(
      "</saml:AttributeStatement>",
      () => `<saml:Attribute Name="groups">${groups}</saml:Attribute></saml:AttributeStatement>`,
    );
  const browser = world.at("platform");
  const SAMLResponse = await unasked(idp, "acme-saml", ADA, acs, edit);
  expect((await post(browser, acs, { SAMLResponse })).location).toBe("/welcome");
  expect(await world.whoIs(browser)).toMatchObject({ email: ADA });
  const { inAddress } = idp.logout(slo, ADA);
  const { location } = await browser.get(slo, { query: { SAMLRequest: inAddress } });
  expect(location).toContain("SAMLResponse=");
  expect(await world.whoIs(browser)).toBe(null);
});

/** What is measured is what is read: the limits rely on this. */
it("sso() reads text in a body, and deflated text in a query", async () => {
  const { posted: text, inAddress: deflated } = idp.logout(slo, ADA);
  expect((await posted(slo, { SAMLRequest: text })).status).toBe(200);
  expect((await queried(slo, { SAMLRequest: deflated })).status).toBe(302);
  expect((await posted(slo, { SAMLRequest: deflated })).status).toBe(400);
  expect((await queried(slo, { SAMLRequest: text })).status).toBe(400);
});

describe("metadata that a tenant's administrator registers", () => {
  const metadata = (more: string) =>
    `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${idp.entityID}"><IDPSSODescriptor protocolSupportEnumeration="${PROTOCOL}"><KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>${idp.certificate.replaceAll(/-----.*?-----|\s/g, "")}</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${idp.entityID}"/></IDPSSODescriptor>${more}</EntityDescriptor>`;
  const registration = (providerId: string, given: object) =>
    samlRegistration(providerId, idp, { cert: undefined, ...given });

  it("is refused with thousands of attributes behind an instruction that has no end", async () => {
    const admin = await world.as("admin", "acme");
    const attributes = Array.from({ length: 2000 }, (_, i) => `a${i}=""`).join(" ");
    const idpMetadata = { metadata: metadata(`<? <b ${attributes}/>`) };
    const answer = await admin.post("/sso/register", registration("acme-open", { idpMetadata }));
    expect(outcome(answer)).toEqual(REFUSED);
  });

  it("is refused with hundreds of transforms, and not with those of a signature", async () => {
    const admin = await world.as("admin", "acme");
    const register = (id: string, count: number) => {
      const idpMetadata = { metadata: metadata("<Transform/>".repeat(count)) };
      return admin.post("/sso/register", registration(id, { idpMetadata }));
    };
    expect(outcome(await register("acme-transforms", 300))).toEqual(REFUSED);
    expect((await register("acme-signed", 2)).status).toBe(200);
  });

  it.each(["idpMetadata", "spMetadata"])(
    "is refused with thousands of elements: %s",
    async (name) => {
      const admin = await world.as("admin", "acme");
      const id = `acme-${name.toLowerCase()}`;
      const small = registration(id, { idpMetadata: { metadata: metadata("") } });
      const large = { ...small.samlConfig, [name]: { metadata: metadata("<a/>".repeat(2000)) } };
      const refused = await admin.post("/sso/register", { ...small, samlConfig: large });
      expect(outcome(refused)).toEqual(REFUSED);
      expect((await admin.post("/sso/register", small)).status).toBe(200);
      const update = {
        providerId: id,
        samlConfig: { [name]: { metadata: metadata("<a/>".repeat(2000)) } },
      };
      expect(outcome(await admin.post("/sso/update-provider", update))).toEqual(REFUSED);
      expect((await world.start("acme", id)).status).toBe(200);
    },
  );
});
