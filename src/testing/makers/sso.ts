import { KIT_DOMAIN, proofOf } from "../instance/domains";
import { isSwitchedOff } from "../instance/switched-off";
import { ok } from "../sides/browser";
import type { Side } from "../sides/side";
import { inAnHour, maker } from "./maker";
import { createSamlProvider, requestIn, type SamlProvider } from "./saml";

const PROVIDER = `https://identity.${KIT_DOMAIN}`;
const ACS = "/sso/saml2/sp/acs/:providerId";
const SLO = "/sso/saml2/sp/slo/:providerId";

const oidcConfig = (clientId: string) => ({
  issuer: PROVIDER,
  clientId,
  clientSecret: `secret-of-${clientId}`,
  discoveryEndpoint: `${PROVIDER}/.well-known/openid-configuration`,
  authorizationEndpoint: `${PROVIDER}/authorize`,
  tokenEndpoint: `${PROVIDER}/token`,
  jwksEndpoint: `${PROVIDER}/keys`,
  pkce: true,
});

const domainOf = (providerId: string) => `${providerId}.${KIT_DOMAIN}`;

/** A provider of the place, as an administrator of it leaves it. */
async function store(side: Side, providerId: string, config: object, domainVerified = true) {
  const { adapter, tables } = side.workshop.subject.ctx;
  const data = {
    providerId,
    issuer: PROVIDER,
    domain: domainOf(providerId),
    userId: side.main.userId,
    // The column is there where the application asks for it.
    ...(tables.ssoProvider?.fields.domainVerified && { domainVerified }),
    ...config,
  };
  await side.inside(() => adapter.create({ model: "ssoProvider", data }));
}

async function startAt(side: Side, providerId: string) {
  const browser = side.fresh();
  const body = { providerId, callbackURL: "/welcome", errorCallbackURL: "/failed" };
  const { url } = await ok<{ url: string }>(browser.post("/sign-in/sso", body));
  return { url, cookies: browser.cookies };
}

/** A provider that speaks OpenID Connect, and a user who is on the way back from it. */
export const oidcProvider = maker(
  "SSO provider",
  ["/sso/register", "/sign-in/sso"],
  async (side) => {
    const { workshop, name, things, secrets } = side;
    const word = `${workshop.mark}-${name}`;
    const ssoProviderId = `sso-${word}`;
    const config = oidcConfig(`client-of-${ssoProviderId}`);
    await store(side, ssoProviderId, { oidcConfig: JSON.stringify(config) });
    secrets.push(config.clientSecret);
    const ssoDomain = domainOf(ssoProviderId);
    const newSsoProvider = {
      providerId: `new-${word}`,
      issuer: PROVIDER,
      domain: domainOf(`new-${word}`),
      oidcConfig: { ...oidcConfig(`new-client-${word}`), skipDiscovery: true },
    };
    Object.assign(things, { ssoProviderId, ssoDomain, newSsoProvider });
    const { url, cookies } = await startAt(side, ssoProviderId);
    const sub = `person-${ssoProviderId}`;
    const code = `code-${sub}`;
    const email = `person@${ssoDomain}`;
    workshop.providers.answerFor(url, code, { aud: config.clientId, sub, email });
    const values = { state: new URL(url).searchParams.get("state"), code, ssoProviderId };
    const reach = { home: "/sso/callback/:providerId", sealed: true, sealedFor: "/sso/callback" };
    return { name: "SSO state", values, cookies, ...reach };
  },
);

