import { expect, test } from "vitest";
import demo from "../demo.json";
import { deleteTenantsAfterwards, newAdministrator, post, setUpGitLab } from "./support/console";
import {
  checkSSO,
  fillOIDC,
  goThere,
  openSSOForm,
  samlOffer,
  setUpSSO,
  ssoOn,
  typeAddress,
} from "./support/sso";
import {
  ACME,
  ADMINISTRATOR,
  APP,
  closeBrowserAfterwards,
  hostOf,
  IDP,
  newVisitor,
  signIn,
  tenantId,
  text,
} from "./support/visitor";

closeBrowserAfterwards();
deleteTenantsAfterwards();

/** Is at the identity provider, too. */
const LEE = { email: "lee@example.com", name: "Lee", password: "a long password" };
const SECRET = demo.spareClient.secret;

/** Somebody else each time: nobody may try to sign in often. */
const somebody = async () => (await newVisitor({ expects: /404/ })).newPage();

test("an administrator sets up OpenID Connect and checks it, and people of the domain are sent there", async () => {
  const { page, address } = await newAdministrator("Hooli", "hooli", LEE, /40[049]/);
  const host = hostOf({ slug: "hooli" });
  await setUpGitLab(page);
  const section = await openSSOForm(page, "OpenID Connect");
  for (const origin of [APP, host]) {
    await section.getByText(`${origin}/api/auth/sso/callback/hooli-sso`).first().waitFor();
  }

  // What is wrong is said in words, and what was typed stays.
  await fillOIDC(page, { issuer: "https://login.example.com" });
  await setUpSSO(page, "hooli-sso", "Identity providers at this address are not allowed here.");
  await fillOIDC(page, { issuer: `${IDP}/elsewhere` });
  await setUpSSO(page, "hooli-sso", "There is no OpenID Connect provider at this issuer.");
  expect(await section.getByLabel("Domain").inputValue()).toBe("example.com");

  await fillOIDC(page, { secret: "a wrong secret" });
  await setUpSSO(page, "hooli-sso");
  const provider = await checkSSO(page, "hooli-sso", "It does not accept the client ID and secret");
  await provider.getByText("This config does not work.").waitFor();
  const early = await somebody();
  await goThere(early, address, "Kim Park", "OpenID Connect");
  await early.getByRole("alert").getByText("Single sign-on does not work at the moment.").waitFor();

  await provider.getByText("Change or remove").click();
  await provider.getByLabel("New client secret").fill(SECRET);
  await provider.getByRole("button", { name: "Save changes" }).click();
  await provider.getByText("Saved.").waitFor();
  await checkSSO(page, "hooli-sso", "No problems found.");
  for (const origin of [APP, host]) {
    await provider.getByText(`It knows ${origin}/api/auth/sso/callback/hooli-sso`).waitFor();
  }
  await page.reload();
  expect(await page.content()).not.toContain(SECRET);

  for (const [place, name] of [
    [address, "Kim Park"],
    [host, "Jane Doe"],
  ] as const) {
    const person = await somebody();
    const email = await goThere(person, place, name, "OpenID Connect");
    await person.waitForURL(`${place}/dashboard`);
    expect(await text(person)).toContain(`You are signed in to Hooli as ${email}`);
    expect(await text(person)).toContain("hooli-sso");
  }

  // Everybody else is asked for a password, and so is who would rather have it.
  const peter = await somebody();
  await typeAddress(peter, address, "peter@elsewhere.example");
  await peter.getByLabel("Password", { exact: true }).waitFor();
  expect(await peter.getByLabel("Email").inputValue()).toBe("peter@elsewhere.example");
  await peter.goto(address);
  await peter.getByLabel("Email").fill(LEE.email);
  await peter.getByRole("button", { name: "Use a password" }).click();
  await peter.getByLabel("Password", { exact: true }).fill(LEE.password);
  await peter.getByRole("button", { name: "Sign in", exact: true }).click();
  await peter.waitForURL(`${address}/dashboard`);
}, 120_000);

test("a tenant allows nothing but single sign-on, and then nothing else is shown", async () => {
  const { page, address } = await newAdministrator("Globo", "globo", LEE, /409/);
  await setUpGitLab(page);
  await openSSOForm(page, "OpenID Connect");
  await fillOIDC(page);
  await setUpSSO(page, "globo-sso");
  // By an administrator who comes in that way.
  const policy = page.getByRole("region", { name: "Policy" });
  const allowNothingElse = async (said: string) => {
    await policy.getByLabel("Only with these methods").check();
    await policy.getByLabel("Password", { exact: true }).uncheck();
    await policy.getByLabel("Passkey").uncheck();
    await policy.getByLabel("GitLab").uncheck();
    await policy.getByLabel("Magic link").uncheck();
    expect(await policy.getByLabel("Single sign-on (SSO)").isChecked()).toBe(true);
    await policy.getByRole("button", { name: "Save policy" }).click();
    await policy.getByText(said).waitFor();
  };
  await allowNothingElse("you could not sign in again yourself");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(address);
  await goThere(page, address, "Lee Wong", "OpenID Connect");
  await page.waitForURL(`${address}/dashboard`);
  expect(await text(page)).toContain("Hello, Lee");
  await page.getByRole("link", { name: "Settings" }).click();
  await allowNothingElse("Policy saved.");
  const kim = await somebody();
  await kim.goto(address);
  expect(await kim.getByRole("main").getByRole("button").allInnerTexts()).toEqual(["Continue"]);
  await typeAddress(kim, address, "peter@elsewhere.example");
  await kim.getByText("There is no single sign-on for this email address.").waitFor();
  await goThere(kim, address, "Kim Park", "OpenID Connect");
  await kim.waitForURL(`${address}/dashboard`);
}, 120_000);

