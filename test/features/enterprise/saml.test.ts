import { beforeAll, describe, expect, it } from "vitest";
import { bySlug, bySubdomain, type ResolveTenant } from "../../../src/index";
import { createSamlProvider } from "../../../src/testing/makers/saml";
import type { Browser } from "../../support/browser";
import { BASE_URL } from "../../support/instance";
import { BY_HEADER, DOMAINS, type Hosts, outcome, SUBDOMAINS } from "../../support/world";
import {
  ADA,
  acsOf,
  audienceOf,
  createSSOWorld,
  post,
  type SSOWorld,
  type SSOWorldOptions,
  samlRegistration,
  samlUnderWay,
  sharedSaml,
  shareSSOWorld,
  unasked,
} from "./world";

/*
 * SAML from one end to the other: what a provider has signed is changed, moved, kept, sent again and
 * sent elsewhere. better-auth refuses most of it. These tests notice if that changes.
 */

const idpAt = (name: string) => createSamlProvider(`https://${name}.idp.example`);
const [idp, globexIdp, everybodysIdp] = [
  await idpAt("acme"),
  await idpAt("globex"),
  await idpAt("everybodys"),
];
/** It calls itself what Acme's is called. */
const impostor = await idpAt("acme");

const BOSS = "boss@acme.example";
const MALLORY = "mallory@acme.example";
const EVE = "eve@acme.example";

type Edit = (assertion: string) => string;
type Forge = (response: string, assertion: string) => string | Promise<string>;

const opened = (encoded: string) => Buffer.from(encoded, "base64").toString();
const sealed = (xml: string) => Buffer.from(xml).toString("base64");
const assertionIn = (xml: string) => /<saml:Assertion .*<\/saml:Assertion>/s.exec(xml)?.[0] ?? "";
const SIGNATURE = /<ds:Signature .*?<\/ds:Signature>/s;
const signatureIn = (xml: string) => SIGNATURE.exec(xml)?.[0] ?? "";
const unsigned = (xml: string) => xml.replace(SIGNATURE, "");
const idIn = (xml: string) => /\bID="([^"]+)"/.exec(xml)?.[1] ?? "";
const after = (xml: string, tag: string, more: string) => xml.replace(tag, () => tag + more);

/** What Mallory makes of an assertion about herself. */
const forged = (assertion: string, id = "_forged") =>
  unsigned(assertion).replace(idIn(assertion), id).replaceAll(MALLORY, BOSS);

/** Puts the signed assertion out of the way, and something else in its place. */
const inExtensions = (xml: string, assertion: string, instead: string) =>
  xml
    .replace(assertion, () => instead)
    .replace("<samlp:Status>", () => `<samlp:Extensions>${assertion}</samlp:Extensions>$&`);

const ASSERTION_NS = ' xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"';
const DS = ' xmlns:ds="http://www.w3.org/2000/09/xmldsig#"';

/** Signs the response itself, in canonical form, beside or in place of its assertion. */
async function responseSigned(xml: string): Promise<string> {
  const spelled = xml
    .replace(ASSERTION_NS, "")
    .replace("<saml:Issuer>", `<saml:Issuer${ASSERTION_NS}>`);
  const canonical = spelled.replaceAll(`<ds:SignedInfo${DS}>`, "<ds:SignedInfo>");
  const signature = await idp.signatureOf(idIn(xml), canonical);
  return inside(spelled, `${signature}`);
}

/** A response that the provider has signed, without an assertion, in one that it has not. */
const aroundSigned: Forge = async (xml, assertion) => {
  const inner = await responseSigned(xml.replace(assertion, "").replace(idIn(xml), "_inner"));
  const outer = xml.replace(assertion, () => forged(assertion));
  return inside(outer, withObject(signatureIn(inner), `<ds:Object>${unsigned(inner)}</ds:Object>`));
};

const MULTIPLE = "saml_multiple_assertions";
const INVALID = "saml_error";
const UNBOUND = "invalid_saml_response";

/** Puts something in the place of the signed assertion. */
const replacing =
  (instead: (assertion: string) => string | Promise<string>): Forge =>
  async (xml, assertion) => {
    const replaced = await instead(assertion);
    return xml.replace(assertion, () => replaced);
  };

const inside = (xml: string, more: string) => after(xml, "</saml:Issuer>", more);
const withObject = (signature: string, content: string) =>
  signature.replace("</ds:Signature>", () => `${content}</ds:Signature>`);