/** A provider whose domain is about to be verified. */
export const unverifiedProvider = maker(
  "SSO provider with a domain to verify",
  ["/sso/verify-domain"],
  async (side) => {
    const { subject, mark } = side.workshop;
    const providerId = `todo-${mark}-${side.name}`;
    const config = oidcConfig(`client-of-${providerId}`);
    await store(side, providerId, { oidcConfig: JSON.stringify(config) }, false);
    const options = subject.plugins.find(({ id }) => id === "sso")?.options ?? {};
    const { domainVerification } = options as { domainVerification?: { tokenPrefix?: string } };
    const prefix = domainVerification?.tokenPrefix || "better-auth-token";
    await side.inside(() =>
      subject.ctx.internalAdapter.createVerificationValue({
        identifier: `_${prefix}-${providerId}`,
        value: proofOf(domainOf(providerId)),
        expiresAt: inAnHour(),
      }),
    );
    side.things.unverifiedProviderId = providerId;
  },
);

/** A SAML provider: a user who has signed in there, one on the way back, and a logout. */
export const samlProvider = maker("SAML provider", [ACS, SLO, "/sign-in/sso"], async (side) => {
  const { workshop, name, things } = side;
  const samlProviderId = `saml-${workshop.mark}-${name}`;
  const provider = await createSamlProvider(`${PROVIDER}/${samlProviderId}`);
  await store(side, samlProviderId, { samlConfig: samlConfigOf(provider, samlProviderId) });
  things.samlProviderId = samlProviderId;
  const email = `person@${domainOf(samlProviderId)}`;
  await signIn(side, provider, email);
  const response = {
    name: "SAML response",
    ...(await respond(side, provider, `next-${email}`)),
    home: ACS,
    method: "POST",
  };
  side.abroad.push(async (at) => ({
    ...response,
    name: "SAML response for a provider of the other side",
    values: { ...response.values, samlProviderId: at.things.samlProviderId },
    isForeign: true,
  }));
  const sealed = { sealed: true, sealedFor: "/sso/saml2/sp" };
  const made = [{ ...response, ...sealed }];
  if (isSwitchedOff(SLO, workshop.subject.ctx.options)) return made;
  const { posted, inAddress } = provider.logout(addressOf(side, SLO), email);
  const logout = (name: string, method: string, SAMLRequest: string) => {
    return { name, values: { samlProviderId, SAMLRequest }, method, home: SLO, ...sealed };
  };
  return [
    ...made,
    logout("SAML logout", "POST", posted),
    logout("SAML logout in an address", "GET", inAddress),
  ];
});

const samlConfigOf = ({ entityID, certificate }: SamlProvider, audience: string) =>
  JSON.stringify({
    issuer: audience,
    audience,
    entryPoint: `${PROVIDER}/saml`,
    cert: certificate,
    callbackUrl: "/welcome",
    wantAssertionsSigned: true,
    spMetadata: { entityID: audience },
    idpMetadata: {
      entityID,
      singleLogoutService: ["HTTP-POST", "HTTP-Redirect"].map((binding) => ({
        Binding: `urn:oasis:names:tc:SAML:2.0:bindings:${binding}`,
        Location: `${PROVIDER}/logout`,
      })),
    },
  });

function addressOf({ place, workshop, things }: Side, path: string): string {
  const { basePath } = workshop.subject;
  return place.origin + basePath + path.replace(":providerId", String(things.samlProviderId));
}

/** A user has gone to the provider, which sends them back with a response. */
async function respond(side: Side, provider: SamlProvider, email: string) {
  const samlProviderId = String(side.things.samlProviderId);
  const { url, cookies } = await startAt(side, samlProviderId);
  const { id, relayState } = await requestIn(url);
  const given = { acs: addressOf(side, ACS), audience: samlProviderId, inResponseTo: id, email };
  const SAMLResponse = await provider.respond(given);
  return { values: { samlProviderId, SAMLResponse, RelayState: relayState }, cookies };
}

async function signIn(side: Side, provider: SamlProvider, email: string): Promise<void> {
  const { values } = await respond(side, provider, email);
  const browser = side.fresh();
  await ok(browser.post(addressOf(side, ACS), values));
  const session = await ok<{ user: { id: string } } | null>(browser.get("/get-session"));
  if (!session) throw new Error("there is no session after it");
  side.sessions.push({ name: "SAML session", userId: session.user.id, cookies: browser.cookies });
}