test("an administrator sets up SAML and checks it, and people of the domain are sent there", async () => {
  const { page, address, operator } = await newAdministrator(
    "Vehement",
    "vehement",
    LEE,
    /40[049]/,
  );
  const host = hostOf({ slug: "vehement" });
  const { metadata, certificate } = await samlOffer(page);
  const section = await openSSOForm(page, "SAML");
  await section.getByText(`${APP}/api/auth/sso/saml2/sp/acs/vehement-sso`).waitFor();
  await section.getByText(`${host}/api/auth/sso/saml2/sp/acs/vehement-sso`).waitFor();

  await section.getByLabel("Metadata", { exact: true }).fill("<html>Not found</html>");
  await setUpSSO(page, "vehement-sso", "This is not the metadata of an identity provider.");
  await section.getByLabel("Its entity ID, sign-in URL and certificate").check();
  await section.getByLabel("Entity ID").last().fill(`${IDP}/saml/metadata`);
  await section.getByLabel("Sign-in URL").last().fill(`${IDP}/saml/sso`);
  await section.getByLabel("Certificate", { exact: true }).fill(certificate.slice(0, 200));
  await setUpSSO(page, "vehement-sso", "The certificate cannot be read.");

  await section.getByLabel("Its metadata").check();
  await section.getByLabel("Metadata", { exact: true }).fill(metadata);
  await setUpSSO(page, "vehement-sso");
  const provider = await checkSSO(page, "vehement-sso", "No problems found.");
  await provider.getByText(`People are sent to ${IDP}/saml/sso.`).waitFor();
  await provider.getByText("The certificate is valid until").waitFor();
  await provider.getByText("Not checked").waitFor();
  // Where the identity provider reads what it needs to know.
  const ours = `${APP}/api/auth/sso/saml2/sp/metadata?providerId=vehement-sso`;
  expect(await (await page.request.get(ours)).text()).toContain("/sp/acs/vehement-sso");

  for (const [place, name] of [
    [address, "Kim Park"],
    [host, "Jane Doe"],
    // Is there already, with an address that is confirmed.
    [address, "Lee Wong"],
  ] as const) {
    const person = await somebody();
    const email = await goThere(person, place, name, "SAML");
    await person.waitForURL(`${place}/dashboard`);
    expect(await text(person)).toContain(`You are signed in to Vehement as ${email}`);
  }

  // Who may not join is told so.
  const policy = page.getByRole("region", { name: "Policy" });
  await policy.getByLabel("Who may join").selectOption("Invited people only");
  await policy.getByRole("button", { name: "Save policy" }).click();
  await policy.getByText("Policy saved.").waitFor();
  const alice = await somebody();
  await goThere(alice, address, "Alice Reed", "SAML");
  await alice.getByRole("alert").getByText("You can join by invitation only.").waitFor();

  // An operator sees the same, and removes it.
  await operator.reload();
  await checkSSO(operator, "vehement-sso", "No problems found.");
  await ssoOn(operator).getByText("Change or remove vehement-sso").click();
  await ssoOn(operator).getByRole("button", { name: "Remove vehement-sso …" }).click();
  const dialog = operator.getByRole("dialog", { name: "Remove vehement-sso?" });
  await dialog.getByRole("button", { name: "Remove vehement-sso" }).click();
  await ssoOn(operator).getByRole("article").waitFor({ state: "detached" });
  await alice.goto(address);
  await alice.getByLabel("Password", { exact: true }).waitFor();
}, 120_000);

test("a tenant's identity provider is there for no other tenant", async () => {
  const { page } = await newAdministrator("Pendant", "pendant", LEE, /422/);
  await openSSOForm(page, "OpenID Connect");
  await fillOIDC(page);
  await setUpSSO(page, "pendant-sso");
  // Nor is its identifier, for a second one.
  await fillOIDC(page);
  await ssoOn(page).getByLabel("Domain").last().fill("example.com");
  await setUpSSO(page, "pendant-sso", "This identifier is already taken.");

  const alice = await (await newVisitor({ expects: /40[0-9]/ })).newPage();
  const acme = await tenantId(alice, ACME);
  const pendant = await tenantId(alice, { slug: "pendant" });
  await alice.goto(`${APP}/t/acme`);
  const sent = { callbackURL: "/t/acme/dashboard" };
  for (const by of [{ email: "kim@example.com" }, { providerId: "pendant-sso" }]) {
    const named = { "x-tenant-id": acme };
    expect((await post(alice, "/sign-in/sso", { ...by, ...sent }, named)).status).toBe(404);
  }
  await signIn(alice, ACME, `${APP}/t/acme`, ADMINISTRATOR);
  await alice.getByRole("link", { name: "Settings" }).click();
  await ssoOn(alice).waitFor();
  expect(await alice.content()).not.toContain("pendant-sso");
  const body = { providerId: "pendant-sso", domain: "acme.example" };
  for (const tenant of [acme, pendant]) {
    for (const path of ["/sso/update-provider", "/sso/delete-provider"]) {
      const { status } = await post(alice, `${path}?tenantId=${tenant}`, body);
      expect([path, [401, 403, 404].includes(status)]).toEqual([path, true]);
    }
  }
});

test("an operator who is signed in at the tenant, too, still manages it in the console", async () => {
  const { operator, id, page, address } = await newAdministrator("Kramerica", "kramerica", LEE);
  await openSSOForm(page, "OpenID Connect");
  await fillOIDC(page);
  await setUpSSO(page, "kramerica-sso");
  await goThere(operator, address, "Kim Park", "OpenID Connect");
  await operator.waitForURL(`${address}/dashboard`);
  await operator.goto(`${APP}/console/tenants/${id}`);
  await checkSSO(operator, "kramerica-sso", "No problems found.");
});
