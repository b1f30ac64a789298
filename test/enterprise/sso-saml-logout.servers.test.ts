import * as saml from "samlify";
import { describe, expect, it } from "vitest";
import { mapStorage } from "../sessions/stores";
import type { Browser } from "../support/browser";
import { BASE_URL } from "../support/instance";
import { databases } from "../support/servers";
import type { SamlProvider } from "./saml-provider";
import {
  acmeProvider,
  acsOf,
  audienceOf,
  globexProvider,
  post,
  register,
  underWay,
} from "./saml-world";
import { createSSOWorld, type SSOWorldOptions, whoIs } from "./sso-world";

/*
 * Single logout that the provider starts, and what it answers to one of ours. Both come in whichever
 * browser, which may be signed in somewhere else.
 */

const sloOf = (providerId: string) => `${BASE_URL}/sso/saml2/sp/slo/${providerId}`;
const at = (binding: string, Location: string) => ({
  Binding: `urn:oasis:names:tc:SAML:2.0:bindings:${binding}`,
  Location,
});

const EMAIL = "ada@acme.example";

async function createLogoutWorld(options: SSOWorldOptions = {}) {
  const world = await createSSOWorld({
    sso: {
      saml: { enableSingleLogout: true, wantLogoutRequestSigned: true, allowIdpInitiated: true },
    },
    ...options,
  });
  for (const [place, provider] of [
    [world.acme, acmeProvider],
    [world.globex, globexProvider],
  ] as const) {
    const { entityID, entryPoint } = provider;
    const singleLogoutService = [at("HTTP-POST", entryPoint), at("HTTP-Redirect", entryPoint)];
    await register(place.admin.browser, `${place.slug}-saml`, provider, {
      idpMetadata: { entityID, singleLogoutService },
    });
  }
  return world;
}

/** Ada of Globex, who has the same address as Ada of Acme. */
async function signInAtGlobex(browser: Browser) {
  const response = await globexProvider.respond({
    acs: acsOf("globex-saml"),
    audience: audienceOf("globex-saml"),
    email: EMAIL,
  });
  await post(browser, acsOf("globex-saml"), response);
  return browser;
}

const parties = ({ entityID, entryPoint, keys }: SamlProvider, providerId: string) => ({
  idp: saml.IdentityProvider({
    entityID,
    signingCert: keys.certificate,
    privateKey: keys.privateKey,
    requestSignatureAlgorithm: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
    singleSignOnService: [at("HTTP-POST", entryPoint)],
    singleLogoutService: [at("HTTP-POST", entryPoint)],
  }),
  sp: saml.ServiceProvider({
    entityID: audienceOf(providerId),
    wantLogoutRequestSigned: true,
    singleLogoutService: [at("HTTP-POST", sloOf(providerId))],
    assertionConsumerService: [at("HTTP-POST", acsOf(providerId))],
  }),
});

const send = (browser: Browser, providerId: string, fields: Record<string, string>) =>
  browser.post(sloOf(providerId), new URLSearchParams(fields).toString(), {
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: "https://acme.idp.example",
    },
  });

function requestLogout(browser: Browser, providerId: string, provider: SamlProvider) {
  const { idp, sp } = parties(provider, providerId);
  const who = { logoutNameID: EMAIL } as never;
  const { context } = idp.createLogoutRequest(sp, "post", who, "");
  return send(browser, providerId, { SAMLRequest: context });
}

function confirmLogout(browser: Browser) {
  const { idp, sp } = parties(acmeProvider, "acme-saml");
  const values = {
    ID: "_confirmed",
    Destination: sloOf("acme-saml"),
    Issuer: acmeProvider.entityID,
    IssueInstant: new Date().toISOString(),
    StatusCode: "urn:oasis:names:tc:SAML:2.0:status:Success",
    InResponseTo: "",
  };
  const fill = (template: string) => ({
    id: values.ID,
    context: saml.SamlLib.replaceTagsByValue(template, values),
  });
  const { context } = idp.createLogoutResponse(sp, null as never, "post", "", fill as never);
  return send(browser, "acme-saml", { SAMLResponse: context });
}

const inStorage = (more: object = {}) => ({
  auth: {
    secondaryStorage: mapStorage().storage,
    verification: { storeInDatabase: true },
    ...more,
  },
});

describe.each<[string, () => SSOWorldOptions]>([
  ...databases.map(
    (database) => [database, () => ({ database })] as [string, () => SSOWorldOptions],
  ),
  ["secondary storage", () => inStorage()],
  ["both", () => inStorage({ session: { storeSessionInDatabase: true } })],
])("a logout that comes from a tenant's provider, with sessions in %s", (_, options) => {
  it("ends the session there, and no other", async () => {
    const world = await createLogoutWorld(options());
    const ours = await underWay(world);
    await post(ours.browser, acsOf("acme-saml"), ours.response, ours.relayState);
    const theirs = await signInAtGlobex(world.browser());
    expect(await whoIs(ours.browser)).toMatchObject({ email: EMAIL, tenantId: world.acme.id });

    // Signed by somebody else's provider, or about somebody else's people.
    const forged = await requestLogout(world.browser(), "acme-saml", globexProvider);
    expect(forged.status).toBe(400);
    await requestLogout(ours.browser.fork(), "globex-saml", globexProvider);
    expect(await whoIs(ours.browser)).toMatchObject({ tenantId: world.acme.id });
    expect(await whoIs(theirs)).toBeUndefined();

    // In a browser that is signed in at Globex, and stays so.
    await signInAtGlobex(theirs);
    const answer = await requestLogout(theirs, "acme-saml", acmeProvider);
    expect(JSON.stringify(answer.data)).toContain("SAMLResponse");
    expect(await whoIs(ours.browser)).toBeUndefined();
    expect(await whoIs(theirs)).toMatchObject({ tenantId: world.globex.id });
  });

  it("is confirmed without signing anybody out elsewhere", async () => {
    const world = await createLogoutWorld(options());
    const theirs = await signInAtGlobex(world.browser());
    expect((await confirmLogout(theirs)).status).toBe(302);
    expect(await whoIs(theirs)).toMatchObject({ tenantId: world.globex.id });
    const operator = world.operator;
    expect((await confirmLogout(operator)).status).toBe(302);
    expect(await whoIs(operator)).toMatchObject({ tenantId: null });
    const ours = await underWay(world);
    await post(ours.browser, acsOf("acme-saml"), ours.response, ours.relayState);
    await confirmLogout(ours.browser);
    expect(await whoIs(ours.browser)).toBeUndefined();
  });
});
