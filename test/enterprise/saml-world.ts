import { expect } from "vitest";
import type { Browser } from "../support/browser";
import { BASE_URL } from "../support/instance";
import {
  createSamlProvider,
  requestIn,
  type SamlProvider,
  type SamlResponse,
  samlConfig,
} from "./saml-provider";
import { createSSOWorld, type SSOWorld, type SSOWorldOptions, whoIs } from "./sso-world";

export const acsOf = (providerId: string) => `${BASE_URL}/sso/saml2/sp/acs/${providerId}`;
export const audienceOf = (providerId: string) => `https://app.example/${providerId}`;

export const acmeProvider = await createSamlProvider("acme");
export const globexProvider = await createSamlProvider("globex");

/** Acme and Globex with an identity provider each. */
export async function createSamlWorld(options: SSOWorldOptions = {}) {
  const world = await createSSOWorld(options);
  await register(world.acme.admin.browser, "acme-saml", acmeProvider);
  await register(world.globex.admin.browser, "globex-saml", globexProvider);
  return world;
}

export async function register(
  admin: Browser,
  providerId: string,
  provider: SamlProvider,
  more: object = {},
) {
  const answer = await admin.post("/sso/register", {
    providerId,
    issuer: audienceOf(providerId),
    domain: `${provider.name}.example`,
    samlConfig: samlConfig({ callbackUrl: "/welcome", ...more }, provider),
  });
  expect(answer.status, JSON.stringify(answer.data)).toBe(200);
  return answer;
}

/** The form that an identity provider makes a browser post: from its own site, naming no tenant. */
export function post(
  browser: Browser,
  acs: string,
  SAMLResponse: string,
  relayState?: string,
  headers: Record<string, string> = {},
) {
  const form = new URLSearchParams({ SAMLResponse });
  if (relayState) form.set("RelayState", relayState);
  return browser.post(acs, form.toString(), {
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      origin: "https://acme.idp.example",
      ...headers,
    },
  });
}

/** Somebody has started at Acme, and the provider is about to answer. */
export async function underWay(world: SSOWorld, more: Partial<SamlResponse> = {}) {
  const browser = world.browser();
  const started = await world.start(world.acme.id, { providerId: "acme-saml" }, browser);
  expect(started.status, JSON.stringify(started.data)).toBe(200);
  const { id, relayState } = requestIn(started.data.url);
  const response = await acmeProvider.respond({
    acs: acsOf("acme-saml"),
    audience: audienceOf("acme-saml"),
    inResponseTo: id,
    email: "ada@acme.example",
    ...more,
  });
  return { browser, relayState, response, id };
}

export async function expectRefused(
  world: SSOWorld,
  browser: Browser,
  run: () => Promise<unknown>,
) {
  const before = [await world.rows("session"), await world.rows("user")];
  await run();
  expect([await world.rows("session"), await world.rows("user")]).toEqual(before);
  expect(await whoIs(browser)).toBeUndefined();
}
