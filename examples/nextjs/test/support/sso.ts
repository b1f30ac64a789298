import type { Page } from "playwright-core";
import { expect } from "vitest";
import demo from "../../demo.json";
import { IDP } from "./visitor";

type Protocol = "OpenID Connect" | "SAML";

export const ssoOn = (page: Page) => page.getByRole("region", { name: "Single sign-on" });

/** Opens the form for an identity provider of people at example.com. */
export async function openSSOForm(page: Page, protocol: Protocol) {
  const section = ssoOn(page);
  await section.getByText("Set up single sign-on").click();
  await section.getByLabel("Protocol").selectOption(protocol);
  await section.getByLabel("Domain").last().fill("example.com");
  return section;
}

export async function fillOIDC(page: Page, { issuer = IDP, ...given } = {} as Partial<OIDCInput>) {
  const section = ssoOn(page);
  await section.getByLabel("Issuer").fill(issuer);
  await section.getByLabel("Client ID").fill(given.clientId ?? demo.spareClient.id);
  const secret = given.secret ?? demo.spareClient.secret;
  await section.getByLabel("Client secret", { exact: true }).fill(secret);
}

interface OIDCInput {
  issuer: string;
  clientId: string;
  secret: string;
}

/** What the stand-in offers to copy, for SAML. */
export async function samlOffer(page: Page) {
  const other = await page.context().newPage();
  await other.goto(IDP);
  const offer = {
    metadata: await other.getByRole("textbox", { name: "Metadata" }).inputValue(),
    certificate: await other.getByRole("textbox", { name: "Certificate" }).inputValue(),
  };
  await other.close();
  return offer;
}

/** Submits the form, and waits for what is said. */
export async function setUpSSO(page: Page, providerId: string, said = `${providerId} is set up.`) {
  await ssoOn(page)
    .getByRole("button", { name: `Set up ${providerId}` })
    .click();
  await ssoOn(page).getByText(said).waitFor();
}

export async function checkSSO(page: Page, providerId: string, said: string) {
  const provider = ssoOn(page).getByRole("article", { name: providerId });
  await provider.getByRole("button", { name: `Check ${providerId}` }).click();
  await provider.getByText(said).first().waitFor();
  return provider;
}

/** Types an address at a tenant's sign-in page. */
export async function typeAddress(page: Page, address: string, email: string) {
  await page.goto(address);
  await page.getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Continue", exact: true }).click();
}

/** Goes to the identity provider from a tenant's sign-in page, and says who it is there. */
export async function goThere(page: Page, address: string, name: string, protocol: Protocol) {
  const person = demo.peopleAtTheIdentityProvider.find((known) => known.name === name);
  const email = person?.email ?? "";
  await typeAddress(page, address, email);
  const { path, button } = {
    "OpenID Connect": { path: "/oauth/authorize", button: "Allow" },
    SAML: { path: "/saml/sso", button: "Sign in" },
  }[protocol];
  await page.waitForURL(`${IDP}${path}?**`);
  const choice = page.getByRole("radio", { name });
  // OpenID Connect tells the identity provider who comes.
  if (protocol === "OpenID Connect") expect(await choice.isChecked()).toBe(true);
  await choice.check();
  await page.getByRole("button", { name: button }).click();
  return email;
}