const signedByImpostor = async (assertion: string) =>
  impostor.signatureOf("_forged", forged(assertion));
const shown = impostor.certificate.replaceAll(/-----.*?-----|\s/g, "");
const KEY_INFO = `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>${shown}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`;
/** In another namespace. */
const renamed = (xml: string) => xml.replaceAll("saml:", "x:").replace("xmlns:x", 'xmlns:x="y" $&');

const FORGERIES: [name: string, error: string, forge: Forge][] = [
  ["changed", INVALID, (xml) => xml.replaceAll(MALLORY, BOSS)],
  ["changed and without a signature", INVALID, replacing((a) => forged(a))],
  ["behind a forged one", MULTIPLE, replacing((a) => forged(a) + a)],
  ["before a forged one", MULTIPLE, replacing((a) => a + forged(a))],
  ["beside one with its ID", MULTIPLE, replacing((a) => forged(a, idIn(a)) + a)],
  [
    "inside a forged one",
    MULTIPLE,
    replacing((a) => inside(forged(a), `<saml:Advice>${a}</saml:Advice>`)),
  ],
  [
    "inside the signature that a forged one has",
    MULTIPLE,
    replacing((a) =>
      inside(forged(a), withObject(signatureIn(a), `<ds:Object>${unsigned(a)}</ds:Object>`)),
    ),
  ],
  ["moved to the extensions", MULTIPLE, (xml, a) => inExtensions(xml, a, forged(a))],
  [
    "moved to the extensions, its signature left behind",
    MULTIPLE,
    (xml, a) => inExtensions(xml, a, inside(forged(a), signatureIn(a))).replace(a, unsigned(a)),
  ],
  ["beside one of another namespace", MULTIPLE, replacing((a) => renamed(forged(a)) + a)],
  ["beside a second root", MULTIPLE, (xml, a) => xml + xml.replace(a, () => forged(a))],
  ["nowhere: the response without one is signed, around it is another", INVALID, aroundSigned],
  [
    "signed with another key",
    INVALID,
    replacing(async (a) => inside(forged(a), await signedByImpostor(a))),
  ],
  [
    "signed with another key, which it shows",
    INVALID,
    replacing(async (a) => inside(forged(a), withObject(await signedByImpostor(a), KEY_INFO))),
  ],
];

/** Signed by the right provider, and not meant for this, or not now: what is changed before it signs. */
const MISDIRECTED: [name: string, error: string, from: string | RegExp, to: string][] = [
  ["audience", UNBOUND, "<saml:Audience>", "$&https://other.example/"],
  ["audience of another tenant", UNBOUND, /(?<=<saml:Audience>)[^<]+/, audienceOf("globex-saml")],
  ["no audience", UNBOUND, /<saml:AudienceRestriction>.*<\/saml:AudienceRestriction>/, ""],
  ["recipient", UNBOUND, 'Recipient="', "$&https://other.example/"],
  ["recipient of another tenant", UNBOUND, /(?<=Recipient=")[^"]+/, acsOf("globex-saml")],
  ["recipient: none", UNBOUND, / Recipient="[^"]+"/, ""],
  ["issuer", INVALID, /(?<=<saml:Issuer>)[^<]+/, globexIdp.entityID],
  ["time: over", INVALID, /(?<=<saml:Conditions .*NotOnOrAfter=")[^"]+/, "2020-01-01T00:00:00Z"],
  ["time: not yet", INVALID, /(?<=NotBefore=")[^"]+/, "2070-01-01T00:00:00Z"],
];

/** What is changed around the assertion, and signed by nobody. */
const MISLABELED: typeof MISDIRECTED = [
  ["destination", UNBOUND, ' Destination="', "$&https://other.example/"],
  ["status", INVALID, "status:Success", "status:AuthnFailed"],
  ["request: an unknown one", UNBOUND, /(?<= InResponseTo=")[^"]*/, "_unknown"],
];

const FLOWS = ["started at the tenant", "started by the provider"] as const;
type Flow = (typeof FLOWS)[number];

/** Addresses that no redirect may lead to. */
const HOSTILE = [
  "//evil.example",
  "/\\\\evil.example",
  "/%2f/evil.example",
  "https://evil.example",
  "https://localhost:3000.evil.example",
  "javascript:alert(1)",
];

