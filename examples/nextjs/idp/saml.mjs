import { randomUUID } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import saml from "samlify";
import { escapeHtml, fact, hiddenFields, page, whoAreYou } from "./page.mjs";

const POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST";
const REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
const EMAIL = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress";

/** Where the application takes what the identity provider says about somebody. */
const ACS = /^\/api\/auth\/sso\/saml2\/sp\/acs\/[\w-]+$/;

/** The part of the identity provider that speaks SAML. What it says about people is signed. */
export function speakSaml({ origin, keys, people, isOurs }) {
  const entityID = `${origin}/saml/metadata`;
  const entryPoint = `${origin}/saml/sso`;
  const metadata = metadataOf({ entityID, entryPoint, certificate: keys.certificate });
  const idp = saml.IdentityProvider({
    metadata,
    privateKey: keys.privateKey.export({ type: "pkcs8", format: "pem" }),
    requestSignatureAlgorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    loginResponseTemplate: {
      context: saml.SamlLib.defaultLoginResponseTemplate.context,
      attributes: ["email", "displayName", "emailVerified"].map((name) => ({
        name,
        valueTag: name,
        nameFormat: "urn:oasis:names:tc:SAML:2.0:attrname-format:basic",
        valueXsiType: "xs:string",
      })),
    },
  });

  function describe(response) {
    response.writeHead(200, { "content-type": "application/samlmetadata+xml" }).end(metadata);
  }

  /** Says who is signed in to nobody but the application, whatever the request asks for. */
  function knownRequest(response, params) {
    const request = readRequest(params.SAMLRequest);
    if (request && isOurs(request.acs, ACS)) return request;
    page(response, 400, "Invalid request", [
      "<p>This is no request for a sign-in, or it comes from an application that is not registered",
      "here.</p>",
    ]);
  }

  function ask(response, params) {
    const request = knownRequest(response, params);
    if (!request) return;
    const { SAMLRequest, RelayState = "" } = params;
    page(response, 200, "Sign in with SAML", [
      `<p>The application <strong>${escapeHtml(request.audience)}</strong> would like to know your
       name and your email address.</p>`,
      '<form method="post" action="/saml/sso">',
      ...hiddenFields({ SAMLRequest, RelayState }),
      ...whoAreYou(people),
      '<div class="row"><button name="decision" value="allow">Sign in</button></div></form>',
    ]);
  }

  async function answer(response, params) {
    const request = knownRequest(response, params);
    if (!request) return;
    const person = people.find(({ username }) => username === params.username);
    if (!person) return ask(response, params);
    const fields = {
      SAMLResponse: await respond(request, person),
      RelayState: params.RelayState ?? "",
    };
    const content = [
      "<p>You are on the way back to the application.</p>",
      `<form method="post" action="${escapeHtml(request.acs)}">`,
      ...hiddenFields(fields),
      '<div class="row"><button>Continue</button></div></form>',
    ];
    page(response, 200, "Signed in", content, { script: "document.forms[0].submit()" });
  }

  async function respond({ id, acs, audience }, { name, email }) {
    const sp = saml.ServiceProvider({
      entityID: audience,
      wantAssertionsSigned: true,
      assertionConsumerService: [{ Binding: POST, Location: acs }],
    });
    const now = new Date().toISOString();
    const soon = new Date(Date.now() + 300_000).toISOString();
    const values = {
      ID: `_${randomUUID()}`,
      AssertionID: `_${randomUUID()}`,
      Issuer: entityID,
      IssueInstant: now,
      Destination: acs,
      SubjectRecipient: acs,
      AssertionConsumerServiceURL: acs,
      Audience: audience,
      EntityID: audience,
      InResponseTo: id,
      StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success",
      ConditionsNotBefore: now,
      ConditionsNotOnOrAfter: soon,
      SubjectConfirmationDataNotOnOrAfter: soon,
      NameIDFormat: EMAIL,
      NameID: email,
      AuthnStatement: "",
      attrEmail: email,
      attrDisplayName: name,
      attrEmailVerified: "true",
    };
    const { context } = await idp.createLoginResponse(
      sp,
      {},
      "post",
      { email },
      {
        customTagReplacement: (template) => ({
          id: values.ID,
          context: saml.SamlLib.replaceTagsByValue(template, values),
        }),
      },
    );
    return context;
  }

  return {
    routes: {
      "GET /saml/metadata": describe,
      "GET /saml/sso": ask,
      "POST /saml/sso": answer,
    },
    settings: [
      "<h2>Single sign-on with SAML</h2>",
      `<dl>${fact("Entity ID, and where the metadata is", entityID)}`,
      `${fact("Sign-in URL", entryPoint)}</dl>`,
      `<label class="to-copy">Metadata<textarea readonly>${escapeHtml(metadata)}</textarea></label>`,
      `<label class="to-copy">Certificate<textarea readonly>${escapeHtml(keys.certificate)}</textarea></label>`,
    ],
  };
}

/** What an application has to know. */
function metadataOf({ entityID, entryPoint, certificate }) {
  return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${entityID}">
  <IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
    <KeyDescriptor use="signing">
      <KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#">
        <X509Data>
          <X509Certificate>${certificate.replace(/-----.*-----|\s/g, "")}</X509Certificate>
        </X509Data>
      </KeyInfo>
    </KeyDescriptor>
    <NameIDFormat>${EMAIL}</NameIDFormat>
    <SingleSignOnService Binding="${REDIRECT}" Location="${entryPoint}"/>
  </IDPSSODescriptor>
</EntityDescriptor>`;
}

/** Of a request: its id, who sends it, and where the answer is to go. */
function readRequest(encoded) {
  try {
    const xml = inflateRawSync(Buffer.from(encoded, "base64"), { maxOutputLength: 100_000 });
    const { request, issuer } = saml.Extractor.extract(
      xml.toString(),
      saml.Extractor.loginRequestFields,
    );
    return { id: request.id, acs: request.assertionConsumerServiceUrl, audience: issuer };
  } catch {
    return undefined;
  }
}
