import { KIT_DOMAIN, proofOf } from "../instance/domains";
import { isSwitchedOff } from "../instance/switched-off";
import { ok } from "../sides/browser";
import type { Side } from "../sides/side";
import type { Maker } from "./maker";
import { createSamlProvider, requestIn, type SamlProvider } from "./saml";

const PROVIDER = `https://identity.${KIT_DOMAIN}`;
const ACS = "/sso/saml2/sp/acs/:providerId";
const SLO = "/sso/saml2/sp/slo/:providerId";
const SERVICE = "/sso/saml2/sp";
const HOUR_MS = 3_600_000;

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

/** What somebody registers who may: a provider that nobody has yet. */
const newProvider = (word: string) => ({
  providerId: `new-${word}`,
  issuer: PROVIDER,
  domain: `new-${word}.${KIT_DOMAIN}`,
  oidcConfig: { ...oidcConfig(`new-client-${word}`), skipDiscovery: true },
});

const domainOf = (providerId: string) => `${providerId}.${KIT_DOMAIN}`;

/** A provider of the place, as an administrator of it leaves it. */
async function store(side: Side, providerId: string, config: object, verified = true) {
  const { adapter, tables } = side.workshop.subject.ctx;
  const data = {
    providerId,
    issuer: PROVIDER,
    domain: domainOf(providerId),
    userId: side.main.userId,
    // The column is there where the application asks for it.
    ...(tables.ssoProvider?.fields.domainVerified && { domainVerified: verified }),
    ...config,
  };
  await side.inside(() => adapter.create({ model: "ssoProvider", data }));
}

const startAt = (side: Side, providerId: string) => {
  const browser = side.fresh();
  const body = { providerId, callbackURL: "/welcome", errorCallbackURL: "/failed" };
  return ok<{ url: string }>(browser.post("/sign-in/sso", body)).then(({ url }) => ({
    url,
    cookies: browser.cookies,
  }));
};

/** A provider that speaks OpenID Connect, and somebody who is on the way back from it. */
export const oidcProvider: Maker = {
  name: "SSO provider",
  paths: ["/sso/register", "/sign-in/sso"],
  async make(side) {
    const { workshop, name, things, secrets, oneTimes } = side;
    const ssoProviderId = `sso-${workshop.mark}-${name}`;
    const config = oidcConfig(`client-of-${ssoProviderId}`);
    await store(side, ssoProviderId, { oidcConfig: JSON.stringify(config) });
    secrets.push(config.clientSecret);
    const ssoDomain = domainOf(ssoProviderId);
    const newSsoProvider = newProvider(`${workshop.mark}-${name}`);
    Object.assign(things, { ssoProviderId, ssoDomain, newSsoProvider });
    const { url, cookies } = await startAt(side, ssoProviderId);
    const sub = `person-${ssoProviderId}`;
    const code = `code-${sub}`;
    const email = `person@${ssoDomain}`;
    workshop.providers.answerFor(url, code, { aud: config.clientId, sub, email });
    const state = new URL(url).searchParams.get("state");
    oneTimes.push({
      name: "SSO state",
      values: { state, code, ssoProviderId },
      cookies,
      home: "/sso/callback/:providerId",
      sealed: true,
      sealedFor: "/sso/callback",
    });
  },
};

/** A provider whose domain is about to be verified. */
export const unverifiedProvider: Maker = {
  name: "SSO provider with a domain to verify",
  paths: ["/sso/verify-domain"],
  async make(side) {
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
        expiresAt: new Date(Date.now() + HOUR_MS),
      }),
    );
    Object.assign(side.things, { unverifiedProviderId: providerId });
  },
};

/**
 * A provider that speaks SAML, somebody who has signed in there, somebody who is on the way back,
 * and a logout that the provider has started.
 */
export const samlProvider: Maker = {
  name: "SAML provider",
  paths: [ACS, SLO, "/sign-in/sso"],
  async make(side) {
    const { workshop, name, things, oneTimes } = side;
    const samlProviderId = `saml-${workshop.mark}-${name}`;
    const provider = await createSamlProvider(`${PROVIDER}/${samlProviderId}`);
    await store(side, samlProviderId, { samlConfig: samlConfigOf(provider, samlProviderId) });
    Object.assign(things, { samlProviderId });
    const email = `person@${domainOf(samlProviderId)}`;
    await signIn(side, provider, email);
    const { values, cookies } = await respond(side, provider, `next-${email}`);
    const credential = { name: "SAML response", values, cookies, home: ACS, method: "POST" };
    oneTimes.push({ ...credential, sealed: true, sealedFor: SERVICE });
    side.abroad.push(async (at) => ({
      ...credential,
      name: "SAML response for a provider of the other side",
      values: { ...values, samlProviderId: at.things.samlProviderId },
      isForeign: true,
    }));
    if (isSwitchedOff(SLO, workshop.subject.ctx.options)) return;
    const { posted, inAddress } = provider.logout(addressOf(side, SLO), email);
    const logout = { home: SLO, sealed: true, sealedFor: SERVICE };
    const ofProvider = (SAMLRequest: string) => ({ samlProviderId, SAMLRequest });
    oneTimes.push(
      { name: "SAML logout", values: ofProvider(posted), method: "POST", ...logout },
      {
        name: "SAML logout in an address",
        values: ofProvider(inAddress),
        method: "GET",
        ...logout,
      },
    );
  },
};

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

const addressOf = ({ place, workshop, things }: Side, path: string) =>
  place.origin +
  workshop.subject.basePath +
  path.replace(":providerId", String(things.samlProviderId));

/** Somebody has gone to the provider, which sends them back with a response. */
async function respond(side: Side, provider: SamlProvider, email: string) {
  const samlProviderId = String(side.things.samlProviderId);
  const { url, cookies } = await startAt(side, samlProviderId);
  const { id, relayState } = await requestIn(url);
  const acs = addressOf(side, ACS);
  const given = { acs, audience: samlProviderId, inResponseTo: id, email };
  const SAMLResponse = await provider.respond(given);
  return { values: { samlProviderId, SAMLResponse, RelayState: relayState }, cookies };
}

async function signIn(side: Side, provider: SamlProvider, email: string): Promise<void> {
  const { values } = await respond(side, provider, email);
  const browser = side.fresh();
  const { location, status } = await browser.post(addressOf(side, ACS), values);
  if (status >= 400 || location?.includes("error=")) {
    throw new Error(`the response was refused: ${status} ${location}`);
  }
  const session = await ok<{ user: { id: string } } | null>(browser.get("/get-session"));
  if (!session) throw new Error("nobody is signed in after it");
  side.sessions.push({ name: "SAML session", userId: session.user.id, cookies: browser.cookies });
}