const world = shareSSOWorld({
  sso: {
    saml: { allowIdpInitiated: true, enableSingleLogout: true },
    defaultSSO: [sharedSaml("everybodys-saml", everybodysIdp)],
  },
});
beforeAll(async () => {
  const lax = { wantAssertionsSigned: false };
  await world.register("acme", samlRegistration("acme-saml", idp));
  await world.register("globex", samlRegistration("globex-lax", idp, lax));
  await world.register("globex", samlRegistration("globex-saml", globexIdp));
  for (const place of ["acme", "globex"]) await world.signUp(place, BOSS);
});

/** One that has to sign assertions, and one that may sign the response alone. */
const PROVIDERS = ["acme-saml", "globex-lax"] as const;
type ProviderId = (typeof PROVIDERS)[number];
const placeOf = (providerId: ProviderId) => (providerId === "acme-saml" ? "acme" : "globex");

interface Made {
  email?: string;
  acs?: string;
  edit?: Edit | undefined;
  forge?: Forge | undefined;
}

interface Sent {
  browser: Browser;
  form: Record<string, string>;
}

async function underWay(flow: Flow, providerId: ProviderId, made: Made, at: SSOWorld = world) {
  const { email = MALLORY, acs = acsOf(providerId), edit } = made;
  if (flow === FLOWS[0]) {
    return samlUnderWay(at, placeOf(providerId), providerId, idp, { email, acs }, edit);
  }
  const SAMLResponse = await unasked(idp, providerId, email, acs, edit);
  return { browser: at.at("platform"), form: { SAMLResponse } };
}

/** A response about Mallory, and what she makes of it. */
async function make(flow: Flow, providerId: ProviderId, made: Made = {}): Promise<Sent> {
  const { browser, form } = await underWay(flow, providerId, made);
  const xml = opened(form.SAMLResponse);
  const forged = await made.forge?.(xml, assertionIn(xml));
  return { browser, form: { ...form, SAMLResponse: sealed(forged ?? xml) } };
}

/** The control of each test: what the provider has signed is accepted. */
async function expectSignedIn(flow: Flow, providerId: ProviderId, made?: Made) {
  const { browser, form } = await make(flow, providerId, made);
  expect((await post(browser, acsOf(providerId), form)).location).toBe("/welcome");
  const tenantId = world.ids[placeOf(providerId)];
  const { email = MALLORY } = made ?? {};
  expect(await world.whoIs(browser)).toMatchObject({ email, tenantId });
}

/** Compares what the page is told, or what is answered. No user and no session was made. */
async function expectRefused(
  error: string,
  { browser, form }: Sent,
  address: string,
  headers: Record<string, string> = {},
) {
  const people = () => Promise.all(["user", "account", "session"].map((name) => world.rows(name)));
  const before = await people();
  const { location, data } = await post(browser, address, form, headers);
  const told = location && new URL(location, BASE_URL).searchParams.get("error");
  expect(told ?? data?.code ?? data?.message).toBe(error);
  expect(await people()).toEqual(before);
  expect(await world.whoIs(browser)).toBe(null);
}

describe.each([
  [FLOWS[0], PROVIDERS[0]],
  [FLOWS[1], PROVIDERS[1]],
])("a SAML response of a flow that was %s, of %s", (flow, providerId) => {
  it.each(FORGERIES)("is refused with its assertion %s", async (_, error, forge) => {
    await expectRefused(error, await make(flow, providerId, { forge }), acsOf(providerId));
    await expectSignedIn(flow, providerId);
  });

  it.each([...MISDIRECTED, ...MISLABELED])("is refused with another %s", async (...row) => {
    const [what, error, from, to] = row;
    const change = (xml: string) => xml.replace(from, to);
    const isSigned = MISDIRECTED.some(([name]) => name === what);
    const made = isSigned ? { edit: change } : { forge: change };
    await expectRefused(error, await make(flow, providerId, made), acsOf(providerId));
    await expectSignedIn(flow, providerId);
  });

  it.each(["<!-- -->.", "<![CDATA[.]]>", "&#x2e;"])(
    "is read as it was signed, with a name that is written differently: %s",
    async (dot) => {
      const email = `${BOSS}.attacker.example`;
      const forge: Forge = (xml) => xml.replaceAll(email, `${BOSS}${dot}attacker.example`);
      await expectSignedIn(flow, providerId, { email, forge });
    },
  );

  it("may be signed as well, and alone where assertions need not be", async () => {
    const alone: Forge = (xml) => responseSigned(unsigned(xml));
    const acs = acsOf(providerId);
    await expectSignedIn(flow, providerId, { forge: responseSigned });
    if (providerId === "globex-lax") await expectSignedIn(flow, providerId, { forge: alone });
    else await expectRefused(UNBOUND, await make(flow, providerId, { forge: alone }), acs);
    const changed: Forge = async (xml) => (await alone(xml, "")).replaceAll(MALLORY, BOSS);
    await expectRefused(INVALID, await make(flow, providerId, { forge: changed }), acs);
  });
});

describe.each(FLOWS)("a SAML response of a flow that was %s", (flow) => {
  it.each<[acs: string, where: string, error: string]>([
    ["globex-saml", "platform", INVALID],
    ["globex-lax", "platform", UNBOUND],
    ["globex-saml", "globex", INVALID],
    ["acme-saml", "globex", "No SAML provider found"],
    ["globex-saml", "acme", "No SAML provider found"],
    ["unknown-saml", "acme", "No SAML provider found"],
    ["everybodys-saml", "acme", INVALID],
  ])("is refused at the address of %s, with the name of %s", async (acs, where, error) => {
    await expectRefused(error, await make(flow, "acme-saml"), acsOf(acs), world.naming(where));
    await expectSignedIn(flow, "acme-saml");
  });

  it.each<[name: string, relayState: () => string | Promise<string>]>([
    [
      "of another tenant's flow",
      async () => (await samlUnderWay(world, "globex", "globex-saml", globexIdp)).form.RelayState,
    ],
    [
      "that was used before",
      async () => {
        const { browser, form } = await samlUnderWay(world, "acme", "acme-saml", idp);
        await post(browser, acsOf("acme-saml"), form);
        return form.RelayState;
      },
    ],
    ...HOSTILE.map((page): [string, () => string] => [page, () => page]),
  ])("is refused with a relay state %s", async (_, relayState) => {
    const { browser, form } = await make(flow, "acme-saml");
    const changed = { browser, form: { ...form, RelayState: await relayState() } };
    await expectRefused("invalid_state", changed, acsOf("acme-saml"));
    await expectSignedIn(flow, "acme-saml");
  });
});

const written = (xml: string, how: (id: string) => string) => {
  const id = idIn(assertionIn(xml));
  return xml.replace(`ID="${id}"`, () => `ID${how(id)}`);
};
const entities = (count: number) =>
  Array.from({ length: count }, (_, i) => `<!ENTITY e${i} "x">`).join("");

/**
 * What is signed stays where it was, for the parser of the signature. To the parser of IDs, quotes in a
 * processing instruction hide its end, so that it sees an assertion with another ID.
 */
function withDecoy(xml: string): string {
  const [signed = ""] = /<(\w+:)?Assertion[\s>][\s\S]*<\/\1?Assertion>/.exec(xml) ?? [];
  const decoy = signed
    .replace(/<(\w+:)?Signature[\s>][\s\S]*?<\/\1?Signature>/, "")
    .replace(/ID="[^"]*"/, `ID="_${crypto.randomUUID()}"`);
  expect(decoy.length).toBeLessThan(signed.length);
  return xml.replace(signed, () => `<?x '?><!-- ' ?>${decoy}<?w '-->${signed}<?v '?>`);
}

/** Writes more into the tag of the signed assertion, behind its ID. */
const inTag = (xml: string, more: string) =>
  xml.replace(/<saml:Assertion [^>]*\bID="[^"]+"/, (tag) => tag + more);

/** To the parser of IDs, a quote that the declaration leaves open hides the "<!--" that follows. */
const withOpenDeclaration = (xml: string) =>
  `<?xml version='?><!--' ?><Response ID="_decoy"></Response><!-- -->${xml}`;

/** Characters that a parser may read as a space, or not at all. */
const SPACES = ["\uFEFF", "\u1680", "\u180E", "\u200B", "\u00A0", "\u0080", "\u2028", "\f", "\0"];

const REPLAY = "replay_detected";
const ODD = "SAML_INVALID_XML";

/** Ways to write what was signed so that one parser reads the same, and another does not. */
const DISGUISES: [name: string, error: string, forge: (xml: string) => string][] = [
  ["as it was", REPLAY, (xml) => xml],
  ["with a comment in front", REPLAY, (xml) => `<!-- again -->${xml}`],
  ["with a reference in its ID", ODD, (xml) => written(xml, (id) => `="&#95;${id.slice(1)}"`)],
  ["with one in other quotes", ODD, (xml) => written(xml, (id) => ` =\n'&#x5F;${id.slice(1)}'`)],
  ["with two hyphens in a comment", ODD, (xml) => `<!-- -- -->${xml}`],
  ["with a document type", ODD, (xml) => `<!DOCTYPE r>${xml}`],
  ["with many entities", "XML_TOO_LARGE", (xml) => `<!DOCTYPE r [${entities(1001)}]>${xml}`],
  ["with a long entity", ODD, (xml) => `<!DOCTYPE r [<!ENTITY e "${"x".repeat(10_001)}">]>${xml}`],
  ["with a decoy between processing instructions", ODD, withDecoy],
  ["with a declaration of XML", REPLAY, (xml) => `<?xml version="1.0" encoding="UTF-8"?>\n${xml}`],
  ["with a declaration that is left open", ODD, withOpenDeclaration],
  ...SPACES.map((space): (typeof DISGUISES)[number] => [
    `with another ID behind ${JSON.stringify(space)} (${space.charCodeAt(0)})`,
    ODD,
    (xml) => inTag(xml, ` xmlns:x${space}ID="_other"`),
  ]),
  ["with a prefix that no element uses", REPLAY, (xml) => inTag(xml, ' xmlns:x\n=\t"\uFEFFID"')],
  ["with a prefix in other letters", ODD, (xml) => inTag(xml, ' xmlns:\u00E9="y"')],
  ["with another ID with a prefix", ODD, (xml) => inTag(xml, ' xmlns:x="y" x:ID="_other"')],
  ["with another ID", ODD, (xml) => inTag(xml, ' ID="_other"')],
  ["with another ID without quotes", ODD, (xml) => inTag(xml, " xmlns:x=ID ID=_other")],
  ["with a name without a value", ODD, (xml) => inTag(xml, " xmlns:x")],
  ["with a namespace without a space", ODD, (xml) => inTag(xml, 'xmlns:x="y"')],
  ["with a tag in a value", ODD, (xml) => inTag(xml, ' xmlns:x="<saml:Assertion>"')],
  ["with a second root", INVALID, (xml) => `${xml}<Response/>`],
  ["without base64", "SAML_INVALID_ENCODING", () => "-"],
];

describe("a SAML response is good once", () => {
  const again = (response: string, disguise: (xml: string) => string) => {
    const xml = disguise(opened(response));
    return xml === "-" ? xml : sealed(xml);
  };

  it.each(DISGUISES)("in its tenant: %s", async (_, error, disguise) => {
    const SAMLResponse = await unasked(idp, "acme-saml", MALLORY);
    const acs = acsOf("acme-saml");
    expect((await post(world.at("platform"), acs, { SAMLResponse })).location).toBe("/welcome");
    const form = { SAMLResponse: again(SAMLResponse, disguise) };
    await expectRefused(error, { browser: world.at("platform"), form }, acs);
    // Only the assertion is signed: the response can be made to answer another request.
    const next = await samlUnderWay(world, "acme", "acme-saml", idp);
    const asked = again(SAMLResponse, (xml) =>
      disguise(xml.replace(/(?<= InResponseTo=")(?=")/, next.inResponseTo)),
    );
    await expectRefused(error, { ...next, form: { ...next.form, SAMLResponse: asked } }, acs);
    await expectSignedIn(FLOWS[1], "acme-saml");
  });

  it.each(DISGUISES)(
    "in all tenants, of the application's own provider: %s",
    async (_, error, disguise) => {
      const acs = acsOf("everybodys-saml");
      const SAMLResponse = await unasked(everybodysIdp, "everybodys-saml", EVE);
      expect((await post(world.at("acme"), acs, { SAMLResponse })).location).toBe("/welcome");
      for (const place of ["acme", "globex", "platform"] as const) {
        const form = { SAMLResponse: again(SAMLResponse, disguise) };
        await expectRefused(error, { browser: world.at(place), form }, acs);
      }
      const browser = world.at("globex");
      const form = { SAMLResponse: await unasked(everybodysIdp, "everybodys-saml", EVE) };
      expect((await post(browser, acs, form)).location).toBe("/welcome");
      expect(await world.whoIs(browser)).toMatchObject({ tenantId: world.ids.globex });
    },
  );
});

it.each(SPACES)("another recipient is not taken behind %j", async (space) => {
  const acs = acsOf("globex-lax");
  const form = {
    SAMLResponse: await unasked(idp, "globex-lax", MALLORY, acs, (assertion) =>
      assertion.replace(/(?<= Recipient=")[^"]+/, "https://other.example/acs"),
    ),
  };
  await expectRefused(UNBOUND, { browser: world.at("platform"), form }, acs);
  const disguised = opened(form.SAMLResponse).replace(
    / Recipient="[^"]+"/,
    `$& xmlns:x${space}Recipient="${acs}"`,
  );
  const sent = { browser: world.at("platform"), form: { SAMLResponse: sealed(disguised) } };
  await expectRefused(ODD, sent, acs);
  await expectSignedIn(FLOWS[1], "globex-lax");
});

it.each([
  "https://intranet.example/photo?ID=7&amp;size=L",
  'a &gt; b > c, x ID = "7&amp;"',
  "Zo\u00EB\u00A0\u{1F600}\uFEFF",
  "<![CDATA[<a ID='&'>]]>",
  "<!-- <a ID='&' --><!---->",
])("a response may contain the text %s", async (text) => {
  // What is signed has to be in canonical form. What is around it does not.
  const signedText = text.includes("<!") ? "" : text.replace(" > ", " &gt; ");
  const attribute = `<saml:Attribute Name="photo"><saml:AttributeValue>${signedText}</saml:AttributeValue></saml:Attribute>`;
  const edit: Edit = (assertion) =>
    assertion.replace("</saml:AttributeStatement>", () => `${attribute}</saml:AttributeStatement>`);
  const forge: Forge = (xml) =>
    xml.replace(
      "<samlp:Status>",
      () => `<samlp:Extensions>${text}</samlp:Extensions><samlp:Status>`,
    );
  await expectSignedIn(FLOWS[1], "acme-saml", { edit, forge });
});

describe("where SAML leads to", () => {
  it.each(HOSTILE)("is not %s, with any parameter", async (page) => {
    const acs = acsOf("acme-saml");
    const signedIn = world.at("platform");
    const { form } = await samlUnderWay(world, "acme", "acme-saml", idp);
    expect((await post(signedIn, acs, form)).location).toBe("/welcome");
    const query = { RelayState: page };
    for (const address of [acs, acs.replace("/acs/", "/slo/")]) {
      const { location } = await signedIn.get(address, { query });
      expect(location).toMatch(/^http:\/\/localhost:3000(\/?\?|$)/);
    }
    for (const name of ["callbackURL", "errorCallbackURL"]) {
      const by = { providerId: "acme-saml", [name]: page };
      expect((await world.start("acme", by)).status).toBe(403);
    }
    const admin = await world.as("admin", "acme");
    for (const name of ["callbackUrl", "idpInitiatedCallbackUrl"]) {
      const providerId = `acme-${name.toLowerCase()}`;
      const pages = { callbackUrl: undefined, [name]: page };
      const registration = samlRegistration(providerId, idp, pages);
      const { status } = await admin.post("/sso/register", registration);
      if (status === 400) continue;
      const email = `${crypto.randomUUID()}@acme.example`;
      const SAMLResponse = await unasked(idp, providerId, email);
      const { location } = await post(world.at("platform"), acsOf(providerId), { SAMLResponse });
      expect(location).toBe("http://localhost:3000");
      await admin.post("/sso/delete-provider", { providerId });
    }
  });
});

/** One resolver inside of another, as in docs/resolving.md. */
const WRAPPED: Hosts = {
  names: SUBDOMAINS.names,
  resolveTenantId: (ctx) => bySubdomain({ baseDomain: "example.com" })(ctx),
};

describe.each<[name: string, hosts: Hosts]>([
  ["subdomains", SUBDOMAINS],
  ["domains of their own", DOMAINS],
  ["a resolver around bySubdomain()", WRAPPED],
])("SAML where tenants have hosts: %s", (_, hosts) => {
  const world = shareSSOWorld({ hosts, sso: { saml: { allowIdpInitiated: true } } });
  const at = (place: "acme" | "platform" | "globex") =>
    acsOf("acme-saml", `http://${hosts.names[place]}/api/auth`);
  beforeAll(async () => {
    await world.register("acme", samlRegistration("acme-saml", idp));
    await world.register("platform", samlRegistration("platform-saml", globexIdp));
  });

  it.each(FLOWS)(
    "a response that was %s is taken at the host of its tenant alone",
    async (flow) => {
      const sentTo = (acs: string) => underWay(flow, "acme-saml", { email: ADA, acs }, world);
      const { form } = await sentTo(at("platform"));
      const stranger = world.at("platform");
      await world.unchanged(async () => {
        const answer = await post(stranger, at("platform"), form);
        expect(outcome(answer)).toEqual([409, "TENANT_SCOPE_CONFLICT"]);
        expect(answer.data.message).toContain(`${hosts.names.platform} is a host of the platform`);
        expect(answer.headers.getSetCookie()).toEqual([]);
      });
      const good = await sentTo(at("acme"));
      const elsewhere = await post(world.at("globex"), at("globex"), good.form);
      expect(elsewhere.status).toBe(404);
      // Nothing was used up by the attempts before.
      expect(outcome(await post(stranger, at("platform"), good.form))).toEqual([
        409,
        "TENANT_SCOPE_CONFLICT",
      ]);
      const browser = world.at("acme");
      expect((await post(browser, at("acme"), good.form)).location).toBe("/welcome");
      expect(await world.whoIs(browser)).toMatchObject({ email: ADA, tenantId: world.ids.acme });
    },
  );

  it("a response of the platform's own provider is taken at the platform's host", async () => {
    const acs = at("platform").replace("acme-saml", "platform-saml");
    const browser = world.at("platform");
    const form = { SAMLResponse: await unasked(globexIdp, "platform-saml", ADA, acs) };
    expect((await post(browser, acs, form)).location).toBe("/welcome");
    expect(await world.whoIs(browser)).toMatchObject({ tenantId: null });
  });

  it.each(["acme", "globex"] as const)(
    "leads to a page at the host of %s, if it is its own",
    async (host) => {
      const page = `http://${hosts.names[host]}/page`;
      const isOwn = host === "acme";
      const leads = isOwn ? page : `http://${hosts.names.acme}`;
      const started = await world.start("acme", { providerId: "acme-saml", callbackURL: page });
      expect(started.status).toBe(isOwn ? 200 : 403);
      const providerId = `acme-to-${host}`;
      await world.register("acme", samlRegistration(providerId, idp, { callbackUrl: page }));
      const acs = at("acme").replace("acme-saml", providerId);
      const browser = world.at("acme");
      const form = { SAMLResponse: await unasked(idp, providerId, `${host}@a.example`, acs) };
      expect((await post(browser, acs, form)).location).toBe(leads);
      expect((await browser.get(acs, { query: { RelayState: page } })).location).toBe(leads);
    },
  );

  it("the metadata shows the address at the host that it is read from", async () => {
    for (const place of ["acme", "platform"] as const) {
      const query = { providerId: "acme-saml" };
      const { data } = await world.at(place).get("/sso/saml2/sp/metadata", { query });
      expect(JSON.stringify(data)).toContain(at(place));
    }
  });
});

const byProxy: ResolveTenant = ({ headers }) => headers?.get("x-tenant-id") ?? false;
const crossSubDomainCookies = { enabled: true, domain: "example.com" };

it.each<[name: string, options: SSOWorldOptions]>([
  ["no resolver", {}],
  ["slugs", { tenant: { resolveTenantId: bySlug() } }],
  ["a header that a proxy sets", { tenant: { resolveTenantId: byProxy } }],
  ["hosts that let the request speak", { hosts: BY_HEADER }],
  [
    "hosts that share their cookies",
    {
      hosts: SUBDOMAINS,
      auth: {
        baseURL: "http://example.com",
        trustedOrigins: ["http://*.example.com"],
        advanced: { crossSubDomainCookies },
      },
    },
  ],
])("SAML at the base address signs users in with %s", async (_, options) => {
  const world = await createSSOWorld({ ...options, sso: { saml: { allowIdpInitiated: true } } });
  await world.register("acme", samlRegistration("acme-saml", idp));
  const base = options.hosts ? `http://${options.hosts.names.platform}/api/auth` : BASE_URL;
  const acs = acsOf("acme-saml", base);
  for (const flow of FLOWS) {
    const { form } = await underWay(flow, "acme-saml", { email: ADA, acs }, world);
    const browser = world.at("platform");
    expect((await post(browser, acs, form)).location).toBe("/welcome");
    expect(await world.whoIs(browser, "acme")).toMatchObject({ tenantId: world.ids.acme });
  }
});
